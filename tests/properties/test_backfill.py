"""Backfill keeps its promises: reserved starts are not delayed, and no job starves under any order."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import P5, a_job, a_pool, at, pools_of
from instant_sim import InstantSim
from samples import examples
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.reasons.capacity import WaitsForCapacity

CAP = 8
HOUR = timedelta(hours=1)
PATIENCE = timedelta(hours=6)

jobs = st.lists(
    st.tuples(
        st.integers(0, 4_000),  # seconds after the one before
        st.integers(1, CAP),  # instances
        st.integers(1, 9_000),  # seconds of work
    ),
    min_size=2,
    max_size=25,
)


def arrivals(drawn, *, honest=True):
    """Jobs in order of arrival; an honest one has exactly its work as its time limit."""
    moment, found = 0, []
    for index, (pause, count, seconds) in enumerate(drawn):
        moment += pause
        limit = timedelta(seconds=seconds) if honest else timedelta(hours=3)
        job = a_job(f"j{index:02d}", entry_time=at(moment), units={P5: count}, max_runtime=limit)
        found.append((job, float(seconds)))
    return found


def pools():
    return pools_of(a_pool(cap=CAP))


@given(jobs, st.integers(1, 4))
@examples(150, deadline=None)
def test_with_honest_time_limits_a_reservation_only_moves_forward(drawn, depth):
    """EASY's guarantee, for the first of the queue: the start that it was promised is never put off."""
    promised = {}

    def watch(snapshot, plan, now):
        first = snapshot.waiting[0].name if snapshot.waiting else None
        for reserved in plan.reservations:
            if reserved.job == first:
                assert reserved.at <= promised.get(first, reserved.at), f"{first} put off"
                promised[first] = reserved.at

    sim = InstantSim(pools(), Policy(reservations=depth, patience=timedelta(days=99)), learns=False, watch=watch)
    sim.run(arrivals(drawn))
    assert all(sim.first_starts[name] <= moment for name, moment in promised.items())
    assert sim.peaks[P5] <= CAP


@given(jobs)
@examples(80, deadline=None)
def test_backfill_wastes_nothing_that_strict_order_would_use(drawn):
    """With honest limits no job of the queue's head waits longer than if no other had been let past it."""
    strict = InstantSim(pools(), Policy(order=Order.FIFO), learns=False).run(arrivals(drawn))
    easy = InstantSim(pools(), Policy(order=Order.BACKFILL), learns=False).run(arrivals(drawn))
    first_blocked = next((name for name in sorted(strict.jobs) if strict.wait_of(name) > timedelta(0)), None)
    if first_blocked is not None:
        assert easy.wait_of(first_blocked) <= strict.wait_of(first_blocked)


@pytest.mark.parametrize("order", list(Order))
@given(drawn=jobs, big=st.integers(0, 10), width=st.integers(4, CAP))
@example(drawn=[(0, 1, 4285), (0, 2, 6968), (278, 2, 5028), (0, 1, 2827), (0, 1, 279)], big=1, width=CAP)
@example(drawn=[(0, 1, 7375), (0, 2, 8942)], big=0, width=CAP)  # a pass at the very end of the patience
@examples(40, deadline=None)
def test_the_widest_job_waits_no_longer_than_patience_and_what_runs_then(order, drawn, big, width):
    """Endless small jobs, estimates that are wrong: once out of patience, no equal delays the widest job any more."""
    stream = [(pause % 900, 1 + count % 3, seconds) for pause, count, seconds in drawn * 6]
    stream.insert(min(big, len(stream)), (0, width, 600))
    sim = InstantSim(pools(), Policy(order=order, patience=PATIENCE, reservations=0))
    sim.run(arrivals(stream, honest=False))
    name = next(name for name, job in sim.jobs.items() if job.demand.size == width)
    ahead = sum(1 for job in sim.jobs.values() if job.order < sim.jobs[name].order)
    # Those that were before it in the queue may be out of patience too; each runs for at most 9,000 seconds. Under
    # `gittins` it need not wait for what runs to end, but for the shortest attempt, once for each job that becomes the
    # oldest beyond its patience: by its own patience, or since the one before it has ended.
    pins = Policy().gittins.min_attempt * (1 + 2 * ahead) if order is Order.GITTINS else timedelta(0)
    assert sim.wait_of(name) <= PATIENCE + pins + timedelta(seconds=9_000) * (1 + ahead)


@given(drawn=jobs)
@examples(40, deadline=None)
def test_under_gittins_no_job_waits_longer_than_patience_and_the_work_of_those_before_it(drawn):
    """Of jobs beyond their patience the oldest goes first in any case, so all in all they are served one by one."""
    stream = [(pause % 600, count, work) for pause, count, work in drawn * 3]
    sim = InstantSim(pools(), Policy(order=Order.GITTINS, patience=PATIENCE), restart=300)
    sim.run(arrivals(stream, honest=False))
    hour, before = Policy().gittins.min_attempt, timedelta(0)  # also between passes without an event
    for job in sorted(sim.jobs.values(), key=lambda job: job.order):
        waited = job.ended_at - job.entry_time - timedelta(seconds=job.at_work)
        assert waited <= PATIENCE + before + 2 * hour
        before += timedelta(seconds=job.at_work) + 2 * hour


@given(drawn=jobs, width=st.integers(1, CAP))
@examples(40, deadline=None)
def test_a_stream_of_narrow_jobs_runs_beside_a_job_out_of_patience_only_where_that_could_not(drawn, width):
    """Behind the first job in the queue, all together hold no unit that it needs, once those that ran have ended."""
    stream = [(60, width, 9_000), (60, CAP, 9_000), *((pause % 900, 1 + n % 3, work) for pause, n, work in drawn * 4)]
    sim = InstantSim(pools(), Policy(patience=timedelta(seconds=1), reservations=0))

    def watch(snapshot, plan, now):
        waits = {wait.job.name for wait in plan.waits}
        first = next((job for job in snapshot.waiting if job.name in waits and now - job.entry_time > HOUR), None)
        if first is not None and plan.starts:
            held = [*snapshot.active, *(start.job for start in plan.starts)]
            later = sum(job.demand.size for job in held if job.order > first.order)
            assert later <= CAP - first.demand.size

    sim.watch = watch
    sim.run(arrivals(stream, honest=False))


def test_an_estimate_that_is_outlived_moves_the_reservation_and_the_reason_says_so():
    """Ten jobs took a minute; the eleventh takes an hour. The job behind it then gets a new expected start."""
    told = []

    def watch(snapshot, plan, now):
        told.extend((now, w.reason) for w in plan.waits if w.job.name == "next")

    short = [(a_job(f"s{n}", entry_time=at(100 * n), units={P5: CAP}), 60.0) for n in range(10)]
    long = (a_job("long", entry_time=at(1_000), units={P5: CAP}), 3_600.0)
    sim = InstantSim(pools(), watch=watch)
    sim.run([*short, long, (a_job("next", entry_time=at(1_001), units={P5: CAP}), 60.0)])
    reasons = [(now, reason) for now, reason in told if isinstance(reason, WaitsForCapacity)]
    assert reasons[0][1].overdue is None
    assert reasons[0][1].expected < at(1_200)
    late = [reason for now, reason in reasons if now > at(1_400)]
    assert late, "nothing was said when the estimate had passed"
    assert all(reason.overdue == "long" and reason.expected > at(1_400) for reason in late)
