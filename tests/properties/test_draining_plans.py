"""Effect of draining pools on every plan, for any snapshot, order and set of drained pools."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from test_planner_properties import plan_of, snapshots

from builders import NOW, P5
from trainmaster.domain.capacity.units import covers
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.reasons.capacity import Infeasible
from trainmaster.domain.reasons.rules import Draining
from trainmaster.planner.placement.warm_pools import stranded_warm_pools
from trainmaster.service.capacity.pool_usage import removal_impact


@st.composite
def draining_snapshots(draw):
    """Some pools drain, and some have an idle warm pool that any job matches."""
    snapshot = draw(snapshots())
    pools = {name: replace(pool, draining=draw(st.booleans())) for name, pool in snapshot.pools.items()}
    warm = tuple(
        WarmPool(f"warm-{name}", {name: 1}, "same", NOW.replace(year=2027)) for name in pools if draw(st.booleans())
    )
    waiting = tuple(replace(job, warm_pool_key="same") if draw(st.booleans()) else job for job in snapshot.waiting)
    policy = Policy(order=draw(st.sampled_from(Order)))
    return replace(snapshot, pools=pools, warm=warm, waiting=waiting, policy=policy)


def draining(snapshot):
    return {name for name, pool in snapshot.pools.items() if pool.draining}


@given(draining_snapshots())
def test_nothing_starts_in_nor_is_reserved_or_freed_of_a_pool_that_drains(snapshot):
    plan, closed = plan_of(snapshot), draining(snapshot)
    assert all(closed.isdisjoint(start.units) for start in plan.starts)
    assert all(closed.isdisjoint(reserved.units) for reserved in plan.reservations)
    assert all(closed.isdisjoint(each.reservation.units) for each in (*plan.preemptions, *plan.warm_ends))


@given(draining_snapshots())
def test_every_victim_frees_needed_units(snapshot):
    closed = draining(snapshot)
    for preemption in plan_of(snapshot).preemptions:
        assert all(victim.units.keys() - closed for victim in preemption.victims)


@given(draining_snapshots())
def test_draining_is_told_exactly_where_only_pools_that_drain_could_hold_a_job(snapshot):
    caps = {name: pool.cap for name, pool in snapshot.pools.items()}
    open_ = {name: cap for name, cap in caps.items() if name not in draining(snapshot)}
    for wait in plan_of(snapshot).waits:
        alternatives = wait.job.demand.alternatives
        only_there = any(covers(caps, units) for units in alternatives) and not any(
            covers(open_, units) for units in alternatives
        )
        assert isinstance(wait.reason, Draining) == only_there
        assert not isinstance(wait.reason, Infeasible)


@given(draining_snapshots())
def test_every_idle_warm_pool_of_a_pool_that_drains_is_left_over_and_no_other(snapshot):
    assert {next(iter(pool.units)) for pool in stranded_warm_pools(snapshot)} == draining(snapshot) & {
        next(iter(pool.units)) for pool in snapshot.warm
    }


@given(draining_snapshots())
def test_the_end_of_a_pool_strands_exactly_those_that_could_run_there_and_nowhere_else(snapshot):
    found = removal_impact(snapshot, P5)
    left = {name: pool.cap for name, pool in snapshot.pools.items() if name != P5 and not pool.draining}
    caps = {name: pool.cap for name, pool in snapshot.pools.items()}
    for job in snapshot.waiting:
        there = any(P5 in units and covers(caps, units) for units in job.demand.alternatives)
        elsewhere = any(covers(left, units) for units in job.demand.alternatives)
        assert (job in found.moved, job in found.stranded) == (there and elsewhere, there and not elsewhere)
    assert {job.name for job in found.holders} == {job.name for job in snapshot.active if P5 in job.units}
