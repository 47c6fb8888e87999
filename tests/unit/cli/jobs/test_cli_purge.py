"""`trainmaster purge`: deletes ended jobs, and says which it could not delete."""

from __future__ import annotations

from cli_terminal import Terminal
from fake_api import FakeApi
from trainmaster.cli.common.exit_codes import ExitCode


def test_ended_jobs_are_purged(world: FakeApi, run: Terminal) -> None:
    for name, state in (("job1", "completed"), ("job2", "cancelled"), ("job3", "failed")):
        world.add(name, state)
    assert run("purge", "job1", "job2").stdout == "job1: Purged.\njob2: Purged.\n"
    assert list(world.jobs) == ["job3"]


def test_a_job_that_has_not_ended_does_not_keep_others(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running")
    world.add("job2", "completed")
    result = run("purge", "job1", "job2")
    assert (result.exit_code, result.stdout, list(world.jobs)) == (ExitCode.CONFLICT, "job2: Purged.\n", ["job1"])
    assert "has not ended" in result.stderr


def test_a_purge_whose_answer_was_lost_is_done(world: FakeApi, run: Terminal) -> None:
    world.outage = [503]
    assert run("purge", "job1").stdout == "job1: Purged.\n"


def test_a_job_that_does_not_exist_is_an_error(run: Terminal) -> None:
    assert run("purge", "job1").exit_code == ExitCode.NOT_FOUND
