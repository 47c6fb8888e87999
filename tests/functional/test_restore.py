"""A table that is set back while SageMaker goes on: no job is lost, runs twice, or exceeds a cap.

The table is set back as docs/how-to/restore.md has it, in memory and behind a DynamoDB engine: older rows take the
place of all others, paused by hand.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from builders import ADA, P5
from samples import sample
from tables import new_table
from trainmaster.adapters.dynamodb.control.pause import pause_of
from trainmaster.domain.access.audit import AuditAction, AuditEntry
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.domain.restore import DifferenceKind, Restore
from trainmaster.local.memory.table import MemoryTable
from trainmaster.service.auditing.listing import AuditQuery, list_audit
from trainmaster.service.change import cancel
from trainmaster.service.restoring.maintenance import ask_restore, manager_status, resume
from world import BRISK, TABLE, Faults, World, in_chunks, kills

HOUR = 3_600
PAUSED = {"S": "table restore"}
CHUNKS = 36

pytestmark = pytest.mark.usefixtures("quiet")


@contextmanager
def a_world(engine: str = "dynamodb", **arguments: Any) -> Iterator[World]:
    if engine == "memory":
        yield World(**arguments)
        return
    with new_table() as client:
        yield World(client, **arguments)


@pytest.fixture(params=sample(["memory", "dynamodb"]))
def engine(request):
    return request.param


def rows_of(world: World) -> list[dict[str, Any]]:
    pages = world.dynamodb.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
    return [row for page in pages for row in page["Items"]]


def copied(table: MemoryTable) -> MemoryTable:
    lock, table.lock = table.lock, None  # type: ignore[assignment] -- locks cannot be copied
    backup = copy.deepcopy(table)
    table.lock = backup.lock = lock
    return backup


def backup_of(world: World) -> Any:
    """All that the table has now."""
    return copied(world.memory) if world.dynamodb is None else rows_of(world)


def set_back(world: World, backup: Any) -> None:
    """Put a backup in the place of the table, paused; the messages of the hours since then are gone."""
    if world.dynamodb is None:
        world.memory = copied(backup)
        world.memory.pause = pause_of(PAUSED)
        world.api_context = type(world.api_context)(world._store(), world.queue, world, world.api_context.access)
    else:
        for row in rows_of(world):
            world.dynamodb.delete_item(TableName=TABLE, Key={"pk": row["pk"], "sk": row["sk"]})
        for row in backup:
            world.dynamodb.put_item(TableName=TABLE, Item=row)
        world.dynamodb.update_item(
            TableName=TABLE,
            Key={"pk": {"S": "STATE"}, "sk": {"S": "control"}},
            UpdateExpression="SET paused = :p",
            ExpressionAttributeValues={":p": PAUSED},
        )
    world.queue.messages.clear()
    world.due.clear()


def compared(world: World, *, adopt: bool) -> Restore:
    """Compare as `trainmaster restore` does before it resumes the manager."""
    ask_restore(world.api_context, ADA, adopt=adopt)
    world.run(70)
    done = manager_status(world.api_context, ADA).restore
    assert done is not None
    assert done.compared_at is not None
    return done


def kinds(restore: Restore) -> dict[str, DifferenceKind]:
    return {each.job: each.kind for each in restore.differences}


def audited(world: World, action: AuditAction) -> list[AuditEntry]:
    return list(list_audit(world.api_context, ADA, AuditQuery(limit=100, action=action)).entries)


NAMES = ("long", "short", "next", "later", "urgent", "brief")


@pytest.fixture
def day(engine):
    """Two instances; a long job runs and another waits at the time of the backup, then an hour goes by."""
    with a_world(engine, pools=f"{P5}=2") as world:
        world.submit("long", training_seconds=3 * HOUR)
        world.submit("short", training_seconds=1_200)
        world.submit("next", training_seconds=1_800)
        world.submit("later", training_seconds=3 * HOUR)
        world.run(300)
        backup = backup_of(world)
        world.submit("urgent", priority=9, training_seconds=4 * HOUR)
        world.submit("brief", priority=8, training_seconds=60)
        world.run(HOUR, step=20)
        yield world, backup


def jobs_of(world: World) -> dict[str, Any]:
    return {job.name: job for job in (world.api_context.store.find(name) for name in NAMES) if job is not None}


def test_nothing_happens_while_the_manager_is_paused(day):
    world, backup = day
    opened = list(world.opened)
    set_back(world, backup)
    before = jobs_of(world)
    world.run(1_200)
    assert world.opened == opened
    assert jobs_of(world) == before
    assert not [name for name, job in world.training_jobs.items() if job["TrainingJobStatus"] == "Stopping"]


def test_the_bound_of_a_comparison_stays_until_the_manager_resumes(day):
    """Adopted attempts are newer than the table was: a comparison that starts at them would miss others."""
    world, backup = day
    set_back(world, backup)
    first, adopted, again = (compared(world, adopt=adopt).since for adopt in (False, True, True))
    assert first is not None
    assert first == adopted == again
    resume(world.api_context, ADA)
    assert manager_status(world.api_context, ADA).restore.since is None


def test_differences_are_listed_and_nothing_changes_without_adoption(day):
    world, backup = day
    set_back(world, backup)
    before = jobs_of(world)
    listed = compared(world, adopt=False)
    assert set(kinds(listed).values()) >= {DifferenceKind.ENDED, DifferenceKind.LOST}
    assert kinds(listed)["urgent"] is DifferenceKind.LOST
    assert listed.adopted == ()
    assert jobs_of(world) == before
    assert audited(world, AuditAction.ADOPT) == []


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
    resume(world.api_context, ADA)
    world.run_until_ended(*NAMES, limit=30 * HOUR)
    assert {name: str(world.job(name).state) for name in NAMES} == dict.fromkeys(NAMES, "completed")
    assert world.doubles == set()
    assert world.peaks[P5] <= 2
    # A job that had completed is not started again.
    again = [name for name in world.opened if name not in opened and name.partition("-qstamp-")[0] in completed]
    assert again == []
    assert all(job.state in ENDED for job in jobs_of(world).values())


def test_each_adoption_has_an_entry_of_the_administrator_that_asked(day):
    world, backup = day
    set_back(world, backup)
    before = jobs_of(world)
    done = compared(world, adopt=True)
    assert done.asked_by == ADA
    entries = audited(world, AuditAction.ADOPT)
    assert {entry.job for entry in entries} == set(done.adopted) == kinds(done).keys()
    assert {entry.principal for entry in entries} == {ADA.principal}
    after = jobs_of(world)
    for name in done.adopted:
        mine = [entry for entry in reversed(entries) if entry.job == name]
        stored = str(before[name].state) if name in before else None
        assert sorted({entry.before.get("state", stored) for entry in mine} & {stored}) == [stored], name
        assert str(after[name].state) in {entry.after.get("state") for entry in mine}, name
    assert len(audited(world, AuditAction.RESTORE)) == 1
    resume(world.api_context, ADA)
    (resumed,) = audited(world, AuditAction.RESUME)
    assert resumed.before["reason"] == "table restore"
    world.run(300)
    assert len(audited(world, AuditAction.ADOPT)) == len(entries), "passes leave no entries"


def test_a_preempted_job_waits_again_and_a_held_one_takes_its_attempt(engine):
    with a_world(engine, pools=f"{P5}=1") as world:
        world.submit("low", training_seconds=2 * HOUR)
        world.run(400)
        backup = backup_of(world)
        world.submit("high", priority=9, training_seconds=3 * HOUR)
        world.run(600)
        assert world.job("low").state is JobState.PREEMPTED
        set_back(world, backup)
        compared(world, adopt=True)
        assert world.states("low", "high") == {"low": "preempted", "high": "running"}
        resume(world.api_context, ADA)
        world.run_until_ended("low", "high", limit=20 * HOUR)
        assert world.states("low", "high") == {"low": "completed", "high": "completed"}
        assert world.doubles == set()
        assert world.peaks[P5] == 1


def an_evening(world: World) -> None:
    """Set the table back to before a preemption, an end and two submissions, all hours before its comparison."""
    world.submit("long", training_seconds=300)
    world.submit("done", priority=10, training_seconds=150)
    world.submit("short", training_seconds=200)
    world.submit("next", training_seconds=100)
    world.run(120, step=20)
    backup = backup_of(world)
    world.submit("urgent", priority=9, training_seconds=2 * HOUR + 900)
    world.submit("brief", priority=8, training_seconds=30)
    world.run(400, step=20)
    set_back(world, backup)
    world.simulator.advance(2 * HOUR)


DIFFERENT = ("long", "short", "done", "urgent", "brief")
EVENING = (*DIFFERENT, "next")


def finish(world: World) -> None:
    """Adopt the differences whatever happens meanwhile, resume, and prove that nothing is lost or doubled."""
    completed = {name for name, job in world.training_jobs.items() if job["TrainingJobStatus"] == "Completed"}
    opened = list(world.opened)
    ask_restore(world.api_context, ADA, adopt=True)
    for _ in range(20):
        world.run(70, step=35)
        done = manager_status(world.api_context, ADA).restore
        if done is not None and done.compared_at is not None:
            break
    assert done.compared_at is not None
    assert world.opened == opened
    if done.failed:
        assert compared(world, adopt=True).failed == ()
    assert compared(world, adopt=True).differences == ()
    assert {entry.job for entry in audited(world, AuditAction.ADOPT)} == set(DIFFERENT)
    resume(world.api_context, ADA)
    world.run_until_ended(*EVENING, limit=2 * HOUR)
    assert set(world.states(*EVENING).values()) == {"completed"}, world.states(*EVENING)
    assert world.doubles == set()
    assert world.peaks[P5] <= 3
    assert [n for n in world.opened if n not in opened and n.partition("-qstamp-")[0] in completed] == []


@cache
def calls_of_restore() -> list[str]:
    """The manager's AWS calls from the request on, in an untouched run, up to the end of the adoption."""
    with a_world(pools=f"{P5}=3", profile=BRISK) as world:
        an_evening(world)
        world.faults.calls.clear()
        done = compared(world, adopt=True)
        calls = list(world.faults.calls)
        assert set(kinds(done)) == set(DIFFERENT)
        assert set(kinds(done).values()) == {DifferenceKind.ENDED, DifferenceKind.NEWER, DifferenceKind.LOST}
        return calls


def broken_runs(numbers: list[int], **faults: Any) -> None:
    for number in numbers:
        with a_world(pools=f"{P5}=3", profile=BRISK, faults=Faults()) as world:
            an_evening(world)
            world.faults.calls.clear()
            for member, value in faults.items():
                setattr(world.faults, member, value(number))
            finish(world)


@in_chunks(CHUNKS)
@pytest.mark.parametrize("reads", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["change", "read"])
def test_a_manager_killed_after_any_call_of_a_restore_loses_nothing_and_repeats_it(reads, chunk):
    broken_runs(kills(calls_of_restore(), reads=reads)[chunk::CHUNKS], kill_after=lambda number: number)


@in_chunks(2 * CHUNKS)
@pytest.mark.parametrize("code", ["ThrottlingException", pytest.param("InternalServerError", marks=pytest.mark.slow)])
def test_any_call_of_a_restore_may_fail(code, chunk):
    numbers = list(range(1, len(calls_of_restore()) + 1))[chunk :: 2 * CHUNKS]
    broken_runs(numbers, fail=lambda number: {number: code})


@in_chunks(CHUNKS)
def test_the_answer_of_any_call_of_a_restore_may_be_lost(chunk):
    numbers = kills(calls_of_restore(), reads=False)[chunk::CHUNKS]
    broken_runs(numbers, lose=lambda number: frozenset({number}))


def test_what_people_do_while_the_manager_is_paused_hides_no_difference(engine):
    """A cancellation is newer than all that the table has lost."""
    with a_world(engine, pools=f"{P5}=3", profile=BRISK) as world:
        an_evening(world)
        world.submit("late")
        cancel(world.api_context, ADA, "late")
        found = kinds(compared(world, adopt=False))
        assert found["urgent"] is found["brief"] is DifferenceKind.LOST


def test_a_restore_needs_a_pause(engine):
    with a_world(engine) as world, pytest.raises(IllegalTransition):
        ask_restore(world.api_context, ADA, adopt=True)
