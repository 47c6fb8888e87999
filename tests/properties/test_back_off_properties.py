"""No job starts in front of a job of higher priority that backs off for lack of capacity and would fit."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, note
from hypothesis import strategies as st

from builders import G5, NOW, P5, a_demand, a_job, a_pool, a_running_job, a_starting_job, at
from trainmaster.domain.capacity.catalogue import Catalogue, ReportedQuota
from trainmaster.domain.capacity.units import total
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons.capacity import BackingOff
from trainmaster.domain.records import Records
from trainmaster.planner.schedule import schedule

TYPES = (P5, G5)
single = st.builds(lambda pool, count: {pool: count}, st.sampled_from(TYPES), st.integers(1, 4))
demands = st.lists(single, min_size=1, max_size=2, unique_by=lambda units: next(iter(units))).map(
    lambda units: a_demand(*units)
)


@st.composite
def waiting_jobs(draw, name):
    fields = {"priority": draw(st.integers(-2, 2)), "demand": draw(demands), "preemptible": draw(st.booleans())}
    fields["entry_time"] = at(draw(st.integers(-500, -400)))
    if draw(st.booleans()):
        return a_job(name, **fields)
    started, refused = at(-draw(st.integers(1, 300))), at(-draw(st.integers(0, 1)))
    tried = a_starting_job(name, now=started, **fields)
    tried = lifecycle.mark_launched(tried) if draw(st.booleans()) else tried
    return lifecycle.requeue_unlaunched(tried, refused, "ResourceLimitExceeded: full")


@st.composite
def snapshots(draw):
    active = [
        a_running_job(f"a{n}", units=draw(single), priority=draw(st.integers(-2, 2)), now=at(-1_000), preemptible=False)
        for n in range(draw(st.integers(0, 3)))
    ]
    waiting = [draw(waiting_jobs(f"w{n}")) for n in range(draw(st.integers(1, 7)))]
    used = total(job.units for job in active)
    pools = {name: a_pool(name, used.get(name, 0) + draw(st.integers(0, 8))) for name in TYPES}
    reported = draw(st.dictionaries(st.sampled_from(TYPES), st.integers(0, 8), max_size=2))
    quotas = {name: ReportedQuota(limit, at(-draw(st.integers(0, 5_000)))) for name, limit in reported.items()}
    return Snapshot(
        pass_number=1,
        pools=pools,
        active=tuple(active),
        waiting=tuple(waiting),
        catalogue=Catalogue(reported=quotas),
        records=Records(freed={name: at(-draw(st.integers(0, 600))) for name in draw(st.sets(st.sampled_from(TYPES)))}),
    )


def free_in(snapshot):
    used = total(job.units for job in snapshot.active)
    caps = {name: pool.cap for name, pool in snapshot.pools.items()}
    for name, quota in snapshot.catalogue.reported.items():
        if quota.at + timedelta(hours=1) > NOW:
            caps[name] = min(caps[name], quota.limit)
    return {name: cap - used.get(name, 0) for name, cap in caps.items()}


def wanted_before(snapshot, job):
    """All that other jobs of its priority or a higher one could take."""
    others = (other for other in snapshot.waiting if other.name != job.name and other.priority >= job.priority)
    return total(units for other in others for units in other.demand.alternatives)


def woken(snapshot, job):
    freed, since = snapshot.records.freed, job.attempt.created_at
    return any(freed.get(pool, since) > since for pool in job.demand.pools)


@given(snapshots())
def test_no_lower_priority_starts_where_a_job_in_back_off_would_fit(snapshot):
    plan = schedule(snapshot, NOW, random.Random(1))
    note(str(plan))
    free, started = free_in(snapshot), {start.job.name for start in plan.starts}
    for job in snapshot.waiting:
        if job.retry_at is None or job.name in started or woken(snapshot, job):
            continue
        before = wanted_before(snapshot, job)
        fits = [u for u in job.demand.alternatives if all(n <= free[p] - before.get(p, 0) for p, n in u.items())]
        for start in plan.starts:
            if start.job.priority < job.priority:
                assert all(start.units.keys().isdisjoint(units) for units in fits)


@given(snapshots())
def test_no_equal_that_needs_as_much_starts_where_a_job_in_back_off_would_fit(snapshot):
    plan = schedule(snapshot, NOW, random.Random(1))
    note(str(plan))
    free, taken = free_in(snapshot), total(start.units for start in plan.starts)
    waiting = {job.name: job for job in snapshot.waiting}
    for wait in plan.waits:
        job = waiting[wait.job.name]
        lacked = {} if job.retry_at is None or woken(snapshot, job) else job.attempt.units
        for pool, count in lacked.items():
            if not isinstance(wait.reason, BackingOff) or taken.get(pool, 0) + count > free[pool]:
                continue
            equals = (start for start in plan.starts if start.job.priority == job.priority)
            assert all(start.units.get(pool, 0) < count for start in equals if start.job.order > job.order)


@given(snapshots())
def test_a_job_in_back_off_starts_only_elsewhere_unless_units_became_free_since_its_last_start(snapshot):
    starts = {start.job.name: start.units for start in schedule(snapshot, NOW, random.Random(1)).starts}
    for job in snapshot.waiting:
        if job.retry_at is not None and job.name in starts:
            assert woken(snapshot, job) or starts[job.name].keys().isdisjoint(job.attempt.units)


@given(snapshots())
def test_no_start_exceeds_a_quota_that_sagemaker_reported(snapshot):
    free, taken = free_in(snapshot), total(s.units for s in schedule(snapshot, NOW, random.Random(1)).starts)
    assert all(count <= free[pool] for pool, count in taken.items())


@given(snapshots())
def test_jobs_that_do_not_back_off_are_not_woken(snapshot):
    plain = replace(snapshot, waiting=tuple(job for job in snapshot.waiting if job.retry_at is None))
    others = replace(plain, records=Records())
    assert schedule(plain, NOW, random.Random(1)).decisions == schedule(others, NOW, random.Random(1)).decisions
