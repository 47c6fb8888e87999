"""The schedule ahead, for any queue: within the caps, and with the estimated starts of `estimate`."""

from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given, note
from hypothesis import strategies as st

from builders import G5, NOW, P5, a_demand, a_job, a_pool, a_running_job, at
from samples import examples
from trainmaster.domain.capacity.units import total
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.jobs.run_times import History, Sketch, bucket_of
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.records import Records
from trainmaster.planner.forecast import forecast
from trainmaster.planner.forecast.schedule_ahead import expected_ends, schedule_ahead
from trainmaster.planner.reservations.expected_ends import STOP_DURATION
from trainmaster.planner.schedule import schedule

TYPES = (P5, G5)
AHEAD = timedelta(days=3)
units = st.dictionaries(st.sampled_from(TYPES), st.integers(1, 4), min_size=1, max_size=2)
hours = st.integers(1, 30).map(lambda n: timedelta(hours=n))


@st.composite
def queues(draw):
    """A queue whose jobs fit, with preemption, elastic jobs, run times that are known or not, and each order."""
    active = [
        a_running_job(
            f"r{i}",
            units=draw(units),
            priority=draw(st.integers(-1, 1)),
            max_runtime=draw(hours),
            now=at(-draw(st.integers(0, 40_000))),
            checkpointed=draw(st.booleans()),
        )
        for i in range(draw(st.integers(0, 4)))
    ]
    if draw(st.booleans()):
        bounds = Elastic(min_instances=1, max_instances=4)
        active.append(a_running_job("wide", units={P5: 3}, elastic=bounds, max_runtime=timedelta(hours=9)))
    waiting = [
        a_job(
            f"w{i}",
            priority=draw(st.integers(-1, 2)),
            entry_time=at(draw(st.integers(-9, 0))),
            demand=a_demand(draw(units)),
            max_runtime=draw(hours),
        )
        for i in range(draw(st.integers(0, 10)))
    ]
    used = total(job.units for job in active)
    pools = {name: a_pool(name, used.get(name, 0) + draw(st.integers(0, 4))) for name in TYPES}
    weights = {bucket_of(3600 * each): 10.0 for each in draw(st.lists(st.integers(1, 20), max_size=3))}
    history = History({kind: Sketch(weights) for kind in a_job().run_time_classes}) if weights else History()
    return Snapshot(
        pass_number=1,
        pools=pools,
        active=tuple(active),
        waiting=tuple(sorted(waiting, key=lambda job: job.order)),
        records=Records(history),
        policy=Policy(order=draw(st.sampled_from(list(Order)))),
    )


def ahead(queue):
    wanted = frozenset(job.name for job in queue.waiting)
    return schedule_ahead(queue, NOW, random.Random(1), schedule, wanted, NOW + AHEAD)[0]


def most_at_once(intervals, pool):
    """Return the largest number of units of a pool that are held at the same time."""
    events = [(end, -held.units[pool]) for held in intervals if pool in held.units for end in [held.end.expected]]
    events += [(held.start.expected, held.units[pool]) for held in intervals if pool in held.units]
    most = now = 0
    for _, change in sorted(events):
        now += change
        most = max(most, now)
    return most


@examples(40)
@given(queues())
def test_no_pool_is_ever_held_beyond_its_cap(queue):
    intervals = ahead(queue)
    note("\n".join(f"{i.job.name} {dict(i.units)} {i.start.expected} {i.end.expected}" for i in intervals))
    for name, pool in queue.pools.items():
        assert most_at_once(intervals, name) <= pool.cap


@examples(40)
@given(queues())
def test_starts_are_the_estimated_starts(queue):
    wanted = frozenset(job.name for job in queue.waiting)
    estimates = forecast.estimate(queue, NOW, random.Random(1), schedule, wanted)
    first = {}
    for interval in ahead(queue):
        first.setdefault(interval.job.name, interval.start)
    soon = {name: start for name, start in estimates.items() if start.expected < NOW + AHEAD}
    assert {name: first[name] for name in soon} == soon


@examples(40)
@given(queues())
def test_every_running_job_has_one_interval_from_now_with_its_range(queue):
    intervals = [interval for interval in ahead(queue) if interval.running]
    assert sorted(interval.job.name for interval in intervals) == sorted(job.name for job in queue.active)
    ends = expected_ends(queue, NOW)
    for interval in intervals:
        assert interval.start.expected == NOW
        assert interval.end.low <= interval.end.expected <= interval.end.high
        # It may be preempted or shrunk; a job that is overdue by then ends later for it.
        assert interval.end.expected <= max(ends[interval.job.name].expected, NOW + STOP_DURATION)


def test_a_queue_too_long_for_the_planner_is_approximated_within_the_cap():
    waiting = [a_job(f"w{i:03}", units={P5: 1 + i % 2}, max_runtime=timedelta(hours=3)) for i in range(550)]
    running = a_running_job("r", units={P5: 2}, max_runtime=timedelta(hours=1))
    queue = Snapshot(pass_number=1, pools={P5: a_pool(P5, 3)}, active=(running,), waiting=tuple(waiting))
    intervals = ahead(queue)
    assert len({interval.job.name for interval in intervals}) > 20
    assert most_at_once(intervals, P5) <= 3
    test_starts_are_the_estimated_starts.hypothesis.inner_test(queue)
