"""Invariants of every plan with shares. Only `schedule` decides, as it is shipped."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from builders import NOW, a_job, a_pool, a_running_job, at
from samples import examples
from share_cases import NAMES, PATIENT, POOLS, UNPROTECTED, after, best_within, entitlements_of, held_by, snapshots
from trainmaster.domain.capacity.units import total
from trainmaster.domain.plan import Plan, Snapshot
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Lending, Order, Policy, Share
from trainmaster.domain.reasons.capacity import Preempts, WaitsForCapacity, WaitsForRelease
from trainmaster.planner.schedule import schedule
from trainmaster.planner.sharing.shares import Shares
from trainmaster.planner.sharing.turns import turns


def plan_of(snapshot: Snapshot) -> Plan:
    plan = schedule(snapshot, NOW, random.Random(1))
    note(str(snapshot.policy.shares))
    note(str(plan))
    return plan


@settings(deadline=None)
@given(snapshots())
def test_no_share_goes_beyond_its_bounds_by_a_start(snapshot):
    entitlements, held = entitlements_of(snapshot), after(snapshot, plan := plan_of(snapshot))
    for start in plan.starts:
        for pool in start.units:
            bound = entitlements.of(start.job.share).bound(pool)
            assert bound is None or held[start.job.share][pool] <= bound.limit


@settings(deadline=None)
@given(snapshots())
def test_a_shares_kept_units_are_not_idle_for_others(snapshot):
    """Or is held for one of its jobs, perhaps on units that are on the way."""
    entitlements, plan = entitlements_of(snapshot), plan_of(snapshot)
    held_for = {
        n: total(job.reservation.units for job in snapshot.waiting if job.reservation and job.share == n) for n in NAMES
    }

    def to_spare(held, pool):
        free = snapshot.pools[pool].cap - sum(units[pool] for units in held.values())
        kept = {n: entitlements.of(n).kept(pool) - held_for[n].get(pool, 0) for n in NAMES}
        return free - sum(max(kept[n] - held.get(n, Counter())[pool], 0) for n in NAMES)

    before, then = held_by(snapshot.active), after(snapshot, plan)
    for pool in POOLS:
        assert to_spare(then, pool) >= min(to_spare(before, pool), 0)


@settings(deadline=None)
@given(snapshots())
def test_only_an_owner_takes_from_other_shares_and_only_what_was_lent(snapshot):
    """After all that was decided before; each victim is one too many even when all others have gone."""
    entitlements, plan = entitlements_of(snapshot), plan_of(snapshot)
    best = {(n, p): best_within(entitlements.of(n), snapshot.active, p) for n in [*NAMES, "stranger"] for p in POOLS}
    staying = held_by(job for job in snapshot.active if not job.stopping)
    for decision in plan.decisions:
        if decision in plan.starts:
            staying.setdefault(decision.job.share, Counter()).update(decision.units)
        if decision not in plan.preemptions:
            continue
        job, victims, units = decision.job, decision.victims, decision.reservation.units
        for victim in victims:
            staying[victim.share].subtract(victim.units)
        mine = staying.setdefault(job.share, Counter())
        for victim in (v for v in victims if v.share != job.share):
            assert all(mine[pool] + n <= entitlements.of(job.share).own(pool) for pool, n in units.items())
            contested = [pool for pool in units if pool in victim.units]
            entitlement = entitlements.of(victim.share)
            lent = [p for p in contested if staying[victim.share][p] + victim.units[p] > entitlement.own(p)]
            assert lent
            assert any(victim.name not in best.get((victim.share, pool), ()) for pool in lent)
        for victim in (v for v in victims if v.share == job.share):
            assert victim.priority < job.priority
        mine.update(units)


@st.composite
def lent_out(draw):
    """One pool, all of it lent by those who own it; all that waits is the owners', and within what they own."""
    cap = draw(st.integers(2, 12))
    shares, left = {}, cap
    for name in NAMES[:2]:
        nominal = draw(st.integers(0, left))
        left -= nominal
        shares[name] = Share(name=name, nominal={"a": nominal}, lending=draw(st.sampled_from(tuple(Lending)[1:])))
    shares[DEFAULT_SHARE] = Share(name=DEFAULT_SHARE)
    policy = Policy(shares=shares, preemption=UNPROTECTED, max_actions=500, patience=PATIENT)
    active, waiting, free = [], [], cap
    while free:
        count = draw(st.integers(1, free))
        free -= count
        fields = {"share": draw(st.sampled_from(("stranger", DEFAULT_SHARE))), "priority": draw(st.integers(0, 5))}
        active.append(a_running_job(f"a{len(active)}", units={"a": count}, now=at(-60 - len(active)), **fields))
    for name in NAMES[:2]:
        own = shares[name].nominal["a"]
        while own:
            count = draw(st.integers(1, own))
            own -= count
            waiting.append(a_job(f"w{len(waiting)}", share=name, units={"a": count}, priority=draw(st.integers(-5, 5))))
    assume(waiting)
    waiting.sort(key=lambda job: job.order)
    pools = {"a": a_pool("a", cap)}
    return Snapshot(pass_number=1, pools=pools, active=tuple(active), waiting=tuple(waiting), policy=policy)


@settings(deadline=None)
@given(lent_out())
def test_owners_get_all_that_they_lent_back_in_one_pass_whatever_the_priorities(snapshot):
    plan = plan_of(snapshot)
    assert {type(wait.reason) for wait in plan.waits} <= {Preempts, WaitsForRelease}
    freed = total(victim.units for preemption in plan.preemptions for victim in preemption.victims)
    wanted = total(job.demand.alternatives[0] for job in snapshot.waiting)
    assert freed["a"] >= wanted["a"]


@st.composite
def taken_back(draw):
    """One pool, full; one share runs more than it owns, and what it would cost to stop each of its jobs is anything."""
    own, lent = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    shares = {"x": Share(name="x", nominal={"a": lent}), "y": Share(name="y", nominal={"a": own})}
    policy = Policy(shares=shares, preemption=UNPROTECTED, patience=PATIENT)
    active, left = [], own + lent
    while left:
        count = draw(st.integers(1, min(left, 4)))
        left -= count
        job = a_running_job(
            f"a{len(active)}",
            share="y",
            units={"a": count},
            now=at(-draw(st.integers(0, 900)) - 1),
            priority=draw(st.sampled_from((0, 0, 0, 1))),
            checkpointed=True,
        )
        active.append(replace(job, attempt=replace(job.attempt, saved_at=at(-draw(st.integers(0, 900))))))
    new_job = a_job("new", share="x", units={"a": draw(st.integers(1, lent))})
    pools = {"a": a_pool("a", own + lent)}
    return Snapshot(pass_number=1, pools=pools, active=tuple(active), waiting=(new_job,), policy=policy)


@settings(deadline=None)
@given(taken_back())
def test_the_best_jobs_that_a_share_owns_room_for_are_never_taken_from_it(snapshot):
    entitlement = entitlements_of(snapshot).of("y")
    (preemption,) = plan_of(snapshot).preemptions
    taken = {victim.name for victim in preemption.victims}
    assert not taken & best_within(entitlement, snapshot.active, "a")
    freed = sum(victim.units["a"] for victim in preemption.victims)
    assert all(freed - victim.units["a"] < preemption.reservation.units["a"] for victim in preemption.victims)


@settings(deadline=None)
@given(lent_out(), st.sampled_from((Order.BACKFILL, Order.FIFO, Order.FAIR)))
def test_nor_does_what_borrowers_wait_for_keep_it_from_them(snapshot, order):
    """Blocked borrowers of higher priority, of a stranger and of the first owner's share, want the whole pool."""
    cap = snapshot.pools["a"].cap
    large = [a_job(f"large-{name}", share=name, units={"a": cap}, priority=9) for name in ("stranger", "x")]
    waiting = tuple(sorted([*snapshot.waiting, *large], key=lambda job: job.order))
    plan = plan_of(replace(snapshot, waiting=waiting, policy=replace(snapshot.policy, order=order)))
    told = [wait.reason for wait in plan.waits if wait.job.share == "y"]
    assert {type(reason) for reason in told} <= {Preempts, WaitsForRelease}


@settings(deadline=None)
@given(snapshots(restless=False, reservations=0))
def test_nothing_is_idle_while_a_job_that_may_have_it_waits_for_it(snapshot):
    """Nothing stops, and there are no holds or reservations, so all idle units are lent."""
    plan = plan_of(snapshot)
    held, entitlements = after(snapshot, plan), entitlements_of(snapshot)
    claimed = total(wait.job.demand.alternatives[0] for wait in plan.waits if isinstance(wait.reason, Preempts))
    coming = total(victim.units for preemption in plan.preemptions for victim in preemption.victims)
    for wait in plan.waits:
        if isinstance(wait.reason, WaitsForCapacity):
            units = wait.job.demand.alternatives[0]
            kept = {
                pool: sum(
                    max(entitlements.of(n).kept(pool) - held.get(n, Counter())[pool], 0)
                    for n in NAMES
                    if n != wait.job.share
                )
                for pool in units
            }
            free = {
                pool: snapshot.pools[pool].cap
                - sum(of[pool] for of in held.values())
                - max(claimed.get(pool, 0) - coming.get(pool, 0), 0)
                for pool in units
            }
            assert any(free[pool] - kept[pool] < count for pool, count in units.items())


@settings(deadline=None)
@given(st.integers(4, 40), st.lists(st.sampled_from((0.5, 1.0, 2.0, 4.0)), min_size=2, max_size=4), st.randoms())
def test_idle_units_go_to_borrowers_by_weight(cap, weights, shuffler):
    """No share could give one unit to another whose weighted part would still be smaller."""
    shares = {f"s{i}": Share(name=f"s{i}", weight=weight) for i, weight in enumerate(weights)}
    shares[DEFAULT_SHARE] = Share(name=DEFAULT_SHARE)
    waiting = [a_job(f"{name}-{i}", share=name, units={"a": 1}) for name in shares for i in range(cap)]
    waiting = [replace(job, priority=shuffler.randint(0, 3)) for job in waiting if job.share != DEFAULT_SHARE]
    snapshot = Snapshot(
        pass_number=1,
        pools={"a": a_pool("a", cap)},
        waiting=tuple(sorted(waiting, key=lambda job: job.order)),
        policy=Policy(shares=shares, max_actions=500, patience=PATIENT),
    )
    held = after(snapshot, plan_of(snapshot))
    parts = {f"s{i}": (held.get(f"s{i}", Counter())["a"], weight) for i, weight in enumerate(weights)}
    assert sum(count for count, _ in parts.values()) == cap
    for count, weight in parts.values():
        assert all(count / weight <= (other + 1) / w + 1e-9 for other, w in parts.values())


@settings(deadline=None)
@given(snapshots())
def test_every_job_has_one_turn_and_each_shares_jobs_stay_in_their_order(snapshot):
    shares, seen = Shares(snapshot, NOW), []
    for job in turns(snapshot.waiting, shares):
        seen.append(job)
        if len(seen) % 2 and not shares.refusal(job, job.demand.alternatives[0]):
            shares.take(job, job.demand.alternatives[0])
    assert sorted(seen, key=lambda job: job.order) == list(snapshot.waiting)
    for name in {job.share for job in seen}:
        assert [job for job in seen if job.share == name] == [job for job in snapshot.waiting if job.share == name]


@settings(deadline=None)
@given(snapshots())
def test_without_shares_all_is_as_if_there_were_none(snapshot):
    bare = replace(snapshot, policy=replace(snapshot.policy, shares={}, order=Order.BACKFILL))
    shares = Shares(bare, NOW)
    assert list(turns(bare.waiting, shares)) == list(bare.waiting)
    for job in bare.waiting:
        units = job.demand.alternatives[0]
        assert shares.refusal(job, units) is None
        assert not any(shares.withheld(job, pool) for pool in units)
        for victim in bare.active:
            assert all(shares.may_preempt(job, units, victim, (), outranks=o) is o for o in (True, False))


@examples(50, deadline=None)
@given(st.randoms(use_true_random=False))
def test_jobs_that_are_covered_alike_change_no_turn(rng):
    """With ranks of their own, no two jobs are covered alike, and each of them is asked for alone."""

    def jobs(make, count):
        fields = ({"share": rng.choice("abc"), "units": {"pool": rng.choice((1, 2, 9))}} for _ in range(count))
        return [make(f"{make.__name__}{n:02}", priority=rng.choice((0, 1)), **each) for n, each in enumerate(fields)]

    policy = Policy(shares={name: Share(name=name, nominal={"pool": 6}) for name in "abc"})
    waiting = tuple(sorted(jobs(a_job, 30), key=lambda job: job.order))
    active = tuple(jobs(a_running_job, 6))
    pools = {"pool": a_pool("pool", 18)}
    snapshot = Snapshot(pass_number=1, pools=pools, active=active, waiting=waiting, policy=policy)
    seed = rng.random()

    def order(**options):
        shares, chance, taken = Shares(snapshot, NOW, **options), random.Random(seed), []
        for job in turns(snapshot.waiting, shares):
            taken.append(job.name)
            if chance.random() < 0.4:
                shares.take(job, job.demand.alternatives[0])
            if chance.random() < 0.4:
                shares.preempt([chance.choice(active)])
        return taken

    assert order() == order(rank=lambda job: job.name)
