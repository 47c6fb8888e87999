"""Waiting for a job of the queue as `trainmaster.TrainingQueue` does, on a scripted queue and stubbed logs."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from botocore.stub import Stubber

from aws_clients import aws_client
from fake_api import FakeApi, an_attempt, starts, waits_for_capacity
from trainmaster import ApiClient
from trainmaster.client.batch.jobs import PolledJobs
from trainmaster.client.batch.watching import AttemptLogLines, JobWatch
from trainmaster.client.logs import LOG_GROUP
from trainmaster.client.sdk.waiting import Progress


class Stage:
    """A watch whose sleeps are steps of a script, on a clock of its own."""

    def __init__(self, fake: FakeApi, api: ApiClient, logs: Callable[[Any], None]) -> None:
        self.fake, self.out, self.now = fake, io.StringIO(), 0.0
        self.script: list[Callable[[], None]] = []
        progress = Progress(stream=self.out, clock=lambda: self.now)
        find = PolledJobs(api, clock=lambda: self.now).find
        self.watch = JobWatch(find, logs, progress, self.out, sleep=self._sleep, clock=lambda: self.now)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.script:
            self.script.pop(0)()

    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


def test_a_wait_shows_position_reason_start_and_end(fake: FakeApi, fake_client: ApiClient) -> None:
    shown: list[str] = []
    stage = Stage(fake, fake_client, lambda job: shown.append(job["jobState"]))
    fake.add("job1", position=3, reason=waits_for_capacity())
    fake.jobs["job1"] |= starts("2030-01-01T12:00:00Z")
    why = fake.jobs["job1"]["reason"]["message"]
    stage.script = [lambda: fake.start("job1"), lambda: None, lambda: fake.end("job1")]

    stage.watch.wait("job1")

    assert stage.lines() == [
        f"job1: Waiting in the queue; position 3; estimated start 2030-01-01 12:00:00 UTC; {why}.",
        "job1: Running.",
        "job1: Completed.",
    ]
    assert shown == ["pending", "running", "running", "completed", "completed"], "logs are read once more after the end"


def test_a_wait_ends_with_its_time(fake: FakeApi, fake_client: ApiClient) -> None:
    stage = Stage(fake, fake_client, lambda _: None)
    fake.add("job1")
    stage.watch.wait("job1", timeout_seconds=12, poll_seconds=5)
    assert stage.now == 15


def test_a_wait_for_a_job_that_is_purged_ends(fake: FakeApi, fake_client: ApiClient) -> None:
    stage = Stage(fake, fake_client, lambda _: None)
    fake.add("job1")
    stage.script = [fake.jobs.clear]
    stage.watch.wait("job1")
    assert stage.now == 5


def test_lines_of_all_attempts_are_printed_once() -> None:
    logs, out = aws_client("logs"), io.StringIO()
    job: Any = {"jobName": "job1", "trainingJobName": "job1", "attempts": [an_attempt("job1")]}
    lines = AttemptLogLines(lambda: logs, out)
    listing = {"logGroupName": LOG_GROUP, "logStreamNamePrefix": "job1/", "orderBy": "LogStreamName"}
    place = {"logGroupName": LOG_GROUP, "logStreamName": "job1/algo-1-17", "startFromHead": True}
    events = [{"timestamp": 1, "message": "epoch 1\n"}, {"timestamp": 2, "message": "epoch 2"}]
    with Stubber(logs) as stubber:
        for seen in (None, "t1"):
            more = {} if seen is None else {"nextToken": seen}
            stubber.add_response("describe_log_streams", {"logStreams": [{"logStreamName": "job1/algo-1-17"}]}, listing)
            answer = {"events": [] if seen else events, "nextForwardToken": "t1"}
            stubber.add_response("get_log_events", answer, place | more)
            if seen is None:
                stubber.add_response(
                    "get_log_events", {"events": [], "nextForwardToken": "t1"}, place | {"nextToken": "t1"}
                )
        lines(job)
        lines(job)
        stubber.assert_no_pending_responses()
    assert out.getvalue().splitlines() == ["[algo-1] epoch 1", "[algo-1] epoch 2"]


@pytest.mark.parametrize(("code", "told"), [("AccessDeniedException", 1), ("ThrottlingException", 0)])
def test_waiting_goes_on_without_logs(code: str, told: int) -> None:
    logs, out = aws_client("logs"), io.StringIO()
    job: Any = {"jobName": "job1", "trainingJobName": "job1", "attempts": [an_attempt("job1")]}
    lines = AttemptLogLines(lambda: logs, out)
    with Stubber(logs) as stubber:
        stubber.add_client_error("describe_log_streams", code, "no")
        if not told:
            stubber.add_client_error("describe_log_streams", code, "no")
        lines(job)
        lines(job)
        stubber.assert_no_pending_responses()
    assert len(out.getvalue().splitlines()) == told
    lines({**job, "attempts": []})
