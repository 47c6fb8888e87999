"""Invariants of every plan, for any snapshot."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, note
from hypothesis import strategies as st

from builders import G5, NOW, P5, a_demand, a_job, a_launched_job, a_pool, a_running_job, at
from trainmaster.domain.capacity.units import covers, total
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Reservation
from trainmaster.domain.plan import Snapshot, Start, Wait
from trainmaster.domain.policy.settings import Order
from trainmaster.domain.reasons.capacity import BackingOff, Behind, CanNeverFit, Preempts, WaitsForRelease
from trainmaster.planner.preemption.preempt import may_be_preempted
from trainmaster.planner.schedule import schedule

TYPES = (P5, G5, "ml.trn1.32xlarge")
units = st.dictionaries(st.sampled_from(TYPES), st.integers(1, 4), min_size=1, max_size=2)
single = st.builds(lambda pool, count: {pool: count}, st.sampled_from(TYPES), st.integers(1, 4))
demands = st.one_of(
    units.map(a_demand),
    st.lists(single, min_size=2, max_size=3, unique_by=lambda u: next(iter(u))).map(lambda us: a_demand(*us)),
)
priorities = st.integers(-2, 2)
seconds = st.integers(-500, 500)


@st.composite
def waiting_jobs(draw, name):
    job = a_job(
        name,
        priority=draw(priorities),
        entry_time=at(draw(st.integers(-5, 0))),
        demand=draw(demands),
        preemptible=draw(st.booleans()),
    )
    if draw(st.integers(0, 5)) == 0:
        job = replace(job, retry_at=at(draw(seconds)), capacity_failures=1)
    if draw(st.integers(0, 5)) == 0:
        job = lifecycle.reserve(job, Reservation(job.demand.alternatives[0], at(draw(seconds))))
    return job


@st.composite
def active_jobs(draw, name):
    make = draw(st.sampled_from((a_running_job, a_launched_job)))
    job = make(
        name,
        units=draw(units),
        priority=draw(priorities),
        preemptible=draw(st.booleans()),
        now=at(-draw(st.integers(0, 4000))),
    )
    fate = draw(st.integers(0, 4))
    if fate == 0:
        return lifecycle.preempt(job, "other", at(-draw(st.integers(0, 8000))))
    return lifecycle.request_stop(job, NOW, "its user") if fate == 1 else job


@st.composite
def snapshots(draw):
    active = [draw(active_jobs(f"a{i}")) for i in range(draw(st.integers(0, 6)))]
    waiting = [draw(waiting_jobs(f"w{i}")) for i in range(draw(st.integers(0, 8)))]
    used = total(job.units for job in active)
    external = draw(st.dictionaries(st.sampled_from(TYPES), st.integers(0, 2), max_size=2))
    # Caps may have been lowered below what runs.
    caps = {name: max(0, used.get(name, 0) + draw(st.integers(-2, 5))) for name in TYPES}
    pools = {name: a_pool(name, cap) for name, cap in caps.items() if draw(st.integers(0, 9)) > 0}
    return Snapshot(pass_number=1, pools=pools, active=tuple(active), waiting=tuple(waiting), external=external)


def plan_of(snapshot):
    plan = schedule(snapshot, NOW, random.Random(1))
    note(str(plan))
    return plan


def free_in(snapshot):
    used = total(job.units for job in snapshot.active)
    return {n: p.cap - used.get(n, 0) - snapshot.external.get(n, 0) for n, p in snapshot.pools.items()}


def coming_in(snapshot):
    """Units that stopping jobs free, while their stop is younger than the reservation timeout."""
    limit = snapshot.policy.reservation_timeout
    coming = total(j.units for j in snapshot.active if j.stopping and j.attempt.stop_asked_at + limit > NOW)
    return {name: count for name, count in coming.items() if name in snapshot.pools}


@given(snapshots())
def test_starts_use_only_units_that_are_free_now(snapshot):
    free = free_in(snapshot)
    assert covers(free, total(start.units for start in plan_of(snapshot).starts))


@given(snapshots())
def test_every_waiting_job_has_exactly_one_start_or_wait(snapshot):
    plan = plan_of(snapshot)
    told = Counter(d.job.name for d in plan.decisions if isinstance(d, Start | Wait))
    assert told == Counter(job.name for job in snapshot.waiting)


@given(snapshots(), st.randoms(use_true_random=False))
def test_equal_snapshots_give_equal_plans_in_whatever_order_they_were_read(snapshot, shuffler):
    active, waiting = list(snapshot.active), list(snapshot.waiting)
    shuffler.shuffle(active)
    shuffler.shuffle(waiting)
    shuffled = replace(snapshot, active=tuple(active), waiting=tuple(waiting))
    assert plan_of(shuffled) == plan_of(snapshot)


@given(snapshots())
def test_victims_are_preemptible_known_to_sagemaker_and_of_strictly_lower_priority(snapshot):
    for preemption in plan_of(snapshot).preemptions:
        for victim in preemption.victims:
            assert may_be_preempted(victim)
            assert victim.priority < preemption.job.priority


@given(snapshots())
def test_no_job_is_preempted_for_two_others(snapshot):
    victims = Counter(victim.name for p in plan_of(snapshot).preemptions for victim in p.victims)
    assert all(count == 1 for count in victims.values())


@given(snapshots(), waiting_jobs("the one"))
def test_no_victim_is_needless(snapshot, job):
    """With any one victim left alone, the job could start on none of its alternatives."""
    alone = replace(snapshot, waiting=(replace(job, reservation=None),))
    there = total([free_in(alone), coming_in(alone)])
    for preemption in plan_of(alone).preemptions:
        freed = total([there, *(victim.units for victim in preemption.victims)])
        assert covers(freed, preemption.reservation.units)
        for victim in preemption.victims:
            left = {name: count - victim.units.get(name, 0) for name, count in freed.items()}
            assert not covers(left, preemption.reservation.units)


@given(snapshots(), waiting_jobs("the one"))
def test_no_job_is_preempted_for_one_that_fits_or_soon_will(snapshot, job):
    alone = replace(snapshot, waiting=(replace(job, reservation=None),))
    there = total([free_in(alone), coming_in(alone)])
    if any(covers(there, alternative) for alternative in job.demand.alternatives):
        assert not plan_of(alone).preemptions


@given(snapshots(), waiting_jobs("the one"))
def test_no_job_is_preempted_for_one_that_could_still_not_start(snapshot, job):
    alone = replace(snapshot, waiting=(replace(job, reservation=None),))
    could_go = [j.units for j in alone.active if may_be_preempted(j) and j.priority < job.priority]
    most = total([free_in(alone), coming_in(alone), *could_go])
    if not any(covers(most, alternative) for alternative in job.demand.alternatives):
        assert not plan_of(alone).preemptions


@given(snapshots())
def test_first_in_first_out_among_equals(snapshot):
    """A job starts before an earlier one of no higher standing only where that one does not need the same pool.

    The earlier one may be waiting for a reason of its own (back-off, can never fit), or its capacity may be on the
    way already; a job of strictly lower priority may pass as long as it can be preempted again.
    """
    plan = plan_of(replace(snapshot, policy=replace(snapshot.policy, order=Order.FIFO)))
    place = {decision.job.name: index for index, decision in enumerate(plan.decisions)}
    own_reason = BackingOff | CanNeverFit | WaitsForRelease | Preempts
    caps = {name: pool.cap for name, pool in snapshot.pools.items()}
    blocked = [wait for wait in plan.waits if not isinstance(wait.reason, own_reason)]
    for start in (start for start in plan.starts if start.job.reservation is None):
        for wait in blocked:
            passed = place[wait.job.name] < place[start.job.name]
            possible = [units for units in wait.job.demand.alternatives if covers(caps, units)]
            shares = bool(set(total(possible)) & set(start.units))
            if passed and shares and not isinstance(wait.reason, Behind):
                assert start.job.priority < wait.job.priority
                assert start.job.preemptible


@given(snapshots())
def test_every_pool_that_a_start_takes_from_is_one_that_the_job_named(snapshot):
    for start in plan_of(snapshot).starts:
        assert set(start.units) <= set(start.job.demand.pools)
        assert any(covers(start.units, alternative) for alternative in start.job.demand.alternatives)


@given(snapshots())
def test_waiting_for_a_release_ends(snapshot):
    for wait in plan_of(snapshot).waits:
        if isinstance(wait.reason, WaitsForRelease | Preempts):
            assert NOW < wait.reason.until <= NOW + snapshot.policy.reservation_timeout + timedelta(seconds=1)
