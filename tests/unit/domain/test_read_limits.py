"""Depth to which a pass reads a lane: as far as jobs could start, from any source of units."""

from __future__ import annotations

import pytest

from builders import P5, a_job, a_pool, a_preempting_job, a_running_job, pools_of
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.read_limits import FIRST, SPARE, ReadLimits, first_guess
from trainmaster.domain.policy.settings import Order

CAP = 80


def wanted(*active, external=0, priority=0):
    head = a_job("head", units={P5: 1}, priority=priority)
    return ReadLimits(pools_of(a_pool(P5, CAP)), active, {P5: external}, Catalogue()).for_query(head)


def running(count, **fields):
    return [a_running_job(f"job{number}", units={P5: 1}, **fields) for number in range(count)]


@pytest.mark.parametrize(
    ("active", "count"),
    [
        ([], CAP),
        (running(30), CAP - 30),
        (running(CAP, priority=1), CAP),
        ([a_preempting_job(f"job{number}", units={P5: 1}) for number in range(CAP)], CAP),
    ],
    ids=["free", "partly free", "of lower priority", "being freed"],
)
def test_as_many_are_read_as_units_could_come_to_them_and_a_few_more(active, count):
    assert wanted(*active, priority=2 if active and active[0].priority else 0) == count + SPARE


@pytest.mark.parametrize(
    "active",
    [running(CAP), running(CAP, priority=1), running(CAP, preemptible=False)],
    ids=["equals", "of higher priority", "never preempted"],
)
def test_units_of_equal_and_higher_jobs_are_not_counted(active):
    assert wanted(*active) == FIRST


def test_external_units_are_not_available():
    assert wanted(external=CAP - 40) == 40 + SPARE


def test_the_guess_before_a_lane_is_read_is_what_its_first_job_will_ask_for_at_least():
    stopping = [a_preempting_job("stopping", units={P5: 1})]
    for active in ([], running(30), running(30) + stopping, running(CAP)):
        guess = first_guess(pools_of(a_pool(P5, CAP)), active, {P5: 4}, Order.BACKFILL)
        assert guess(a_job("head").lane) == wanted(*active, external=4)
        assert guess("team/several ml.g5.2xlarge") == FIRST
