"""Snapshots with shares of every kind, and what they mean, worked out a second time for tests to compare with.

It must not ask the planner.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from builders import a_job, a_pool, a_preempting_job, a_running_job, at
from trainmaster.domain.jobs.job import Reservation
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Lending, Order, Policy, Preemption, Share
from trainmaster.domain.shares.entitlement import Entitlements

POOLS = ("a", "b")
NAMES = ("x", "y", "z")
UNPROTECTED = Preemption(cooldown=timedelta(0), max_preemptions=None)
PATIENT = timedelta(days=365)
some_units = st.dictionaries(st.sampled_from(POOLS), st.integers(1, 4), min_size=1, max_size=2)
few_units = st.dictionaries(st.sampled_from(POOLS), st.integers(0, 3), max_size=2)
share_names = st.sampled_from((*NAMES, DEFAULT_SHARE, "stranger"))


@st.composite
def policies(draw, caps, *, lendings=tuple(Lending), reservations=1, orders=(Order.BACKFILL, Order.FAIR), caps_on=True):
    """Shares that together own no more than there is."""
    left, shares = dict(caps), {}
    for name in NAMES:
        nominal = {pool: draw(st.integers(0, left[pool])) for pool in POOLS}
        left = {pool: left[pool] - nominal[pool] for pool in POOLS}
        shares[name] = Share(
            name=name,
            nominal=nominal,
            lending=draw(st.sampled_from(lendings)),
            lends=draw(few_units) if caps_on else {},
            borrows=draw(few_units) if caps_on else {},
            max=draw(few_units) if caps_on and draw(st.integers(0, 3)) == 0 else {},
            weight=draw(st.sampled_from((0.0, 0.5, 1.0, 3.0))),
        )
    return Policy(
        order=draw(st.sampled_from(orders)),
        reservations=reservations,
        shares=shares,
        preemption=UNPROTECTED,
        patience=PATIENT,
        max_actions=500,
    )


@st.composite
def snapshots(draw, *, restless=True, **of_policy):
    """Pools that are full or not, with jobs that run, stop, wait, and are held for."""
    caps = {pool: draw(st.integers(1, 9)) for pool in POOLS}
    policy = draw(policies(caps, **of_policy))
    free, active = dict(caps), []
    for number in range(draw(st.integers(0, 8))):
        units = draw(some_units)
        if all(free[pool] >= count for pool, count in units.items()):
            free = {pool: free[pool] - units.get(pool, 0) for pool in POOLS}
            stops = restless and draw(st.integers(0, 5)) == 0
            make = a_preempting_job if stops else a_running_job
            job = make(f"a{number}", **draw(fields_of(units)), now=at(-draw(st.integers(1, 500))), checkpointed=True)
            active.append(replace(job, attempt=replace(job.attempt, saved_at=at(-draw(st.integers(0, 500))))))
    waiting = [a_job(f"w{number}", **draw(fields_of(draw(some_units)))) for number in range(draw(st.integers(0, 8)))]
    if restless:
        waiting = [replace(job, reservation=draw(holds(job))) for job in waiting]
    return Snapshot(
        pass_number=1,
        pools={pool: a_pool(pool, cap) for pool, cap in caps.items()},
        active=tuple(active),
        waiting=tuple(sorted(waiting, key=lambda job: job.order)),
        policy=policy,
    )


@st.composite
def fields_of(draw, units):
    return {
        "units": units,
        "share": draw(share_names),
        "priority": draw(st.integers(0, 2)),
        "preemptible": draw(st.integers(0, 9)) > 0,
    }


@st.composite
def holds(draw, job):
    return Reservation(job.demand.alternatives[0], at(600)) if draw(st.integers(0, 7)) == 0 else None


def entitlements_of(snapshot):
    return Entitlements(snapshot.policy, snapshot.pools, snapshot.external)


def held_by(jobs) -> dict[str, Counter[str]]:
    """Units of active jobs, by share and pool."""
    held: dict[str, Counter[str]] = {}
    for job in jobs:
        held.setdefault(job.share, Counter()).update(job.units)
    return held


def after(snapshot, plan) -> dict[str, Counter[str]]:
    """Units that each share holds once the starts are made."""
    held = held_by(snapshot.active)
    for start in plan.starts:
        held.setdefault(start.job.share, Counter()).update(start.units)
    return held


def best_within(entitlement, jobs, pool) -> set[str]:
    """A share's best jobs that what it owns has room for."""
    left, names = entitlement.own(pool), set()
    mine = [job for job in jobs if job.share == entitlement.share.name and pool in job.units and not job.stopping]
    for job in sorted(mine, key=lambda j: (j.preemptible, -j.priority, j.attempt.created_at, j.name)):
        if not job.preemptible or job.units[pool] <= left:
            names.add(job.name)
            left -= job.units[pool]
    return names
