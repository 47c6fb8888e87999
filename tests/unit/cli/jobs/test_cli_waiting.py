"""wait and submit --wait: the progress shown, and the exit code."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from cli_terminal import NOW, Terminal
from fake_api import FakeApi, a_request, a_view, an_attempt, starts, waits_for_capacity
from trainmaster.cli.output.progress import LiveTable


def test_wait_tells_every_change_once_and_ends_with_the_job(world: FakeApi, run: Terminal) -> None:
    world.add("job1", priority=1, position=1, reason=waits_for_capacity(), **starts("2026-11-20T14:00:00Z"))

    def drifts() -> None:
        world.jobs["job1"] |= starts("2026-11-20T14:00:09Z")

    run.meanwhile = [
        drifts,
        lambda: world.start("job1"),
        lambda: world.move("job1", "preempting"),
        lambda: world.preempt("job1"),
        lambda: world.start("job1"),
        lambda: world.end("job1"),
    ]

    result = run("wait", "job1")

    why = waits_for_capacity()["message"]
    assert (result.exit_code, result.stdout) == (0, "job1: Completed. Attempt 2.\n")
    assert result.stderr.splitlines() == [
        f"job1: Waiting in the queue; position 1; estimated start 2026-11-20 14:00:00 UTC; {why}.",
        "job1: Running.",
        "job1: Being preempted; it will resume from its checkpoint.",
        f"job1: Preempted, waiting in the queue to resume from its checkpoint; position 1; {why}.",
        "job1: Running. Attempt 2.",
        "job1: Completed. Attempt 2.",
    ]
    assert run.seconds == 6 * 5.0


@pytest.mark.parametrize("state", ["failed", "stopped", "cancelled"])
def test_a_job_that_ends_in_another_way_than_completed_is_a_failure(world: FakeApi, run: Terminal, state: str) -> None:
    world.add("good", "completed")
    world.add("bad", "running")
    run.meanwhile = [lambda: world.end("bad", state, "AlgorithmError: exit code 1")]

    result = run("wait", "good", "bad", "--json")

    assert result.exit_code == 1
    assert [(job["jobName"], job["jobState"]) for job in json.loads(result.stdout)] == [
        ("good", "completed"),
        ("bad", state),
    ]


def test_a_job_that_has_ended_is_not_asked_for_again(world: FakeApi, run: Terminal) -> None:
    world.add("a", "running")
    world.add("b", "running")
    run.meanwhile = [lambda: world.end("a"), lambda: None, lambda: world.end("b")]

    assert run("wait", "a", "b", "a", "--interval", "2").exit_code == 0
    assert [path for _, path, _ in world.calls].count("/jobs/a") == 2
    assert [path for _, path, _ in world.calls].count("/jobs/b") == 4
    assert run.seconds == 6.0


def test_a_wait_ends_when_its_time_is_up(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running")
    run.meanwhile = [lambda: None] * 3

    result = run("wait", "job1", "--timeout", "12")

    assert (result.exit_code, result.stdout, run.seconds) == (124, "job1: Running.\n", 12.0)


def test_a_wait_bears_with_an_outage_of_the_api(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running")

    def outage() -> None:
        world.outage = [503] * 9

    run.meanwhile = [outage, lambda: None, lambda: None, lambda: world.end("job1")]
    assert run("wait", "job1").exit_code == 0


def test_a_wait_does_not_begin_without_the_api(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running")
    world.outage = [503] * 3
    result = run("wait", "job1")
    assert (result.exit_code, result.stdout) == (6, "")
    assert "https://api/prod/jobs/job1 returned 503: outage" in result.stderr


def test_ctrl_c_ends_the_waiting_only(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running")

    def ctrl_c() -> None:
        raise KeyboardInterrupt

    run.meanwhile = [ctrl_c]
    result = run("wait", "job1")

    assert result.exit_code == 130
    assert "the jobs continue (`trainmaster cancel job1` cancels a job)" in result.stderr
    assert world.jobs["job1"]["jobState"] == "running"


def test_submit_waits_for_the_end_where_it_is_told_to(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(a_request("job1")))
    run.meanwhile = [lambda: world.start("job1"), lambda: world.end("job1", "failed", "AlgorithmError: exit code 1")]

    result = run("submit", str(file), "--wait", "--interval", "1")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[-4:] == [
        "job1: Failed; AlgorithmError: exit code 1.",
        "  Training Job: arn:aws:sagemaker:us-east-1:123456789012:training-job/job1",
        "  Log Streams: /aws/sagemaker/TrainingJobs job1/algo-*",
        "  Logs: trainmaster logs job1",
    ]


def test_submit_again_with_wait_waits_for_the_job_that_exists(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(a_request("job1")))
    assert run("submit", str(file)).exit_code == 0
    run.meanwhile = [lambda: world.end("job1")]
    result = run("submit", str(file), "--wait")
    assert (result.exit_code, "nothing was submitted now" in result.stdout) == (0, True)


def test_submit_and_wait_as_json_is_one_document(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(a_request("job1")))
    run.meanwhile = [lambda: world.end("job1")]

    result = run("submit", str(file), "--wait", "--json")

    assert (result.exit_code, json.loads(result.stdout)["jobState"]) == (0, "completed")


# -- the moving display


def _drawn(width: int, *jobs: dict[str, object]) -> list[str]:
    """Output of the table on a terminal of this width."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    with console.capture() as captured:
        display = LiveTable(console, lambda: NOW)
        console.print(display.renderable(jobs))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_moving_display_shows_position_start_attempts_and_reason() -> None:
    in_hours = starts("2026-11-20T16:00:00Z", "2026-11-20T15:00:00Z", "2026-11-20T18:00:00Z")
    waiting = a_view("job3", position=2, reason=waits_for_capacity(), **in_hours)
    running = a_view("job1", "running", attempts=[an_attempt("job1"), an_attempt("job1", 2)])
    failed = a_view("job0", "failed", failureReason="[red]AlgorithmError[/red]")

    head, first, second, third = _drawn(120, waiting, running, failed)

    assert head.split() == ["Job", "Name", "State", "Position", "Starts", "Attempts", "Reason"]
    assert first[3:].split(maxsplit=3) == [
        "job3",
        "pending",
        "2",
        f"in 2 h to 5 h            {waits_for_capacity()['message']}",
    ]
    assert second[3:].split() == ["job1", "running", "2"]
    assert third.split() == ["✗", "job0", "failed", "[red]AlgorithmError[/red]"]


def test_long_names_and_reasons_are_cut_so_that_each_job_has_one_line_with_room_for_ctrl_c() -> None:
    job = a_view("n" * 63, position=1000, reason={"type": "x", "message": "r" * 200})
    lines = _drawn(80, job, job)
    assert len(lines) == 3
    assert max(len(line) for line in lines) <= 76
    assert "pending" in lines[1]
    assert "1000" in lines[1]


def test_the_display_draws_only_what_changes() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    with LiveTable(console, lambda: NOW) as display:
        display.show([a_view("job1", "running")])
        once = written.tell()
        for _ in range(1000):
            display.show([a_view("job1", "running")])
        assert written.tell() == once
        display.show([a_view("job1", "preempting")])
        assert written.tell() > once


def test_a_long_wait_writes_little_to_a_file(world: FakeApi, run: Terminal) -> None:
    world.add("job1", position=9, reason=waits_for_capacity(), **starts("2026-11-20T14:00:00Z"))

    def moves() -> None:
        minute, second = divmod(int(run.seconds) % 3600, 60)
        world.jobs["job1"] |= starts(f"2026-11-20T14:{minute:02}:{second:02}Z")

    run.meanwhile = [moves] * 1000 + [lambda: world.end("job1")]
    result = run("wait", "job1")
    assert len(result.stderr.splitlines()) == 2
    assert "\x1b" not in result.stderr


def test_the_moving_display_wipes_itself_and_gives_the_cursor_back() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    with LiveTable(console, lambda: datetime.now(UTC)) as display:
        display.show([a_view("job1", "running")])
        assert "\x1b[?25l" in written.getvalue()
    assert written.getvalue().rindex("\x1b[?25h") > written.getvalue().rindex("job1")
    assert "\x1b[2K" in written.getvalue()[written.getvalue().rindex("job1") :]
