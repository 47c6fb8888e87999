"""Invariants of every placement policy, and of every plan whose jobs request resources."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

from hypothesis import HealthCheck, assume, example, given, note, settings
from hypothesis import strategies as st
from test_planner_properties import snapshots as queues_of_named_pools

from builders import NOW, a_job, a_reservation, a_running_job, a_snapshot, at
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool, covers, total
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.plan import Cursors, Start, Wait
from trainmaster.domain.policy.settings import Order, Placement, Policy, Share
from trainmaster.domain.reasons.capacity import Infeasible
from trainmaster.planner.placement.policies import CandidatePool, chances, choose, choose_queue, smooth_round
from trainmaster.planner.schedule import schedule

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
fractions = st.fractions(0, 1_000, max_denominator=100)
some = st.lists(fractions, min_size=2, max_size=12).filter(any)
placements = st.sampled_from(Placement)


def by_load(loads):
    return chances(
        Placement.PICK_KX, [CandidatePool(name=f"{i:02}", total=load, free=0) for i, load in enumerate(loads)]
    )


def by_free(free):
    contenders = [CandidatePool(name=f"{i:02}", total=9, free=each) for i, each in enumerate(free)]
    return chances(Placement.RESOURCE_PICK_KX, contenders)


# -- the formulas ------------------------------------------------------------------------------------------------------


@given(some)
def test_probabilities_of_both_pick_policies_sum_to_one_exactly(amounts):
    for found in (by_free(amounts), by_load(amounts)):
        assert sum(found) == 1
        assert all(0 <= each <= 1 for each in found)


@given(some)
def test_more_free_is_never_less_probable(free):
    found = sorted(zip(free, by_free(free), strict=True))
    assert all(few[1] <= more[1] for few, more in pairwise(found))
    assert all((amount == 0) == (probability == 0) for amount, probability in found)


@given(some)
def test_more_load_is_never_more_probable(loads):
    found = sorted(zip(loads, by_load(loads), strict=True))
    assert all(more[1] <= few[1] for few, more in pairwise(found))


@given(some, st.integers(0, 11), st.fractions(0, 100, max_denominator=10))
def test_a_pool_that_gains_free_capacity_gains_probability(free, index, gain):
    index %= len(free)
    gained = [each + gain if place == index else each for place, each in enumerate(free)]
    assert by_free(gained)[index] >= by_free(free)[index]


weights = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9), min_size=1, max_size=8).filter(
    lambda found: any(found.values())
)


@given(weights, st.integers(1, 3))
def test_a_cycle_of_smooth_weighted_round_robin_gives_each_pool_its_weight_in_turns_exactly(initial, cycles):
    current, chosen = {}, Counter()
    for _ in range(cycles * sum(initial.values())):
        name, current = smooth_round(current, initial)
        chosen[name] += 1
        assert sum(current.values()) == 0
    assert {name: chosen[name] for name in initial} == {name: cycles * weight for name, weight in initial.items()}
    assert set(current.values()) == {0}


@given(weights)
def test_smooth_weighted_round_robin_is_smooth(initial):
    """After any number of rounds no pool is a whole turn or more away from its part of them."""
    current, chosen, in_all = {}, Counter(), sum(initial.values())
    for rounds in range(1, in_all + 1):
        name, current = smooth_round(current, initial)
        chosen[name] += 1
        # Its weight now is the difference between its due and its starts: w(n) = n W - (chosen) sum(W).
        assert all(current[each] == rounds * part - chosen[each] * in_all for each, part in initial.items())
    assert max(chosen.values()) == max(initial.values())


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), fractions, min_size=1), min_size=1, max_size=20))
def test_weights_sum_to_nothing_whichever_pools_were_in_question(rounds):
    current: dict[str, Fraction] = {}
    for initial in rounds:
        name, current = smooth_round(current, initial)
        assert name in initial
    assert sum(current.values()) == 0


# -- choosing ----------------------------------------------------------------------------------------------------------


@st.composite
def contender_lists(draw):
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True))
    contenders = []
    for name in names:
        whole = draw(st.integers(0, 500))
        contenders.append(
            CandidatePool(
                name=name,
                total=whole,
                free=draw(st.integers(0, whole)),
                weight=draw(st.floats(0, 1)),
                surplus=(draw(st.integers(0, 2)), draw(st.integers(0, 2))),
                left=draw(st.integers(0, 9)),
            )
        )
    return contenders


cursors = st.builds(
    Cursors,
    last=st.sampled_from(["", *"abcdefghz"]),
    weights=st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-5, 5), max_size=8),
)


@given(placements, contender_lists(), cursors, st.integers(), st.randoms(use_true_random=False))
def test_every_policy_chooses_one_of_the_pools_and_the_same_again(policy, contenders, known, seed, shuffler):
    chosen = choose(policy, contenders, known, random.Random(seed))
    assert chosen.name in {contender.name for contender in contenders}
    shuffler.shuffle(contenders)
    assert choose(policy, contenders, known, random.Random(seed)) == chosen


@given(placements, contender_lists(), st.floats(0, 1, exclude_max=True), st.randoms(use_true_random=False))
def test_every_queue_is_one_of_the_pools_and_the_same_again(policy, contenders, point, shuffler):
    name = choose_queue(policy, contenders, point)
    assert name in {contender.name for contender in contenders}
    shuffler.shuffle(contenders)
    assert choose_queue(policy, contenders, point) == name


@given(contender_lists(), st.integers())
def test_resource_pick_kx_takes_a_pool_with_nothing_free_only_where_none_has_anything(contenders, seed):
    name = choose(Placement.RESOURCE_PICK_KX, contenders, Cursors(), random.Random(seed)).name
    assume(any(contender.free for contender in contenders))
    assert next(contender for contender in contenders if contender.name == name).free > 0


@given(contender_lists(), st.integers(1, 4))
def test_round_robin_gives_every_pool_a_turn_before_any_has_two(contenders, rounds):
    known, names = Cursors(), []
    for _ in range(rounds * len(contenders)):
        chosen = choose(Placement.ROUND_ROBIN, contenders, known, random.Random(1))
        known = chosen.cursors
        names.append(chosen.name)
    assert set(Counter(names).values()) == {rounds}


# -- whole plans -------------------------------------------------------------------------------------------------------

POOLS = "abcdef"
asked = st.builds(
    Resources,
    accelerators=st.sampled_from([0, 1, 4, 8]),
    vcpus=st.sampled_from([0, 8, 96]),
    memory_gib=st.sampled_from([0.0, 64.0, 512.0]),
)


@st.composite
def pool_sets(draw):
    """Pools of several types, those of one type included."""
    names = draw(st.lists(st.sampled_from(POOLS), min_size=1, max_size=6, unique=True))
    return [
        Pool(
            name,
            draw(st.integers(0, 9)),
            vcpus=draw(st.sampled_from([4, 8, 96])),
            memory_gib=draw(st.sampled_from([16.0, 64.0, 1_024.0])),
            accelerators_per_unit=draw(st.sampled_from([0, 1, 8])),
            accelerator="nvidia",
            draining=draw(st.integers(0, 9)) == 0,
        )
        for name in names
    ]


@st.composite
def jobs_by_resources(draw, name):
    count = draw(st.integers(1, 5))
    listed = draw(st.lists(st.sampled_from(POOLS), max_size=2, unique=True)) if draw(st.integers(0, 3)) == 0 else []
    demand = Demand(
        tuple({pool: count} for pool in listed),
        queue_selects_pool=True,
        resources=draw(asked),
        instances=count,
        listed=len(listed),
    )
    job = a_job(
        name,
        demand=demand,
        priority=draw(st.integers(0, 1)),
        entry_time=at(draw(st.integers(-3, 0))),
        preemptible=draw(st.booleans()),
        share=draw(st.sampled_from(["default", "vision"])),
    )
    if draw(st.integers(0, 7)) == 0:
        job = lifecycle.reserve(job, a_reservation({draw(st.sampled_from(POOLS)): count}))
    return job


@st.composite
def snapshots(draw):
    pools = draw(pool_sets())
    active = []
    for index in range(draw(st.integers(0, 5))):
        pool, began = draw(st.sampled_from(pools)), at(-draw(st.integers(0, 4_000)))
        count = draw(st.integers(1, 4))
        if sum(job.units.get(pool.name, 0) for job in active) + count <= pool.cap:
            active.append(
                a_running_job(f"a{index}", units={pool.name: count}, now=began, priority=draw(st.integers(-1, 1)))
            )
    prefers = draw(st.lists(st.sampled_from(POOLS), max_size=2, unique=True))
    policy = Policy(
        placement=draw(placements),
        cpu_weight=draw(st.sampled_from([0.0, 0.5, 1.0])),
        order=draw(st.sampled_from(Order)),
        shares={"vision": Share(name="vision", prefers=tuple(prefers))} if prefers else {},
    )
    waiting = [draw(jobs_by_resources(f"w{index}")) for index in range(draw(st.integers(1, 8)))]
    snapshot = a_snapshot(pools=pools, active=active, waiting=waiting, policy=policy)
    return replace(snapshot, cursors=draw(cursors))


def plan_of(snapshot, seed=1, now=NOW):
    plan = schedule(snapshot, now, random.Random(seed))
    note(str(plan))
    return plan


@unhurried
@given(snapshots())
def test_no_policy_picks_a_pool_that_does_not_cover_the_demand_or_has_no_room(snapshot):
    used = total([*(job.units for job in snapshot.active), snapshot.external])
    free = {name: 0 if p.draining else p.cap - used.get(name, 0) for name, p in snapshot.pools.items()}
    starts = plan_of(snapshot).starts
    assert covers(free, total(start.units for start in starts))
    for start in starts:
        ((name, count),) = start.units.items()
        listed = {pool for units in start.job.demand.alternatives[: start.job.demand.listed] for pool in units}
        kind = Catalogue().of_pool(snapshot.pools[name])
        assert name in listed or start.job.demand.resources.covered_by(kind)
        assert count == start.job.demand.instances


def two_that_one_unit_is_held_for():
    """A pool of one unit, held for two jobs (its cap was lowered meanwhile), and a third that finds nothing."""
    held = [lifecycle.reserve(a_job(name, units={"c": 1}), a_reservation({"c": 1})) for name in ("w1", "w2")]
    return a_snapshot(pools=[Pool("c", cap=1)], waiting=[a_job("w0", units={"c": 1}), *held])


@unhurried
@given(snapshots(), st.integers(0, 5), st.randoms(use_true_random=False))
@example(two_that_one_unit_is_held_for(), 0, random.Random(4))
def test_equal_arguments_give_equal_plans_in_whatever_order_they_were_read(snapshot, seed, shuffler):
    active, waiting, pools = list(snapshot.active), list(snapshot.waiting), list(snapshot.pools.items())
    for read in (active, waiting, pools):
        shuffler.shuffle(read)
    shuffled = replace(snapshot, active=tuple(active), waiting=tuple(waiting), pools=dict(pools))
    assert plan_of(shuffled, seed) == plan_of(snapshot, seed)


@unhurried
@given(snapshots())
def test_a_job_is_infeasible_exactly_where_no_pool_could_hold_it(snapshot):
    plan = plan_of(snapshot)
    assert Counter(d.job.name for d in plan.decisions if isinstance(d, Start | Wait)) == Counter(
        job.name for job in snapshot.waiting
    )
    for wait in plan.waits:
        if isinstance(wait.reason, Infeasible):
            demand, pools = (
                wait.job.demand,
                [pool for name, pool in snapshot.pools.items() if name in wait.job.demand.pools],
            )
            assert all(pool.draining or pool.cap < demand.instances for pool in pools)


@unhurried
@given(snapshots())
def test_cursors_go_on_from_start_to_start_and_only_with_policies_that_go_round(snapshot):
    moved = [start.cursors for start in plan_of(snapshot).starts if start.cursors is not None]
    if snapshot.policy.placement is Placement.ROUND_ROBIN:
        assert all(each.weights == dict(moved[0].weights) for each in moved)
        assert all(each.last in snapshot.pools for each in moved)
    elif snapshot.policy.placement is Placement.SMOOTH_WEIGHTED_ROUND_ROBIN:
        assert all(each.last == snapshot.cursors.last for each in moved)
        assert all(set(each.weights) <= set(snapshot.pools) for each in moved)
        sums = [sum(each.weights.values()) for each in moved]
        assert all(abs(one - other) < 1e-9 for one, other in pairwise(sums))
    else:
        assert not moved


@unhurried
@given(snapshots(), st.integers(0, 5), st.integers(0, 5))
def test_a_job_that_keeps_waiting_is_told_the_same_whatever_is_drawn(snapshot, one, other):
    """With nothing to start, draws and cursors of the pass change no reason."""
    waiting = tuple(job for job in snapshot.waiting if job.reservation is None)
    idle = replace(snapshot, waiting=waiting, policy=replace(snapshot.policy, preemption=_NEVER))
    first = plan_of(idle, one)
    assume(not first.starts)
    again = plan_of(replace(idle, cursors=Cursors("c", {"a": 1.0, "b": -1.0}), pass_number=2), other)
    assert again == first


_NEVER = replace(Policy().preemption, delay=timedelta(days=1))


def told_apart(snapshot):
    """The same jobs, each like no other: by who submitted them, which no rule here looks at."""
    waiting = tuple(replace(job, submitted_by=f"user {job.name}") for job in snapshot.waiting)
    return replace(snapshot, waiting=waiting)


def doings(plan):
    """All that a plan does. (Of its reasons, a later equal may have the first one's, or that it is behind that one.)"""
    return (
        [(start.job.name, start.units, start.choices, start.cursors) for start in plan.starts],
        [(each.job.name, [victim.name for victim in each.victims]) for each in plan.preemptions],
        [wait.job.name for wait in plan.waits],
        plan.reservations,
    )


@unhurried
@given(snapshots())
def test_looking_once_at_jobs_by_resources_that_are_alike_changes_nothing(snapshot):
    assert doings(plan_of(snapshot)) == doings(plan_of(told_apart(snapshot)))


@unhurried
@given(queues_of_named_pools(), st.sampled_from(Order))
def test_looking_once_at_jobs_with_alternatives_or_groups_that_are_alike_changes_nothing(snapshot, order):
    snapshot = replace(snapshot, policy=replace(snapshot.policy, order=order))
    assert doings(plan_of(snapshot)) == doings(plan_of(told_apart(snapshot)))
