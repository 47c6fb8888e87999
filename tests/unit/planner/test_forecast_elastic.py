"""The estimated start of jobs that elastic jobs shrink for: giving instances back takes as long as a stop."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from builders import NOW, P5, a_job, a_pool, a_snapshot, an_observation, at
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.planner.forecast.forecast import forecast
from trainmaster.planner.reservations.expected_ends import OVERDUE_GRACE, STOP_DURATION
from trainmaster.planner.schedule import schedule

HOUR = timedelta(hours=1)
HOOKS = pytest.mark.parametrize("hook", list(Hook))


def wide(hook, *, limit=24 * HOUR):
    """A job of one to eight instances that has run with eight for an hour."""
    job = a_job("wide", units={P5: 1}, elastic=Elastic(min_instances=1, max_instances=8, hook=hook), max_runtime=limit)
    job = lifecycle.mark_launched(lifecycle.start(job, {P5: 8}, (), NOW - HOUR))
    for name in [job.attempt.training_job_name, *(member.training_job_name for member in job.attempt.members)]:
        seen = an_observation(job, training_job_name=name, secondary="Training", started_at=NOW - HOUR)
        job = lifecycle.observe(job, seen, NOW - HOUR)
    return job


def new_job(name="new", count=3, **fields):
    return a_job(name, units={P5: count}, **{"priority": 5, "max_runtime": HOUR, **fields})


def starts(active, *waiting):
    snapshot = a_snapshot(pools=[a_pool(P5, 8)], active=active, waiting=waiting)
    return forecast(snapshot, NOW, random.Random(1), schedule, frozenset(job.name for job in waiting))


@HOOKS
def test_a_job_is_expected_when_the_one_that_shrinks_for_it_has_given_and_not_when_the_hold_lapses(hook):
    assert starts([wide(hook)], new_job()) == {"new": NOW + STOP_DURATION}


@HOOKS
def test_a_shrink_that_is_under_way_is_expected_to_be_done_a_stop_after_it_was_asked_for(hook):
    shrinking = lifecycle.resize(wide(hook), 5, Cause.SHRINK, at(-60), until=at(HOUR.total_seconds()), freed_for="new")
    assert starts([shrinking], new_job()) == {"new": at(-60) + STOP_DURATION}


def test_a_shrink_that_takes_longer_than_a_stop_is_expected_soon():
    begun = at(-400)
    shrinking = lifecycle.resize(wide(Hook.MEMBERS), 5, Cause.SHRINK, begun, until=at(600), freed_for="new")
    assert starts([shrinking], new_job()) == {"new": NOW + OVERDUE_GRACE}


@HOOKS
def test_who_has_shrunk_runs_on_the_slower_for_it(hook):
    """With 23 hours left at eight instances, it needs eight times as long with one, less what it does meanwhile."""
    later = new_job("later", 8, priority=-1)
    found = starts([wide(hook)], new_job("new", 7), later)
    assert found["new"] == NOW + STOP_DURATION
    exact = NOW + STOP_DURATION + 8 * (23 * HOUR - STOP_DURATION)
    assert exact <= found["later"] <= NOW + 1.2 * (exact - NOW)


def test_one_that_ends_while_it_shrinks_has_given_all_by_then():
    """Its end does not wait for the members that were asked to leave."""
    ending = wide(Hook.MEMBERS, limit=HOUR + timedelta(minutes=1))
    all_of_it = new_job("all", 8, priority=-1)
    assert starts([ending], new_job("new", 7), all_of_it)["new"] == NOW + timedelta(minutes=1)
