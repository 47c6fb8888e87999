"""A table that is set back by an hour while SageMaker went on: no job is lost, runs twice, or exceeds a cap."""

from __future__ import annotations

import copy

import pytest

from builders import P5
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.domain.restore import DifferenceKind, Restore
from trainmaster.local.memory.table import MemoryTable
from trainmaster.ports.store import Pause
from world import World

HOUR = 3_600


def copied(table: MemoryTable) -> MemoryTable:
    """A backup of the table."""
    lock, table.lock = table.lock, None  # type: ignore[assignment] -- locks cannot be copied
    backup = copy.deepcopy(table)
    table.lock = backup.lock = lock
    return backup


def set_back(world: World, backup: MemoryTable) -> None:
    """Do as docs/how-to/restore.md asks of an administrator: put the backup in place, paused."""
    backup.passes += 1_000
    world.memory = backup
    world.api_context = type(world.api_context)(world._store(), world.queue, world)
    store(world).set_pause(Pause("restore", "ada", world.now()))
    world.queue.messages.clear()


def store(world: World):
    return world.api_context.store


def compared(world: World, *, adopt: bool) -> Restore:
    store(world).save_restore(Restore(asked_at=world.now(), adopt=adopt))
    world.run(70)
    done = store(world).restore()
    assert done.compared_at is not None
    return done


def kinds(restore: Restore) -> dict[str, DifferenceKind]:
    return {each.job: each.kind for each in restore.differences}


@pytest.fixture
def day():
    """Two instances; a long job runs and another waits at the time of the backup, then an hour goes by."""
    world = World(pools=f"{P5}=2")
    world.submit("long", training_seconds=3 * HOUR)
    world.submit("short", training_seconds=1_200)
    world.submit("next", training_seconds=1_800)
    world.submit("later", training_seconds=3 * HOUR)
    world.run(300)
    backup = copied(world.memory)
    world.submit("urgent", priority=9, training_seconds=4 * HOUR)
    world.submit("brief", priority=8, training_seconds=60)
    world.run(HOUR)
    return world, backup


def test_nothing_happens_while_the_manager_is_paused(day):
    world, backup = day
    opened = list(world.opened)
    set_back(world, backup)
    before = copied(world.memory)
    world.run(1_200)
    assert world.opened == opened
    assert world.memory.jobs == before.jobs
    assert not [name for name, job in world.training_jobs.items() if job["TrainingJobStatus"] == "Stopping"]


def test_differences_are_listed_and_nothing_changes_without_adoption(day):
    world, backup = day
    set_back(world, backup)
    before = copied(world.memory)
    listed = compared(world, adopt=False)
    assert set(kinds(listed).values()) >= {DifferenceKind.ENDED, DifferenceKind.LOST}
    assert kinds(listed)["urgent"] is DifferenceKind.LOST
    assert listed.adopted == ()
    assert world.memory.jobs == before.jobs


def test_after_a_restore_no_job_is_lost_or_runs_twice_or_exceeds_the_cap(day):
    world, backup = day
    completed = {name for name, job in world.training_jobs.items() if job["TrainingJobStatus"] == "Completed"}
    set_back(world, backup)
    world.peaks.clear()
    opened = list(world.opened)
    adopted = compared(world, adopt=True)
    assert adopted.failed == ()
    assert compared(world, adopt=True).differences == (), "what is adopted is no difference any more"
    assert world.opened == opened
    store(world).set_pause(None)
    names = ("long", "short", "next", "later", "urgent", "brief")
    world.run_until_ended(*names, limit=30 * HOUR)
    assert {name: str(world.job(name).state) for name in names} == dict.fromkeys(names, "completed")
    assert world.doubles == set()
    assert world.peaks[P5] <= 2
    # A job that had completed is not started again.
    again = [name for name in world.opened if name not in opened and name.partition("-qstamp-")[0] in completed]
    assert again == []
    assert all(job.state in ENDED for job in world.memory.jobs.values())


def test_a_preempted_job_waits_again_and_a_held_one_takes_its_attempt():
    world = World(pools=f"{P5}=1")
    world.submit("low", training_seconds=2 * HOUR)
    world.run(400)
    backup = copied(world.memory)
    world.submit("high", priority=9, training_seconds=3 * HOUR)
    world.run(600)
    assert world.job("low").state is JobState.PREEMPTED
    set_back(world, backup)
    compared(world, adopt=True)
    assert world.states("low", "high") == {"low": "preempted", "high": "running"}
    store(world).set_pause(None)
    world.run_until_ended("low", "high", limit=20 * HOUR)
    assert world.states("low", "high") == {"low": "completed", "high": "completed"}
    assert world.doubles == set()
    assert world.peaks[P5] == 1
