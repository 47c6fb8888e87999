"""Image jobs that start in one pass are committed together, and their launches by their first reports alone."""

from __future__ import annotations

import random
from functools import cache

import pytest

from builders import ADA
from image_runs_world import ImageRunsWorld
from trainmaster.domain.jobs.job import JobState
from trainmaster.planner.schedule import schedule
from trainmaster.service.apply_plan import MAX_BATCH, PassReport, apply_plan
from trainmaster.service.change import cancel
from world import Faults

NAMES = ("one", "two", "three", "four")
TAKES = 12
"""Requests: three of those jobs."""

pytestmark = pytest.mark.usefixtures("quiet")


def story(**faults):
    """Four jobs come before the manager wakes; three fit at once."""
    world = ImageRunsWorld(takes=TAKES, faults=Faults(**faults))
    for name in NAMES:
        world.enter(name)
    world.run_until_ended(*NAMES, limit=2_000)
    assert [str(world.job(name).state) for name in NAMES] == ["completed"] * 4
    assert all(count == 1 for count in world.finished.values())
    assert all(len(world.job(name).attempts) == 1 for name in NAMES)
    assert world.most <= TAKES
    return world


@cache
def calls_until_they_run():
    """Count the calls until all three are launched, and one more."""
    calls = story().faults.calls
    return calls.index("dispatch", calls.index("dispatch") + 2) + 3


def carried(world, before=lambda: None):
    """Apply a pass's plan after something has happened since it was made; return the report."""
    manager_context = world.application().manager_context
    snapshot = manager_context.store.begin_pass()
    report = PassReport(snapshot.pass_number, plan=schedule(snapshot, world.now(), random.Random(1)))
    before()
    world.faults.armed = True
    apply_plan(manager_context, snapshot, report)
    world.faults.armed = False
    return report


def test_up_to_ten_start_by_one_transaction_and_their_launches_are_confirmed_by_their_reports():
    world = ImageRunsWorld(takes=4 * (MAX_BATCH + 2))
    names = [f"image{number:02}" for number in range(MAX_BATCH + 2)]
    for name in names:
        world.enter(name)
    assert carried(world).started == names
    assert world.faults.calls.count("transition") == 2
    jobs = [world.job(name) for name in names]
    assert all(job.state is JobState.STARTING and not job.attempt.launched for job in jobs)
    world.run(5)
    jobs = [world.job(name) for name in names]
    assert all(job.state is JobState.RUNNING and job.attempt.launched for job in jobs)


def test_one_that_has_changed_meanwhile_keeps_no_other_from_starting():
    world = ImageRunsWorld(takes=TAKES)
    for name in NAMES:
        world.enter(name)
    report = carried(world, lambda: cancel(world.api_context, ADA, "one"))
    # They have come at once, so that they start by name.
    assert (report.started, report.conflicts) == (["four", "three"], 1)
    assert not world.job("one").attempts
    assert {job for job, _, _ in world.regions.messages} == set(report.started)


class IdleWorld(ImageRunsWorld):
    """A world whose workers take no message: as many as there may be are busy."""

    def work(self):
        """Do nothing."""


def passes_for(world, seconds):
    """Have the manager woken every ten seconds; return its calls."""
    world.faults.calls.clear()
    for _ in range(seconds // 10):
        world.run(10)
        world.queue.wake(world.api_context.store.read_snapshot().pass_number)
    return world.faults.calls


def test_a_launch_is_repeated_and_confirmed_after_a_minute_without_a_report_and_not_before():
    world = IdleWorld(takes=TAKES)
    world.enter("one")
    world.run(5)
    assert passes_for(world, 40).count("create") == 0
    assert not world.job("one").attempt.launched
    assert passes_for(world, 90).count("create") == 1
    assert world.job("one").attempt.launched
    assert passes_for(world, 40).count("create") == 0


def test_a_job_that_is_stopped_before_its_run_reports_ends_without_a_worker():
    world = IdleWorld(takes=TAKES)
    world.enter("one")
    world.run(5)
    cancel(world.api_context, ADA, "one")
    world.run(20)
    assert world.job("one").state is JobState.STOPPED
    assert world.runs.run("one") is None


@pytest.mark.parametrize("fault", ["kill_after", "overtake_after"])
def test_a_manager_killed_or_overtaken_between_them_loses_nothing(fault):
    for number in range(1, calls_until_they_run()):
        world = story(**{fault: number})
        assert world.killed + world.overtaken == 1


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError"])
def test_any_of_their_calls_may_fail(code):
    for number in range(1, calls_until_they_run()):
        story(fail={number: code})


def test_any_of_their_answers_may_be_lost():
    for number in range(1, calls_until_they_run()):
        story(lose=frozenset({number}))
