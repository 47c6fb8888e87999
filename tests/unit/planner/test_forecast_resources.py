"""The estimated start of jobs that ask for resources, with the pools that there are now and those that will be made."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import G5, NOW, P5, a_job, a_pool, a_running_job, at, pools_of
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Expansion, Policy
from trainmaster.planner.forecast.forecast import estimate, forecast
from trainmaster.planner.schedule import schedule

HOUR = timedelta(hours=1)
WIDE, HUGE = Resources(accelerators=8), Resources(accelerators=8, accelerator_memory_gib=640)
P4 = "ml.p4d.24xlarge"


def asking(name, resources=WIDE, instances=1, alternatives=(), **fields):
    """A job as stored: with the pools that there were when it was submitted."""
    demand = Demand(tuple(alternatives), queue_selects_pool=True, resources=resources, instances=instances)
    return a_job(name, demand=demand, **{"max_runtime": HOUR, **fields})


def starts(*waiting, active=(), pools=None, policy=None):
    in_force = pools_of(*(pools or [a_pool(P4, 1)]))
    found = Snapshot(pass_number=1, pools=in_force, active=active, waiting=waiting, policy=policy or Policy())
    return forecast(found, NOW, random.Random(1), schedule, frozenset(job.name for job in waiting))


def test_a_start_is_foreseen_in_the_pools_of_now():
    holder = a_running_job("r", units={P4: 1}, max_runtime=2 * HOUR)
    assert starts(asking("a", alternatives=({"gone": 1},)), active=[holder]) == {"a": NOW + 2 * HOUR}


def test_of_a_job_that_no_pool_could_hold_nothing_is_said_and_others_are_foreseen():
    waiting = [asking("huge", HUGE), asking("many", instances=3), asking("a"), asking("b", entry_time=at(1))]
    assert starts(*waiting) == {"a": NOW, "b": NOW + HOUR}


def test_a_long_queue_of_them_is_told_roughly():
    waiting = [asking(f"j{n:04}", entry_time=at(n)) for n in range(800)]
    found = starts(*waiting, asking("huge", HUGE, entry_time=at(900)))
    assert "huge" not in found
    assert (found["j0000"], found["j0799"]) == (NOW, NOW + 799 * HOUR)


def test_the_pool_that_the_manager_will_make_is_foreseen():
    rules = Expansion(enabled=True, types=(P5,), max_per_type=1, max_instances=1)
    policy = Policy(expansion=rules)
    waiting = [asking("huge", HUGE), asking("later", HUGE, entry_time=at(1))]
    assert starts(*waiting, policy=policy) == {"huge": NOW, "later": NOW + HOUR}


@pytest.mark.parametrize("made", [True, False])
def test_two_that_share_a_pool_that_there_is_not_yet_are_told_together(made):
    policy = Policy(expansion=Expansion(enabled=made, types=(P5,), max_per_type=1, max_instances=1))
    waiting = (asking("huge", HUGE), asking("later", HUGE, entry_time=at(1)))
    snapshot = Snapshot(pass_number=1, pools=pools_of(a_pool(G5, 1)), waiting=waiting, policy=policy)
    found = estimate(snapshot, NOW, random.Random(1), schedule, frozenset({"later"}))
    assert ("later" in found) is made


def test_what_is_learned_of_such_jobs_outlives_the_pools():
    job = asking("a", alternatives=({P4: 1},))
    assert job.run_time_classes == replace(job, demand=replace(job.demand, alternatives=({P5: 1},))).run_time_classes
    assert job.run_time_classes != asking("b", HUGE).run_time_classes
