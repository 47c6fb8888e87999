"""Waiting in the queue, and what is shown meanwhile."""

import io
import re
from typing import Any

import pytest
from client_world import World, request_for

from trainmaster import ApiClient
from trainmaster.client.api.errors import Unreachable
from trainmaster.client.sdk.job_cache import JobCache
from trainmaster.client.sdk.waiting import Progress, QueueWait, SteadyMessage, cut
from trainmaster.client.views.wording import sentence_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Time:
    """A clock that sleeping moves, with things that happen meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.then: dict[float, Any] = {}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.then.pop(self.now, lambda: None)()


@pytest.fixture
def time() -> Time:
    return Time()


def waits(api: ApiClient, time: Time, out: io.StringIO) -> QueueWait:
    progress = Progress(out, clock=time.clock)
    return QueueWait(JobCache(api, time.clock), progress, 5.0, time.sleep, time.clock)


def test_it_tells_each_change_once_and_ends_when_the_job_runs(api: ApiClient, world: World, time: Time) -> None:
    api.submit(request_for("job1"))
    out = io.StringIO()
    time.then = {
        15.0: lambda: world.jobs["job1"].update(position=0, reason=None),
        65.0: lambda: world.start("job1", heard_by_sagemaker=False),
        70.0: lambda: world.jobs["job1"].update(jobState="running"),
    }

    assert waits(api, time, out).wait("job1") == 70.0

    assert out.getvalue().splitlines() == [
        "job1: Waiting in the queue; position 1; estimated start 2030-01-01 12:00:00 UTC; no free ml.m5.large.",
        "job1: Waiting in the queue; position 0; estimated start 2030-01-01 12:00:00 UTC.",
        "job1: Starting: the queue asks SageMaker to start the job.",
    ]


def test_a_drifting_estimate_is_no_line_and_a_position_one_at_most_every_minute(
    api: ApiClient, world: World, time: Time
) -> None:
    api.submit(request_for("job1"))
    out = io.StringIO()

    def moves(second: int) -> Any:
        estimate = f"2030-01-01T12:{second // 60:02}:{second % 60:02}Z"
        position = 500 - second if second > 200 else 1
        return lambda: world.jobs["job1"].update(estimatedStart=estimate, position=position)

    time.then = {float(second): moves(second) for second in range(5, 600, 5)}
    assert waits(api, time, out).wait("job1", timeout_seconds=599.0) >= 599.0
    positions = [int(found) for found in re.findall(r"position (\d+)", out.getvalue())]
    assert positions == [1, 295, 235, 175, 115, 55]


def test_a_day_of_waiting_writes_little_to_a_file(api: ApiClient, world: World, time: Time) -> None:
    api.submit(request_for("job1"))
    out = io.StringIO()
    state = world.jobs["job1"]

    def drift(seconds: float) -> None:
        time.now += seconds
        state["estimatedStart"] = f"2030-01-01T12:{int(time.now) // 60 % 60:02}:{int(time.now) % 60:02}Z"

    wait = waits(api, time, out)
    wait.sleep = drift
    wait.wait("job1", timeout_seconds=86_400.0)
    assert len(out.getvalue()) < 200
    assert "\x1b" not in out.getvalue()


def screen(written: str, columns: int) -> list[str]:
    """The lines on a terminal of this width: it knows carriage returns, new lines, wrapping and clearing a line."""
    rows, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[2K|.|\n", written):
        if part == "\n":
            row, column = row + 1, 0
            rows += [""] * (row + 1 - len(rows))
        elif part == "\r":
            column = 0
        elif part == "\x1b[2K":
            rows[row] = ""
        else:
            if column == columns:
                row, column = row + 1, 0
                rows.append("")
            rows[row] = rows[row].ljust(column)[:column] + part + rows[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in rows if line]


def test_on_a_terminal_each_state_has_one_line_that_is_redrawn_and_never_wraps(
    api: ApiClient, world: World, time: Time
) -> None:
    api.submit(request_for("job1"))
    out = Terminal()
    time.then = {
        5.0: lambda: world.jobs["job1"].update(estimatedStart=None),
        10.0: lambda: world.jobs["job1"].update(position=0),
        15.0: lambda: world.start("job1", heard_by_sagemaker=False),
        20.0: lambda: world.jobs["job1"].update(jobState="running"),
    }
    progress = Progress(out, clock=time.clock, columns=lambda: 40)
    QueueWait(JobCache(api, time.clock), progress, 5.0, time.sleep, time.clock).wait("job1")
    assert screen(out.getvalue(), 40) == [
        "job1: Waiting in the queue; position 0\N{HORIZONTAL ELLIPSIS}",
        "job1: Starting: the queue asks SageMak\N{HORIZONTAL ELLIPSIS}",
    ]
    assert out.getvalue().count("\x1b[2K") == 3  # what is cut away is no reason to redraw


def test_a_status_message_is_as_steady_as_a_log(api: ApiClient, world: World, time: Time) -> None:
    job, message = api.submit(request_for("job1")), SteadyMessage(time.clock)
    first = message(job)
    time.now = 30.0
    assert message(job | {"position": 0}) == first
    time.now = 60.0
    assert message(job | {"estimatedStart": "2031-01-01T12:00:00Z"}) == first
    assert "position 0" in message(job | {"position": 0})
    assert message(job | {"jobState": "running"}) == "Running."


def test_wide_characters_count_twice() -> None:
    assert cut("\u4f5c\u696d1", 5) == "\u4f5c\u696d1"
    assert cut("\u4f5c\u696d12", 5) == "\u4f5c\u696d\N{HORIZONTAL ELLIPSIS}"


def test_a_job_that_was_never_queued_is_not_waited_for(api: ApiClient, time: Time) -> None:
    out = io.StringIO()
    assert waits(api, time, out).wait("missing") == 0.0
    assert out.getvalue() == ""


def test_an_outage_is_borne_for_a_quarter_of_an_hour(api: ApiClient, world: World, time: Time) -> None:
    api.submit(request_for("job1"))
    time.then = {5.0: lambda: world.outage.extend([503] * 10_000)}
    with pytest.raises(Unreachable):
        waits(api, time, io.StringIO()).wait("job1")
    assert time.now == 930.0  # every 5 s for ten minutes, then every 30 s


def test_without_a_stream_it_tells_on_standard_output(api: ApiClient, capsys: pytest.CaptureFixture[str]) -> None:
    api.submit(request_for("job1"))
    Progress()(api.job("job1"))
    assert capsys.readouterr().out.startswith("job1: Waiting in the queue")


def test_messages_follow_the_queues_state(api: ApiClient) -> None:
    job = api.submit(request_for("job1"))
    assert "position" not in sentence_of(job | {"position": None})
    assert "position 1000 or later" in sentence_of(job | {"position": None, "positionAtLeast": 1000})
    between = {"estimatedStartLow": "2030-01-01T11:00:00Z", "estimatedStartHigh": "2030-01-01T15:00:00Z"}
    start = "estimated start 2030-01-01 12:00:00 UTC (2030-01-01 11:00:00 to 2030-01-01 15:00:00)"
    assert start in sentence_of(job | {"estimatedStart": "2030-01-01T12:00:00Z"} | between)
    assert sentence_of(job | {"jobState": "running"}) == "Running."
    assert sentence_of(job | {"jobState": "failed", "failureReason": "exit 1"}) == "Failed; exit 1."


def test_the_cache_is_bounded(api: ApiClient) -> None:
    known = JobCache(api)
    for number in range(70):
        api.submit(request_for(f"job{number}"))
        known.look_up(f"job{number}")
    assert known.cached("job5") is None
    assert known.cached("job6") is not None


def test_a_long_wait_asks_less_often(api: ApiClient, world: World, time: Time) -> None:
    api.submit(request_for("job1"))
    asked: list[float] = []
    wait = QueueWait(JobCache(api, time.clock), lambda job: asked.append(time.now), 5.0, time.sleep, time.clock)
    wait.wait("job1", timeout_seconds=900.0)
    assert len(asked) == 600 / 5 + 300 / 30 + 1
