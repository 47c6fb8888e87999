"""The command `logs`: attempts, hosts, following through a preemption, and what a job without lines says."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cli_terminal import NOW, Terminal
from fake_api import P5, FakeApi
from hostile_api import HOSTILE
from trainmaster.client.logs import LOG_GROUP, LogReader

EARLIER = round(NOW.timestamp() * 1000) - 3_600_000


class Containers:
    """CloudWatch Logs as moto keeps it, and the containers that write there."""

    def __init__(self) -> None:
        self.client: Any = boto3.client("logs", region_name="us-east-1")
        self.at = EARLIER

    def write(self, training_job: str, *lines: str, host: int = 1) -> None:
        stream = f"{training_job}/algo-{host}-1700000000"
        if not self.client.describe_log_groups(logGroupNamePrefix=LOG_GROUP)["logGroups"]:
            self.client.create_log_group(logGroupName=LOG_GROUP)
        known = self.client.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=stream)["logStreams"]
        if not known:
            self.client.create_log_stream(logGroupName=LOG_GROUP, logStreamName=stream)
        for line in lines:
            self.at += 1000
            event = {"timestamp": self.at, "message": line}
            self.client.put_log_events(logGroupName=LOG_GROUP, logStreamName=stream, logEvents=[event])


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch, run: Terminal) -> Iterator[Containers]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        containers = Containers()
        run.log_reader = lambda _, since: LogReader(containers.client, since)
        yield containers


@pytest.fixture
def two_attempts(world: FakeApi, containers: Containers) -> str:
    world.add("job1")
    world.start("job1")
    containers.write("job1", "epoch 1", "epoch 2")
    world.preempt("job1")
    world.start("job1")
    containers.write("job1-qstamp-2", "epoch 3")
    world.jobs["job1"]["attempts"][0]["endedAt"] = "2026-11-20T12:20:00Z"
    return "job1"


BOTH = """\
==> attempt 1: job1 (preempted) <==
epoch 1
epoch 2
==> attempt 2: job1-qstamp-2 (active) <==
epoch 3
"""


def test_the_attempts_follow_each_other_below_their_headers(run: Terminal, two_attempts: str) -> None:
    assert run("logs", two_attempts).stdout == BOTH


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--attempt", "1"], ["epoch 1", "epoch 2"]),
        (["--attempt", "2"], ["epoch 3"]),
        (["--tail", "2"], ["epoch 2", "epoch 3"]),
        (["--tail", "1"], ["epoch 3"]),
        (["--tail", "99"], ["epoch 1", "epoch 2", "epoch 3"]),
        (["--since", "3598s"], ["epoch 2", "epoch 3"]),
        (["--since", "2026-11-20T12:00:03Z"], ["epoch 3"]),
        (["--timestamps", "--tail", "1"], ["2026-11-20 12:00:03 epoch 3"]),
    ],
)
def test_options_select_lines(run: Terminal, two_attempts: str, options: list[str], lines: list[str]) -> None:
    shown = [line for line in run("logs", two_attempts, *options).stdout.splitlines() if not line.startswith("==>")]
    assert shown == lines


def test_lines_of_several_hosts_are_in_order_of_time_with_their_hosts(
    world: FakeApi, run: Terminal, containers: Containers
) -> None:
    world.add("job1")
    world.start("job1")
    world.jobs["job1"]["attempts"][0]["units"] = {P5: 2}
    for number, host in enumerate((2, 1, 1, 2)):
        containers.write("job1", f"line {number}", host=host)
    shown = run("logs", "job1").stdout.splitlines()[1:]
    assert shown == ["[algo-2] line 0", "[algo-1] line 1", "[algo-1] line 2", "[algo-2] line 3"]


def test_the_members_of_an_elastic_job_are_part_of_its_newest_attempt(
    world: FakeApi, run: Terminal, containers: Containers
) -> None:
    world.add("job1")
    world.start("job1")
    world.jobs["job1"]["elastic"] = {"members": [{"trainingJobName": "job1-m2"}]}
    containers.write("job1", "base")
    containers.write("job1-m2", "member")
    assert run("logs", "job1").stdout.splitlines()[1:] == ["[algo-1] base", "[job1-m2/algo-1] member"]


def test_following_goes_on_through_a_preemption_until_the_end(
    world: FakeApi, run: Terminal, containers: Containers
) -> None:
    world.add("job1")

    def begin() -> None:
        world.start("job1")
        containers.write("job1", "epoch 1")

    def restart() -> None:
        world.start("job1")
        containers.write("job1", "a late line of the first attempt")
        containers.write("job1-qstamp-2", "epoch 2")

    def end() -> None:
        world.end("job1")
        containers.write("job1-qstamp-2", "done")

    late = [lambda: containers.write("job1-qstamp-2", "a late line"), *[lambda: None] * 3]
    run.meanwhile = [
        begin,
        lambda: containers.write("job1", "more"),
        lambda: world.preempt("job1"),
        restart,
        end,
        *late,
    ]

    result = run("logs", "job1", "-f")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "==> attempt 1: job1 (active) <==",
        "epoch 1",
        "more",
        "a late line of the first attempt",
        "==> attempt 2: job1-qstamp-2 (active) <==",
        "epoch 2",
        "done",
        "a late line",
    ]
    told = [line.partition(";")[0] for line in result.stderr.splitlines()]
    assert told == [
        "job1: Waiting in the queue.",
        "job1: Running.",
        "job1: Preempted, waiting in the queue to resume from its checkpoint",
        "job1: Running.",
        "job1: Completed.",
    ]
    assert run.meanwhile == []


def test_following_after_a_tail_prints_no_earlier_lines(
    world: FakeApi, run: Terminal, containers: Containers, two_attempts: str
) -> None:
    def end() -> None:
        world.end("job1")
        containers.write("job1-qstamp-2", "done")

    run.meanwhile = [end, *[lambda: None] * 4]
    shown = run("logs", two_attempts, "-f", "--tail", "1").stdout.splitlines()
    assert shown == ["==> attempt 2: job1-qstamp-2 (active) <==", "epoch 3", "done"]


def test_following_one_attempt_ends_with_it(run: Terminal, two_attempts: str) -> None:
    run.meanwhile = [lambda: None] * 3
    shown = run("logs", two_attempts, "-f", "--attempt", "1").stdout.splitlines()
    assert shown == ["==> attempt 1: job1 (preempted) <==", "epoch 1", "epoch 2"]


def test_ctrl_c_ends_the_following_and_says_that_the_job_continues(run: Terminal, two_attempts: str) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    run.meanwhile = [interrupt]
    result = run("logs", two_attempts, "-f")
    assert (result.exit_code, result.stdout) == (130, BOTH)
    assert result.stderr.splitlines()[-1] == "Stopped following; the job continues."


def test_a_job_that_waits_says_so(world: FakeApi, run: Terminal, containers: Containers) -> None:
    world.add("job1", position=1)
    result = run("logs", "job1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "job1: Waiting in the queue; position 1.\n")


def test_a_job_without_lines_yet_says_so(world: FakeApi, run: Terminal, containers: Containers) -> None:
    world.add("job1")
    world.start("job1")
    result = run("logs", "job1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("job1: Running.\nCloudWatch Logs has no lines of it;")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["nope"], 3, "There is no job nope"),
        (["job1", "--attempt", "3"], 2, "job1 has no attempt 3; its attempts are 1, 2"),
        (["job1", "--since", "x"], 2, "is not a time"),
        (["job1", "--tail", "0"], 2, "--tail"),
        (["image1"], 2, "only training jobs have logs"),
    ],
)
def test_wrong_calls_are_told(  # noqa: PLR0917 - fixtures
    world: FakeApi, run: Terminal, two_attempts: str, arguments: list[str], code: int, told: str
) -> None:
    world.add("image1", kind="other")
    result = run("logs", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert told in " ".join(result.stderr.split())


def test_missing_permissions_are_told(world: FakeApi, run: Terminal, two_attempts: str, containers: Containers) -> None:
    def deny(**_: object) -> None:
        raise containers.client.exceptions.ClientError(
            {"Error": {"Code": "AccessDeniedException", "Message": "User is not authorized"}}, "GetLogEvents"
        )

    containers.client.meta.events.register("before-call.cloudwatch-logs.GetLogEvents", deny)
    result = run("logs", two_attempts)
    assert result.exit_code == 5
    assert "Your identity needs logs:DescribeLogStreams and logs:GetLogEvents" in result.stderr


def test_lines_control_no_terminal(world: FakeApi, run: Terminal, containers: Containers) -> None:
    world.add("job1")
    world.start("job1")
    containers.write("job1", HOSTILE, "\x1b[32mgreen\x1b[0m\ttext")
    shown = run("logs", "job1").stdout
    assert shown.splitlines()[-1] == "green   text"
    assert [each for each in shown.replace("\n", "") if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")] == []
    assert len(shown.splitlines()) == 3


def test_a_long_log_is_read_whole_and_once(world: FakeApi, run: Terminal, containers: Containers) -> None:
    world.add("job1")
    world.start("job1")
    containers.write("job1", "first")
    stream = "job1/algo-1-1700000000"
    for page in range(3):
        events = [{"timestamp": EARLIER + page * 9000 + n, "message": f"{page} {n}"} for n in range(9000)]
        containers.client.put_log_events(logGroupName=LOG_GROUP, logStreamName=stream, logEvents=events)
    lines = run("logs", "job1").stdout.splitlines()[1:]
    assert (len(lines), len(set(lines))) == (27_001, 27_001)
    assert len(run("logs", "job1", "--tail", "10000").stdout.splitlines()) == 10_001


def test_times_of_lines_are_in_the_zone(run: Terminal, two_attempts: str) -> None:
    line = run("logs", two_attempts, "--tail", "1", "--timestamps", "--utc").stdout.splitlines()[-1]
    assert datetime.fromisoformat(line[:19]) == datetime(2026, 11, 20, 12, 0, 3)  # noqa: DTZ001 - as printed
