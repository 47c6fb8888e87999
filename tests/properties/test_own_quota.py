"""A job within its share's own quota gets its units in the same pass, whatever borrowers of other shares wait."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from builders import NOW, a_job, a_pool, a_running_job, a_snapshot, at
from samples import examples
from share_cases import NAMES, PATIENT, POOLS, best_within, entitlements_of, policies
from trainmaster.domain.capacity.units import total
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Order
from trainmaster.domain.reasons.capacity import WaitsForRelease
from trainmaster.planner.schedule import schedule


@st.composite
def fields(draw, pools):
    return {
        "units": draw(st.dictionaries(st.sampled_from(pools), st.integers(1, 4), min_size=1, max_size=2)),
        "share": draw(st.sampled_from((*NAMES, DEFAULT_SHARE))),
        "priority": draw(st.integers(0, 3)),
        "preemptible": draw(st.integers(0, 5)) > 0,
        "max_runtime": timedelta(minutes=draw(st.integers(10, 300))),
    }


@st.composite
def busy(draw):
    """Pools of running jobs with different expected ends, and waiting jobs of all shares, in any order."""
    caps = {pool: draw(st.integers(2, 9)) for pool in POOLS}
    policy = draw(policies(caps, orders=tuple(Order), reservations=draw(st.integers(0, 3))))
    policy = replace(policy, patience=draw(st.sampled_from((PATIENT, timedelta(hours=1)))))
    used = draw(st.sampled_from((POOLS[:1], POOLS)))
    free, active = dict(caps), []
    for number in range(draw(st.integers(1, 8))):
        each = draw(fields(used))
        if all(free[pool] >= count for pool, count in each["units"].items()):
            free = {pool: free[pool] - each["units"].get(pool, 0) for pool in POOLS}
            active.append(a_running_job(f"a{number}", **each, now=at(-draw(st.integers(0, 500)))))
    entered = [at(-60 * draw(st.integers(0, 120))) for _ in range(draw(st.integers(2, 6)))]
    waiting = [a_job(f"w{number}", **draw(fields(used)), entry_time=when) for number, when in enumerate(entered)]
    pools = [a_pool(pool, cap) for pool, cap in caps.items()]
    return a_snapshot(pools=pools, active=active, waiting=waiting, policy=policy)


def fits_quota(snapshot: Snapshot, job: Job, *others: Job) -> bool:
    """True if the quota of the job's share has room for the job beside other jobs of the share."""
    own, held = entitlements_of(snapshot).of(job.share).own, total(each.demand.alternatives[0] for each in others)
    return all(held.get(pool, 0) + count <= own(pool) for pool, count in job.demand.alternatives[0].items())


def not_outranked(snapshot: Snapshot, job: Job, *, equals: bool = False) -> list[Job]:
    """Running jobs of the same share that the job may not preempt."""
    mine = [other for other in snapshot.active if other.share == job.share]
    return [other for other in mine if not other.preemptible or other.priority >= job.priority + equals]


def borrows(snapshot: Snapshot, job: Job) -> bool:
    """True if the job would borrow even if every job stopped that it or an owner of another share may preempt."""
    entitlement = entitlements_of(snapshot).of(job.share)
    safe = {name for pool in POOLS for name in best_within(entitlement, snapshot.active, pool)}
    by_level = snapshot.policy.order is Order.GITTINS
    return not fits_quota(snapshot, job, *(j for j in not_outranked(snapshot, job, equals=by_level) if j.name in safe))


def served(snapshot: Snapshot, waiting: Iterable[Job]) -> list[Job]:
    """Those of the waiting jobs that start, or for which units are being released, in the order of the plan."""
    plan = schedule(replace(snapshot, waiting=tuple(waiting)), NOW, random.Random(1))
    note("; ".join(f"{type(each).__name__} {each.job.name}" for each in plan.decisions))
    coming = [each for each in plan.waits if isinstance(each.reason, WaitsForRelease)]
    return [each.job for each in plan.decisions if each in (*plan.starts, *plan.preemptions, *coming)]


def owners(snapshot: Snapshot, share: str, waiting: Iterable[Job]) -> list[Job]:
    """Those of the share's jobs that fit its quota, have no borrower of the share before them, and are served."""
    first = max((job.priority for job in snapshot.waiting if job.share == share and borrows(snapshot, job)), default=-1)
    mine = [job for job in served(snapshot, waiting) if job.share == share]
    return [
        job
        for place, job in enumerate(mine)
        if job.priority > first and fits_quota(snapshot, job, *mine[:place], *not_outranked(snapshot, job))
        if served(snapshot, [job])
    ]


def has_given_way(snapshot: Snapshot, job: Job, others: Iterable[Job]) -> bool:
    """True if others of the share have its quota instead: under `gittins`, their order depends on all jobs."""
    mine = [other for other in others if other.share == job.share]
    by_all = snapshot.policy.order is Order.GITTINS
    return by_all and not fits_quota(snapshot, job, *mine, *not_outranked(snapshot, job))


def check(snapshot: Snapshot) -> None:
    """Compare the plan with plans in which no borrower of another share waits."""
    got = served(snapshot, snapshot.waiting)
    names = {job.name for job in got}
    for share in {job.share for job in snapshot.waiting}:
        rest = [job for job in snapshot.waiting if job.share == share or not borrows(snapshot, job)]
        mine = owners(snapshot, share, rest) if len(rest) < len(snapshot.waiting) else []
        assert {job.name for job in mine if not has_given_way(snapshot, job, got)} <= names


@examples(40, deadline=None)
@given(busy())
def test_no_borrower_of_another_share_keeps_a_job_from_its_shares_own_quota(snapshot):
    check(snapshot)


@pytest.mark.slow
@examples(2_000, deadline=None)
@given(busy())
def test_nor_in_a_long_search(snapshot):
    check(snapshot)
