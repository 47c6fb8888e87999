"""Choice of the alternative for a start and for a wait: by the job, its share, the policy, or SageMaker."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from builders import G5, NOW, P5, a_job, a_reservation, a_running_job, a_snapshot, at
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.plan import Cursors
from trainmaster.domain.policy.settings import Placement as By
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.planner.placement.selector import Placement, PoolSelector
from trainmaster.planner.schedule import schedule

GOING_ROUND = (By.ROUND_ROBIN, By.SMOOTH_WEIGHTED_ROUND_ROBIN)


def placed(job, fitting, *pools):
    return PoolSelector(a_snapshot(pools=pools), random.Random(1)).place(job, fitting, lambda _: 99)


def a_type(name, cap=4, *, gpus=8, cpus=96, gib=1_024.0, **fields):
    """A pool of a type that no catalogue knows: what it has is what its settings say."""
    return Pool(name, cap, vcpus=cpus, memory_gib=gib, accelerators_per_unit=gpus, accelerator="nvidia", **fields)


def by_resources(name="job1", *, count=1, listed=(), asked=None, **fields):
    demand = Demand(
        tuple({pool: count} for pool in listed),
        queue_selects_pool=True,
        resources=asked or Resources(accelerators=1),
        instances=count,
        listed=len(listed),
    )
    return a_job(name, demand=demand, **fields)


def a_plan(*waiting, pools, policy=Policy(), cursors=Cursors(), active=(), seed=1, now=NOW):  # noqa: B008 -- frozen
    snapshot = a_snapshot(pools=pools, waiting=waiting, policy=policy, active=active)
    return schedule(replace(snapshot, cursors=cursors), now, random.Random(seed))


def starts_of(plan):
    return {start.job.name: dict(start.units) for start in plan.starts}


def queue_of(job, *pools, placement=By.BEST_FIT, **fields):
    snapshot = resolve(a_snapshot(pools=pools, waiting=[job], policy=Policy(placement=placement, **fields)))
    return [next(iter(units)) for units in PoolSelector(snapshot, random.Random(1)).order_for_wait(*_asking(snapshot))]


def _asking(snapshot):
    return snapshot.waiting[0], snapshot.waiting[0].demand.alternatives


# -- jobs that name types or pools -------------------------------------------------------------------------------------


def test_one_alternative_leaves_nothing_to_choose():
    assert placed(a_job(), [{P5: 1}]) == Placement({P5: 1})


def test_where_the_queue_chooses_the_first_that_fits_is_taken_alone():
    job = a_job(demand=Demand(({"plan": 2}, {P5: 2}, {"spot": 2}), queue_selects_pool=True))
    assert placed(job, [{P5: 2}, {"spot": 2}]) == Placement({P5: 2})


def test_where_sagemaker_chooses_it_gets_all_that_fit():
    job = a_job(demand=Demand(({P5: 1}, {G5: 4})))
    assert placed(job, [{P5: 1}, {G5: 4}]) == Placement({P5: 1, G5: 4}, (P5, G5))


def test_choices_are_types_in_the_order_of_the_units():
    job = a_job(demand=Demand(({"plan": 1}, {G5: 4})))
    placement = placed(job, [{"plan": 1}, {G5: 4}], Pool("plan", 4, type_=P5), Pool(G5, 4))
    assert (list(placement.units), placement.choices) == (["plan", G5], (P5, G5))


@pytest.mark.parametrize("placement", By)
def test_a_job_that_names_its_pools_waits_in_its_own_order(placement):
    job = a_job(demand=Demand(({P5: 9}, {G5: 9}), queue_selects_pool=True))
    assert queue_of(job, Pool(P5, 9), Pool(G5, 9), placement=placement) == [P5, G5]


@pytest.mark.parametrize("placement", By)
def test_a_job_that_names_its_pools_moves_no_cursor(placement):
    job = a_job(demand=Demand(({P5: 1}, {G5: 1}), queue_selects_pool=True))
    plan = a_plan(job, pools=[Pool(P5, 9), Pool(G5, 9)], policy=Policy(placement=placement))
    assert [(start.units, start.cursors) for start in plan.starts] == [({P5: 1}, None)]


# -- spillover ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", By)
def test_what_the_job_names_itself_goes_before_every_policy(placement):
    policy = Policy(placement=placement, shares={"default": Share(name="default", prefers=("b",))})
    plan = a_plan(by_resources(listed=("c",)), pools=[a_type(name) for name in "abcd"], policy=policy)
    assert starts_of(plan) == {"job1": {"c": 1}}
    assert plan.starts[0].cursors is None


@pytest.mark.parametrize("placement", By)
def test_where_that_is_full_the_pools_that_its_share_prefers_go_next_in_their_order(placement):
    policy = Policy(placement=placement, shares={"vision": Share(name="vision", prefers=("gone", "d", "b"))})
    pools = [a_type("a"), a_type("b"), a_type("c", 0), a_type("d", 1)]
    jobs = [by_resources(f"j{n}", listed=("c",), share="vision", entry_time=at(n)) for n in range(3)]
    assert starts_of(a_plan(*jobs, pools=pools, policy=policy)) == {"j0": {"d": 1}, "j1": {"b": 1}, "j2": {"b": 1}}


def test_a_warm_pool_that_matches_goes_before_what_the_share_prefers_but_not_before_what_the_job_names():
    policy = Policy(shares={"default": Share(name="default", prefers=("b",))})
    warm = (WarmPool("old", {"a": 1}, "same", at(6_000)),)
    for listed, expected in (((), "a"), (("b",), "b")):
        job = by_resources(listed=listed, warm_pool_key="same")
        snapshot = a_snapshot(pools=[a_type("a"), a_type("b")], waiting=[job], policy=policy)
        assert starts_of(schedule(replace(snapshot, warm=warm), NOW, random.Random(1))) == {"job1": {expected: 1}}


def test_what_was_freed_for_a_job_is_what_it_starts_on():
    job = by_resources(reservation=a_reservation({"c": 1}))
    assert starts_of(a_plan(job, pools=[a_type("a", 1), a_type("c", 9)])) == {"job1": {"c": 1}}


def test_a_pool_that_does_not_cover_the_demand_is_never_taken():
    asked = Resources(accelerators=8, memory_gib=1_024)
    pools = [a_type("few", gpus=4), a_type("small", gib=512.0), a_type("good")]
    assert starts_of(a_plan(by_resources(asked=asked), pools=pools)) == {"job1": {"good": 1}}


# -- what the policies see ---------------------------------------------------------------------------------------------


def test_best_fit_wastes_least_then_leaves_the_large_hole():
    pools = [a_type("eight", 1, gpus=8), a_type("one", 9, gpus=1), a_type("other", 6, gpus=1)]
    jobs = [by_resources(f"j{n}", count=4, entry_time=at(n)) for n in range(3)]
    assert starts_of(a_plan(*jobs, pools=pools)) == {"j0": {"other": 4}, "j1": {"one": 4}, "j2": {"one": 4}}


def test_an_instance_with_accelerators_is_spared_where_none_are_asked_for():
    asked = Resources(vcpus=4)
    pools = [a_type("gpu", gpus=1, cpus=4, gib=8.0), a_type("cpu", gpus=0, cpus=64, gib=256.0)]
    assert starts_of(a_plan(by_resources(asked=asked), pools=pools)) == {"job1": {"cpu": 1}}


def test_weights_are_parts_of_the_most_so_that_memory_drowns_nothing():
    """Equation 6: 0.9 (a CPU + b GPU) + 0.1 MEM of whole pools, each as a part of the largest."""
    snapshot = a_snapshot(
        pools=[a_type("a", 4, gpus=8, cpus=10, gib=100.0), a_type("b", 2, gpus=1, cpus=40, gib=800.0)],
        policy=Policy(placement=By.SMOOTH_WEIGHTED_ROUND_ROBIN, cpu_weight=0.25),
    )
    weights = PoolSelector(snapshot, random.Random(1)).weights("ab")
    assert weights["a"] == pytest.approx(0.9 * (0.25 * 0.5 + 0.75 * 1) + 0.1 * 0.25)
    assert weights["b"] == pytest.approx(0.9 * (0.25 * 1 + 0.75 * (2 / 32)) + 0.1 * 1)


def test_accelerators_that_no_candidate_has_do_not_count():
    snapshot = a_snapshot(pools=[a_type("a", gpus=0), a_type("b", gpus=0)], policy=Policy(cpu_weight=0.0))
    assert PoolSelector(snapshot, random.Random(1)).weights("ab") == pytest.approx({"a": 0.1, "b": 0.1})


def test_instances_of_others_are_no_part_of_a_pools_total():
    pools = [a_type("a", 9), a_type("b", 3)]
    snapshot = replace(a_snapshot(pools=pools), external={"a": 8})
    by_pool = {"a": {"a": 1}, "b": {"b": 1}}
    found = PoolSelector(snapshot, random.Random(1))._candidates(by_resources(), by_pool, lambda _: 1)
    assert {each.name: (each.total, each.free, each.left) for each in found} == {"a": (8, 8, 0), "b": (24, 8, 0)}


def test_a_type_of_which_nothing_is_known_counts_by_its_instances():
    snapshot = a_snapshot(pools=[Pool("x", 7)])
    job = by_resources(asked=Resources())
    (contender,) = PoolSelector(snapshot, random.Random(1))._candidates(job, {"x": {"x": 1}}, lambda _: 5)
    assert (contender.total, contender.free) == (7, 5)


# -- cursors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", GOING_ROUND)
def test_starts_of_one_plan_go_round_and_each_takes_its_cursors_along(placement):
    pools = [a_type(name, 9) for name in "abc"]
    jobs = [by_resources(f"j{n}", entry_time=at(n)) for n in range(4)]
    plan = a_plan(*jobs, pools=pools, policy=Policy(placement=placement))
    assert [next(iter(start.units)) for start in plan.starts] == ["a", "b", "c", "a"]
    again = a_plan(jobs[1], pools=pools, policy=Policy(placement=placement), cursors=plan.starts[0].cursors)
    assert again.starts[0].units == plan.starts[1].units
    assert again.starts[0].cursors == plan.starts[1].cursors


def test_a_pool_that_was_the_only_one_free_has_had_its_turn():
    pools = [a_type("a", 0), a_type("b", 1), a_type("c", 0)]
    plan = a_plan(by_resources(), pools=pools, policy=Policy(placement=By.ROUND_ROBIN))
    assert plan.starts[0].cursors == Cursors("b")


def test_weights_of_pools_that_are_gone_are_forgotten():
    cursors = Cursors("gone", {"gone": 50.0, "a": -1.0, "b": 1.0})
    policy = Policy(placement=By.SMOOTH_WEIGHTED_ROUND_ROBIN)
    plan = a_plan(by_resources(), pools=[a_type("a"), a_type("b")], policy=policy, cursors=cursors)
    assert (plan.starts[0].units, set(plan.starts[0].cursors.weights)) == ({"b": 1}, {"a", "b"})


# -- waiting -----------------------------------------------------------------------------------------------------------


def full(*names):
    return [a_running_job(f"on-{name}", units={name: 4}, preemptible=False) for name in names]


@pytest.mark.parametrize("placement", By)
def test_a_job_that_keeps_waiting_keeps_its_reason_from_pass_to_pass(placement):
    pools, policy = [a_type(name) for name in "abc"], Policy(placement=placement)
    reasons = {
        a_plan(
            by_resources(count=2),
            pools=pools,
            policy=policy,
            active=full(*"abc"),
            seed=seed,
            cursors=Cursors("abc"[seed % 3], {"a": seed, "b": -seed}),
        )
        .waits[0]
        .reason.pool
        for seed in range(30)
    }
    assert len(reasons) == 1


def test_jobs_that_ask_for_different_things_wait_in_different_queues():
    pools = [a_type(name) for name in "abc"]
    asked = [Resources(vcpus=n) for n in range(20)]
    found = {queue_of(by_resources(asked=each), *pools, placement=By.RANDOM)[0] for each in asked}
    assert found == {"a", "b", "c"}


@pytest.mark.parametrize("placement", By)
def test_a_pool_that_could_never_hold_the_job_is_no_queue_for_it(placement):
    pools, policy = [a_type("a", 2), a_type("b", 4), a_type("c", 1)], Policy(placement=placement)
    wait = a_plan(by_resources(count=4), pools=pools, policy=policy, active=full("b")).waits[0]
    assert wait.reason.pool == "b"


def test_a_job_waits_where_its_share_prefers_to_be():
    share = Share(name="default", prefers=("c",))
    pools = [a_type(name) for name in "abc"]
    assert queue_of(by_resources(), *pools, shares={"default": share})[0] == "c"
    assert queue_of(by_resources(listed=("b",)), *pools, shares={"default": share})[0] == "b"


def test_all_alternatives_of_a_blocked_job_stay_behind_the_one_where_it_waits():
    pools = [a_type("a", 9), a_type("b", 5), a_type("c", 7)]
    assert queue_of(by_resources(), *pools) == ["b", "a", "c"]


# -- best fit among types of which much or little is known -------------------------------------------------------------


def chosen_of(asked, *pools):
    (units,) = starts_of(a_plan(by_resources(asked=asked), pools=pools)).values()
    return next(iter(units))


def no_larger(one, other):
    return one.name != other.name and all(
        getattr(one, part) <= getattr(other, part)
        for part in ("accelerators", "accelerator_memory_gib", "vcpus", "memory_gib")
    )


def dearer(one, other):
    return bool(one.price and other.price and one.price > other.price)


def all_of(kind):
    return Resources(
        accelerators=kind.accelerators,
        accelerator_memory_gib=kind.accelerator_memory_gib,
        vcpus=kind.vcpus,
        memory_gib=kind.memory_gib,
    )


def larger(one, other):
    return no_larger(one, other) and not no_larger(other, one)


def test_of_all_types_that_ship_none_is_passed_over_for_a_larger_one_unless_that_is_cheaper():
    kinds = Catalogue().types
    pairs = [(one, other) for one in kinds for other in kinds if larger(one, other) and not dearer(one, other)]
    assert len(pairs) > 5_000
    # A plan takes its time: every pair is asked of the placer alone.
    for one, other in pairs:
        snapshot = a_snapshot(pools=[Pool(one.name, 4), Pool(other.name, 4)])
        job = by_resources(asked=all_of(one))
        placement = PoolSelector(snapshot, random.Random(1)).place(job, [{other.name: 1}, {one.name: 1}], lambda _: 4)
        assert placement.units == {one.name: 1}, (one, other)


def test_a_type_without_a_known_price_does_not_seem_to_cost_nothing():
    pools = [Pool("ml.c8i.96xlarge", 4), Pool("ml.m5.large", 4)]
    assert chosen_of(Resources(vcpus=2), *pools) == "ml.m5.large"


def test_prices_decide_where_those_of_all_that_have_least_to_spare_are_known():
    small, large = a_type("small", cpus=8, price=9.0), a_type("large", cpus=16, price=4.0)
    assert chosen_of(Resources(accelerators=8), small, large) == "large"
    assert chosen_of(Resources(accelerators=8), small, large, a_type("more", gpus=16, cpus=4)) == "large"
    assert chosen_of(Resources(accelerators=8), small, large, a_type("other", cpus=99)) == "small"


def test_a_pool_of_which_less_is_told_does_not_seem_to_be_the_smallest():
    told = a_type("told", accelerator_memory_gib=640.0)
    assert chosen_of(Resources(accelerators=8), a_type("silent", accelerator_memory_gib=0.0), told) == "told"
    assert chosen_of(Resources(accelerators=8), a_type("a", cpus=0), a_type("b")) == "b"
