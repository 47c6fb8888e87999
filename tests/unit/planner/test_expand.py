"""Vertical expansion: what the manager makes for what nothing can hold, and what it removes again.

The scenario of Liu et al. 2022, tables 4 and 5: four nodes of 1 CPU and 512 MiB, many tasks that these hold, two of
2 CPUs and 512 MiB, one of 2 CPUs and 1,024 MiB.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.pools import pool_problems
from trainmaster.domain.capacity.resolve import resolve, with_changes
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.jobs.job import Job, Reservation
from trainmaster.domain.plan import Expand, Retire, Shrink, Snapshot
from trainmaster.domain.policy.settings import Budget, Choose, Expansion, Lending, Policy, Share
from trainmaster.domain.reasons.capacity import Infeasible
from trainmaster.domain.records import Records
from trainmaster.planner.expansion.expand import ExpansionPlan, plan_expansion, target_size
from trainmaster.planner.expansion.guardrails import ManagedPools
from trainmaster.planner.schedule import schedule

ON = Expansion(enabled=True)
POD1, POD2, POD3 = "ml.pod1.small", "ml.pod2.small", "ml.pod3.small"


def types(*kinds: InstanceType, **quotas: int) -> Catalogue:
    """These and none of those that ship with us: they take the whole demand, so none of ours is as cheap."""
    return Catalogue({kind.name: kind for kind in kinds}, {name.replace("_", "."): n for name, n in quotas.items()})


PODS = types(
    InstanceType(name=POD1, vcpus=1, memory_gib=0.5, price=0.001),
    InstanceType(name=POD2, vcpus=2, memory_gib=0.5, price=0.002),
    InstanceType(name=POD3, vcpus=2, memory_gib=1.0, price=0.003),
)


def asking(name: str, instances: int = 1, seconds: float = 0, **resources: object) -> Job:
    """A job by resource."""
    demand = Demand((), queue_selects_pool=True, resources=Resources(**resources), instances=instances)  # type: ignore[arg-type]
    return b.a_job(name, entry_time=b.at(seconds), demand=demand)


def small(name: str, **more: object) -> Job:
    return asking(name, vcpus=1, memory_gib=0.5, **more)  # type: ignore[arg-type]


TASK2 = {"vcpus": 2, "memory_gib": 0.5}
TASK3 = {"vcpus": 2, "memory_gib": 1.0}


def queue(
    *waiting: Job,
    pools: tuple[Pool, ...] = (Pool(POD1, 4),),
    active: tuple[Job, ...] = (),
    expansion: Expansion = ON,
    catalogue: Catalogue = PODS,
    records: Records | None = None,
    **more: object,
) -> Snapshot:
    snapshot = b.a_snapshot(
        pools={pool.name: pool for pool in pools} or None,
        waiting=waiting,
        active=active,
        policy=Policy(expansion=expansion),
        **more,  # type: ignore[arg-type]
    )
    made = replace(snapshot, catalogue=catalogue, records=records or Records(), pools={p.name: p for p in pools})
    return resolve(made)


def running(name: str, pool: str, count: int = 1) -> Job:
    return b.a_running_job(name, units={pool: count})


def made(decisions: ExpansionPlan) -> dict[str, int]:
    """Caps of the pools that are made or made larger, by name."""
    return {each.pool.name: each.pool.cap for each in decisions.decisions if isinstance(each, Expand)}


def gone(decisions: ExpansionPlan) -> list[str]:
    return [each.pool.name for each in decisions.decisions if isinstance(each, Retire)]


def a_made_pool(name: str = POD2, cap: int = 2, **fields: object) -> Pool:
    given: dict[str, object] = {"type_": name, "made_for": "1 x (vcpus=2)", "made_at": b.NOW, "price": 0.002}
    return Pool(name, cap, **{**given, **fields})  # type: ignore[arg-type]


# -- the article's scenario (tables 4 and 5) ---------------------------------------------------------------------------
ARTICLE = (
    *(small(f"task1-{number}", seconds=number) for number in range(8)),
    asking("task2-a", seconds=10, **TASK2),
    asking("task2-b", seconds=11, **TASK2),
    asking("task3", seconds=12, **TASK3),
)


def test_the_articles_scenario_makes_two_nodes_and_one():
    assert made(plan_expansion(queue(*ARTICLE), b.NOW)) == {POD2: 2, POD3: 1}


def test_the_articles_tasks_all_start_in_the_pass_that_expands():
    plan = schedule(queue(*ARTICLE), b.NOW, random.Random(1))
    started = {start.job.name: dict(start.units) for start in plan.starts}
    assert started["task2-a"] == started["task2-b"] == {POD2: 1}
    assert started["task3"] == {POD3: 1}
    assert [wait.job.name for wait in plan.waits] == [f"task1-{number}" for number in range(4, 8)]


def test_the_articles_tasks_2_and_3_never_start_without_expansion():
    snapshot = queue(*ARTICLE, expansion=Expansion())
    plan = schedule(snapshot, b.at(1e6), random.Random(1))
    waiting = {wait.job.name: wait.reason for wait in plan.waits}
    assert all(isinstance(waiting[name], Infeasible) for name in ("task2-a", "task2-b", "task3"))
    assert not plan.expansions


# -- target sizes (equations 10 to 12) ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("used", "demand", "utilization", "per_node", "nodes"),
    [
        (0, 2, 0.8, 1, 2),
        (4, 4, 0.8, 1, 5),
        (8, 9, 0.8, 1, 10),
        (2, 5, 1.0, 1, 5),
        (0, 9, 0.8, 4, 3),
        (3, 0, 0.3, 1, 10),
    ],
)
def test_a_target_is_the_larger_of_what_use_and_what_demand_ask_for(used, demand, utilization, per_node, nodes):
    assert target_size(used, demand, utilization, per_node) == nodes


# -- which type --------------------------------------------------------------------------------------------------------
CHOICE = types(
    InstanceType(name="ml.a.large", vcpus=2, memory_gib=8, price=0.5),
    InstanceType(name="ml.b.large", vcpus=4, memory_gib=8, price=0.2),
    InstanceType(name="ml.c.large", vcpus=4, memory_gib=8),
)


def one_type(expansion: Expansion, catalogue: Catalogue = CHOICE, **resources: object) -> list[str]:
    given = resources or {"vcpus": 2, "memory_gib": 8.0}
    return [
        *made(plan_expansion(queue(asking("j", **given), pools=(), expansion=expansion, catalogue=catalogue), b.NOW))
    ]


def only(*patterns: str, **fields: object) -> Expansion:
    return replace(ON, types=patterns, **fields)  # type: ignore[arg-type]


def test_the_cheapest_type_that_covers_the_demand_is_taken():
    assert one_type(only("ml.?.large", "ml.a.*", "ml.b.*", "ml.c.*")) == ["ml.b.large"]


def test_or_the_smallest():
    assert one_type(only("ml.a.*", "ml.b.*", "ml.c.*", choose=Choose.SMALLEST)) == ["ml.a.large"]


def test_a_type_of_unknown_price_comes_last_and_not_at_all_under_a_budget():
    assert one_type(only("ml.c.*")) == ["ml.c.large"]
    snapshot = queue(
        asking("j", vcpus=4),
        pools=(),
        expansion=only("ml.c.*", dollars_per_hour=5),
        catalogue=types(CHOICE.learned["ml.c.large"]),
    )
    result = plan_expansion(snapshot, b.NOW)
    assert not result.decisions
    assert "j" in result.refused


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"vcpus": 36}, "ml.c4.8xlarge"),  # not ml.m5.12xlarge, the cheapest of which a price ships with us
        ({"vcpus": 64, "memory_gib": 200}, "ml.m4.16xlarge"),  # not ml.g6.16xlarge, which has a GPU besides
        ({"accelerators": 1, "accelerator_memory_gib": 44}, "ml.g6e.xlarge"),
    ],
)
def test_before_prices_are_learned_a_type_is_taken_to_cost_no_more_than_one_with_more_of_everything(asked, expected):
    assert one_type(ON, Catalogue(), **asked) == [expected]


def test_a_price_that_is_known_to_be_higher_is_believed_whatever_the_size():
    cheap_large = Catalogue(prices={"ml.c4.8xlarge": 9.0, "ml.m5.12xlarge": 2.0})
    assert one_type(only("ml.c4.8xlarge", "ml.m5.12xlarge"), cheap_large, vcpus=36) == ["ml.m5.12xlarge"]


def test_a_learned_price_lets_the_type_in_under_a_budget_and_decides_which_is_cheapest():
    known = types(CHOICE.learned["ml.c.large"])
    job = asking("j", vcpus=4)
    budget = only("ml.c.*", dollars_per_hour=5)
    priced = queue(job, pools=(), expansion=budget, catalogue=replace(known, prices={"ml.c.large": 2.0}))
    (expand,) = plan_expansion(priced, b.NOW).decisions
    assert (expand.pool.instance_type, expand.pool.price, expand.dollars_per_hour) == ("ml.c.large", 2.0, 2.0)
    cheap = replace(CHOICE, prices={"ml.a.large": 0.01, "ml.b.large": 0.02})
    assert one_type(only("ml.a.*", "ml.b.*", "ml.c.*"), cheap) == ["ml.a.large"]


def test_a_demand_that_no_type_covers_is_told_so():
    result = plan_expansion(queue(asking("j", vcpus=100_000), pools=()), b.NOW)
    assert result == ExpansionPlan((), {"j": "no known instance type satisfies the request"})


# -- guard rails -------------------------------------------------------------------------------------------------------
def pod2_jobs(count: int, instances: int = 1) -> list[Job]:
    return [asking(f"j{number:02}", instances, number, **TASK2) for number in range(count)]


PODS_ONLY = only("ml.pod*")


@pytest.mark.parametrize(
    ("expansion", "quotas", "cap"),
    [
        (replace(PODS_ONLY, max_per_type=3), {}, 3),
        (replace(PODS_ONLY, max_per_type=50, max_instances=4), {}, 4),
        (replace(PODS_ONLY, max_per_type=50, dollars_per_hour=0.01), {}, 5),
        (PODS_ONLY, {POD2: 6}, 6),
        (replace(PODS_ONLY, max_per_type=7, max_instances=50), {POD2: 60}, 7),
    ],
    ids=["per type", "in all", "dollars", "quota", "several"],
)
def test_a_pool_is_as_large_as_the_guard_rails_let_it_be(expansion, quotas, cap):
    snapshot = queue(*pod2_jobs(20), expansion=expansion, catalogue=replace(PODS, quotas=quotas))
    assert made(plan_expansion(snapshot, b.NOW)) == {POD2: cap}


def test_dollars_bound_all_made_pools_together_whatever_they_were_made_at():
    there = a_made_pool(cap=2, price=0.004)
    jobs = [asking(f"j{number}", seconds=number, **TASK3) for number in range(9)]
    snapshot = queue(*jobs, pools=(there,), expansion=replace(PODS_ONLY, dollars_per_hour=0.018))
    assert made(plan_expansion(snapshot, b.NOW)) == {POD3: 3}


def test_made_pools_are_pools_that_people_could_have_set():
    theirs = (Pool(POD2, 0), Pool(f"{POD2}.made", 0, type_=POD2), a_made_pool("old", type_=POD1))
    snapshot = queue(*pod2_jobs(2), pools=theirs, expansion=PODS_ONLY)
    after = with_changes(snapshot, plan_expansion(snapshot, b.NOW).decisions)
    assert after.pools.keys() == {POD2, f"{POD2}.made", "old", f"{POD2}.made2"}
    assert list(pool_problems(list(after.pools.values()))) == []


def test_pools_that_people_set_take_their_part_of_the_quota():
    catalogue = replace(PODS, quotas={POD2: 8})
    others = (
        Pool(POD2, 4, type_=POD2, draining=True),
        Pool("small", 1, type_=POD2),
        Pool("spot", 9, type_=POD2, kind=Kind.SPOT),
    )
    snapshot = queue(*pod2_jobs(20, instances=2), pools=others, expansion=PODS_ONLY, catalogue=catalogue)
    assert made(plan_expansion(snapshot, b.NOW)) == {f"{POD2}.made": 3}


def test_a_type_that_people_drain_is_not_made_beside_their_pool():
    drained = Pool("theirs", 4, type_=POD2, draining=True)
    snapshot = queue(*pod2_jobs(1), pools=(drained,), expansion=PODS_ONLY)
    assert made(plan_expansion(snapshot, b.NOW)) == {POD3: 1}, "another type, as where the pool had been made"
    alone = queue(*pod2_jobs(1), pools=(drained,), expansion=only(POD2))
    assert plan_expansion(alone, b.NOW).refused == {"j00": "theirs, a configured pool of this type, is being drained"}
    beside = queue(*pod2_jobs(1, 2), pools=(drained, Pool("more", 1, type_=POD2)), expansion=only(POD2))
    assert made(plan_expansion(beside, b.NOW)) == {POD2: 2}


def test_a_pool_that_could_not_hold_the_largest_job_is_not_made_at_all():
    result = plan_expansion(queue(*pod2_jobs(1, instances=4), expansion=replace(only(POD2), max_per_type=3)), b.NOW)
    assert result == ExpansionPlan(
        (), {"j00": f"4 x {POD2} would exceed the maximum instances of a type, 3 (expansion.maxPerType)"}
    )


def test_the_reason_is_that_of_a_type_that_the_settings_allow():
    refused = plan_expansion(queue(*pod2_jobs(1, instances=9), expansion=only(POD3)), b.NOW).refused
    assert refused == {"j00": f"9 x {POD3} would exceed the maximum instances of a type, 8 (expansion.maxPerType)"}
    none = plan_expansion(queue(*pod2_jobs(1), expansion=only(POD1)), b.NOW).refused
    assert none == {"j00": f"the settings do not allow {POD2} (expansion.types)"}


def test_where_the_best_type_has_no_room_the_next_is_taken():
    catalogue = replace(PODS, quotas={POD2: 3})
    snapshot = queue(*pod2_jobs(1, instances=4), expansion=PODS_ONLY, catalogue=catalogue)
    assert made(plan_expansion(snapshot, b.NOW)) == {POD3: 4}


def test_every_demand_gets_something_before_any_gets_much():
    jobs = [*pod2_jobs(20), asking("last", seconds=99, **TASK3)]
    snapshot = queue(*jobs, expansion=replace(PODS_ONLY, max_instances=5))
    assert made(plan_expansion(snapshot, b.NOW)) == {POD2: 4, POD3: 1}


def test_the_reason_is_told_with_the_job():
    snapshot = queue(asking("j", 9, **TASK2), expansion=PODS_ONLY)
    (wait,) = schedule(snapshot, b.NOW, random.Random(1)).waits
    assert wait.reason == Infeasible(
        "vcpus=2,memory_gib=0.5",
        9,
        0,
        f"9 x {POD2} would exceed the maximum instances of a type, 8 (expansion.maxPerType)",
    )


class Walked(dict[str, Pool]):
    """Pools that count how often they are iterated in full."""

    times = 0

    def _walk(self) -> None:
        self.times += 1

    def keys(self):
        self._walk()
        return super().keys()

    def values(self):
        self._walk()
        return super().values()

    def items(self):
        self._walk()
        return super().items()

    def __iter__(self):
        self._walk()
        return super().__iter__()


@pytest.mark.parametrize("drained", [False, True])
def test_what_is_asked_of_every_type_for_every_demand_goes_through_all_pools_but_once(drained):
    theirs = [Pool(f"p{number:02}", 9, type_=POD2, draining=drained) for number in range(20)]
    pools = Walked({pool.name: pool for pool in (*theirs, a_made_pool(POD1, 2, made_for="x"))})
    making = ManagedPools(replace(ON, max_instances=4), pools, replace(PODS, quotas={POD2: 2, POD3: 2}))
    kind, before = PODS.learned[POD2], pools.times
    for count in range(3, 30):
        assert making.refusal(kind, count, "")
        assert not making.make_room(kind, count, "", {POD1: 2})
    assert before <= 2
    assert pools.times == before


# -- one pool per type and demand --------------------------------------------------------------------------------------
def test_two_demands_that_choose_one_type_share_its_pool():
    snapshot = queue(asking("a", vcpus=2), asking("b", 2, 1, memory_gib=0.4, vcpus=2), expansion=PODS_ONLY)
    (expand,) = plan_expansion(snapshot, b.NOW).decisions
    assert isinstance(expand, Expand)
    assert (expand.pool.name, expand.pool.cap, expand.jobs) == (POD2, 3, ("a", "b"))
    assert (expand.pool.made_for, expand.pool.made_at) == ("1 x (vcpus=2)", b.NOW)
    assert expand.dollars_per_hour == pytest.approx(0.006)


def test_a_pool_that_people_named_after_the_type_keeps_its_name_and_its_cap():
    people = Pool(POD2, 1)
    result = plan_expansion(queue(*pod2_jobs(1, instances=3), pools=(people,), expansion=PODS_ONLY), b.NOW)
    assert made(result) == {f"{POD2}.made": 3}


def test_a_larger_job_makes_the_pool_larger_that_was_made_for_its_kind():
    snapshot = queue(*pod2_jobs(1, instances=3), pools=(a_made_pool(cap=1, made_at=b.at(-900)),), expansion=PODS_ONLY)
    (expand,) = plan_expansion(snapshot, b.NOW).decisions
    assert (expand.pool.cap, expand.pool.made_at, expand.pool.made_for) == (3, b.NOW, "1 x (vcpus=2)")


def test_nothing_is_made_while_the_pool_for_such_jobs_is_drained():
    snapshot = queue(*pod2_jobs(1), pools=(a_made_pool(draining=True),), expansion=only(POD2))
    assert plan_expansion(snapshot, b.NOW).refused == {
        "j00": f"{POD2}, the queue's pool of this type, is being drained"
    }


def test_what_others_outside_the_queue_hold_for_now_makes_nothing_infeasible():
    people = Pool("mine", 3, count_external=True, type_=POD2)
    snapshot = queue(*pod2_jobs(1, instances=3), pools=(people,), expansion=PODS_ONLY, external={"mine": 3})
    assert made(plan_expansion(snapshot, b.NOW)) == {}


def test_jobs_that_peoples_pools_can_hold_do_not_take_what_was_made_for_others():
    snapshot = queue(small("small"), pools=(Pool(POD1, 4), a_made_pool()), active=(running("r", POD1, 4),))
    assert snapshot.waiting[0].demand.pools == (POD1,)
    drained = queue(small("small"), pools=(Pool(POD1, 4, draining=True), a_made_pool()))
    assert drained.waiting[0].demand.pools == (POD1, POD2)


# -- jobs that name their types ----------------------------------------------------------------------------------------
def test_a_job_that_names_a_type_without_a_pool_gets_one_of_that_name():
    snapshot = queue(b.a_job("typed", units={POD3: 2}), expansion=PODS_ONLY)
    assert made(plan_expansion(snapshot, b.NOW)) == {POD3: 2}
    (start,) = schedule(snapshot, b.NOW, random.Random(1)).starts
    assert dict(start.units) == {POD3: 2}


def test_but_not_where_people_have_set_a_smaller_pool_of_it():
    snapshot = queue(b.a_job("typed", units={POD1: 9}), expansion=PODS_ONLY)
    assert plan_expansion(snapshot, b.NOW) == ExpansionPlan((), {"typed": f"there is a configured pool {POD1}"})


def test_a_job_of_several_types_together_is_left_to_people():
    snapshot = queue(b.a_job("typed", units={POD2: 1, POD3: 1}), expansion=PODS_ONLY)
    assert plan_expansion(snapshot, b.NOW) == ExpansionPlan(
        (), {"typed": "no known instance type satisfies the request"}
    )


# -- jobs that some rule keeps from starting there ---------------------------------------------------------------------
KEEPS_TO_ITSELF = Share(name="vision", nominal={POD1: 1}, lending=Lending.RESERVE)
SPENT = Share(name="vision", budget=Budget(dollars=0))


def under(share: Share, *waiting: Job, pools: tuple[Pool, ...] = (Pool(POD1, 4),), **more: object) -> Snapshot:
    """A queue with one share, of which the jobs named `v...` are."""
    jobs = [replace(job, share=share.name) if job.name.startswith("v") else job for job in waiting]
    snapshot = queue(*jobs, pools=pools, expansion=PODS_ONLY, **more)  # type: ignore[arg-type]
    return replace(snapshot, policy=replace(snapshot.policy, shares={share.name: share}))


@pytest.mark.parametrize(
    ("share", "why"),
    [
        (KEEPS_TO_ITSELF, f"share vision may have 0 x {POD2}, its own units"),
        (SPENT, "share vision has spent 0.0 of its 0.0 dollars; the next period begins at 2026-12-03T00:00:00Z"),
    ],
    ids=["borrows nothing", "budget spent"],
)
def test_no_pool_is_made_for_a_job_whose_share_could_not_start_it_there(share, why):
    snapshot = under(share, asking("v1", **TASK2))
    assert plan_expansion(snapshot, b.NOW) == ExpansionPlan((), {"v1": why})
    (wait,) = schedule(snapshot, b.NOW, random.Random(1)).waits
    assert wait.reason == Infeasible("vcpus=2,memory_gib=0.5", 1, 0, why)


@pytest.mark.parametrize("share", [KEEPS_TO_ITSELF, SPENT], ids=["borrows nothing", "budget spent"])
def test_of_jobs_that_ask_for_the_same_those_count_that_could_start(share):
    snapshot = under(share, asking("v1", **TASK2), asking("j2", seconds=1, **TASK2), asking("v3", seconds=2, **TASK2))
    (expand,) = plan_expansion(snapshot, b.NOW).decisions
    assert (expand.pool.cap, expand.jobs) == (1, ("j2",))
    full = replace(snapshot, pools={**snapshot.pools, POD2: a_made_pool(cap=1)}, active=(running("r1", POD2),))
    assert made(plan_expansion(resolve(full), b.NOW)) == {POD2: 2}


def test_jobs_that_ask_for_the_same_but_list_other_types_are_told_apart():
    share = Share(name="vision", max={POD2: 1})
    listed = Demand(
        ({POD3: 2},), queue_selects_pool=True, resources=Resources(vcpus=2, memory_gib=0.5), instances=2, listed=1
    )
    snapshot = under(share, asking("v1", 2, **TASK2), b.a_job("v2", entry_time=b.at(1), demand=listed))
    result = plan_expansion(resolve(snapshot), b.NOW)
    assert {each.pool.name: each.jobs for each in result.decisions} == {POD3: ("v1", "v2")}


def test_the_guard_rails_are_left_to_jobs_that_the_rules_let_start():
    snapshot = under(KEEPS_TO_ITSELF, asking("v1", 2, **TASK3), asking("j2", seconds=1, **TASK2))
    snapshot = replace(snapshot, policy=replace(snapshot.policy, expansion=replace(PODS_ONLY, max_instances=2)))
    assert made(plan_expansion(snapshot, b.NOW)) == {POD2: 1}


def test_of_a_group_no_more_count_than_may_run_at_once():
    jobs = [replace(job, group="sweep", max_concurrent=2) for job in pod2_jobs(5, instances=3)]
    assert made(plan_expansion(queue(*jobs, expansion=PODS_ONLY), b.NOW)) == {POD2: 6}
    busy = replace(running("r", POD1), group="sweep", max_concurrent=1)
    result = plan_expansion(queue(*jobs, active=(busy,), expansion=PODS_ONLY), b.NOW)
    assert result == ExpansionPlan(
        (), dict.fromkeys([job.name for job in jobs], "group sweep is at its limit of 1 running job")
    )


def test_of_a_user_no_more_counts_than_the_share_lets_one_have_of_the_pool():
    share = Share(name="vision", max_per_user={POD2: 3})
    there = a_made_pool(cap=1)
    jobs = [replace(asking(f"v{number}", seconds=number, **TASK2), submitted_by="ada") for number in range(9)]
    mine = replace(running("r", POD2), share="vision", submitted_by="ada")
    assert made(plan_expansion(under(share, *jobs, pools=(there,), active=(mine,)), b.NOW)) == {POD2: 3}


def test_a_job_whose_last_start_met_no_capacity_has_nothing_made_before_it_is_tried_again():
    job = replace(asking("j", **TASK2), retry_at=b.at(60))
    early = plan_expansion(queue(job, expansion=PODS_ONLY), b.at(59))
    assert early == ExpansionPlan((), {"j": "the next attempt of the job is at 2026-11-21T12:01:00Z"})
    assert made(plan_expansion(queue(job, expansion=PODS_ONLY), b.at(60))) == {POD2: 1}


# -- growth of pools that were made ------------------------------------------------------------------------------------
def test_a_loaded_pool_that_jobs_wait_for_grows_to_what_use_and_demand_ask_for():
    active = (running("r1", POD2, 4),)
    snapshot = queue(*pod2_jobs(2), pools=(a_made_pool(cap=4),), active=active, expansion=PODS_ONLY)
    assert made(plan_expansion(snapshot, b.NOW)) == {POD2: 6}


def test_a_pool_with_room_for_waiting_jobs_or_without_any_stays():
    room = queue(*pod2_jobs(1), pools=(a_made_pool(cap=4),), active=(running("r1", POD2, 3),), expansion=PODS_ONLY)
    alone = queue(pools=(a_made_pool(cap=4),), active=(running("r1", POD2, 4),), expansion=PODS_ONLY)
    assert made(plan_expansion(room, b.NOW)) == made(plan_expansion(alone, b.NOW)) == {}


def test_one_that_is_not_loaded_grows_for_a_gang_that_it_has_no_room_for_now():
    active = (running("r1", POD2, 3),)
    snapshot = queue(*pod2_jobs(1, instances=4), pools=(a_made_pool(cap=4),), active=active, expansion=PODS_ONLY)
    assert made(plan_expansion(snapshot, b.NOW)) == {POD2: target_size(3, 7, 0.8)} == {POD2: 7}
    (start,) = schedule(snapshot, b.NOW, random.Random(1)).starts
    assert dict(start.units) == {POD2: 4}


@pytest.mark.parametrize("order", sorted({*itertools.permutations([4, 1, 1, 1])}), ids=str)
def test_the_same_jobs_make_a_pool_of_the_same_size_in_whatever_order_they_come(order):
    snapshot = queue(expansion=PODS_ONLY)
    for number, instances in enumerate(order):
        waiting = resolve(replace(snapshot, waiting=(asking(f"j{number}", instances, number, **TASK2),)))
        plan = schedule(waiting, b.at(number), random.Random(1))
        active = [running(start.job.name, POD2, start.units[POD2]) for start in plan.starts]
        after = with_changes(waiting, plan.expansions)
        snapshot = replace(after, waiting=(), active=(*snapshot.active, *active))
    assert snapshot.pools[POD2].cap in (7, 8), "what they use, and that in steps of a pool that is full to f"
    assert len(snapshot.active) == 4


def test_jobs_that_peoples_pools_can_hold_make_nothing_grow():
    pools = (a_made_pool(cap=1), Pool("mine", 1, type_=POD2))
    active = (running("r1", POD2), running("r2", "mine"))
    snapshot = queue(*pod2_jobs(5), pools=pools, active=active, expansion=PODS_ONLY)
    assert made(plan_expansion(snapshot, b.NOW)) == {}


def test_something_for_each_infeasible_demand_goes_before_growth():
    active = (running("r1", POD2, 4),)
    jobs = [*pod2_jobs(9), asking("new", seconds=99, **TASK3)]
    snapshot = queue(*jobs, pools=(a_made_pool(cap=4),), active=active, expansion=replace(PODS_ONLY, max_instances=6))
    result = plan_expansion(snapshot, b.NOW)
    assert [*made(result).items()] == [(POD3, 1), (POD2, 5)]


# -- giving back what is not used --------------------------------------------------------------------------------------
IDLE = ON.retire_after


def smaller(decisions: ExpansionPlan) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Caps of the pools that become smaller, and the jobs for which they do, by name."""
    return {each.pool.name: (each.pool.cap, each.jobs) for each in decisions.decisions if isinstance(each, Shrink)}


def test_a_mostly_idle_pool_gives_way_to_a_demand_that_a_guard_rail_would_stop():
    active = (running("r1", POD2),)
    snapshot = queue(
        asking("new", 3, **TASK3),
        pools=(a_made_pool(cap=4),),
        active=active,
        expansion=replace(PODS_ONLY, max_instances=4),
    )
    result = plan_expansion(snapshot, b.NOW)
    assert (made(result), smaller(result)) == ({POD3: 3}, {POD2: (1, ("new",))})
    (start,) = schedule(snapshot, b.NOW, random.Random(1)).starts
    assert dict(start.units) == {POD3: 3}
    assert plan_expansion(with_changes(snapshot, result.decisions), b.NOW) == ExpansionPlan()


def test_it_keeps_what_is_used_waited_for_or_kept_for_a_job():
    hold = Reservation({POD2: 1}, b.UNTIL)
    waiting = [*pod2_jobs(1), replace(small("held"), reservation=hold), asking("new", 2, 9, **TASK3)]
    snapshot = queue(
        *waiting,
        pools=(a_made_pool(cap=4), Pool(POD1, 1)),
        active=(running("r1", POD2),),
        expansion=replace(ON, max_instances=4),
    )
    result = plan_expansion(snapshot, b.NOW)
    assert (made(result), smaller(result)) == ({}, {})
    assert "the maximum instances in all, 4" in result.refused["new"]


def test_of_several_as_few_give_as_possible_first_who_has_most():
    pools = (a_made_pool(cap=5), a_made_pool(POD1, 2, made_for="small ones"))
    snapshot = queue(asking("new", 2, **TASK3), pools=pools, expansion=replace(PODS_ONLY, max_instances=7))
    assert smaller(plan_expansion(snapshot, b.NOW)) == {POD2: (0, ("new",))}


def test_one_that_is_being_drained_gives_too_and_one_that_a_share_names_does_not():
    drained = a_made_pool(cap=4, draining=True)
    snapshot = queue(asking("new", 2, **TASK3), pools=(drained,), expansion=replace(PODS_ONLY, max_instances=4))
    assert smaller(plan_expansion(snapshot, b.NOW)) == {POD2: (0, ("new",))}
    share = Share(name="vision", nominal={POD2: 1})
    claimed = replace(snapshot, policy=replace(snapshot.policy, shares={"vision": share}))
    assert smaller(plan_expansion(claimed, b.NOW)) == {}


def test_another_type_is_taken_before_any_pool_gives():
    catalogue = replace(PODS, quotas={POD2: 4})
    pools = (Pool("theirs", 2, type_=POD2, kind=Kind.ON_DEMAND, draining=True), a_made_pool(POD1, 3, made_for="x"))
    snapshot = queue(*pod2_jobs(1, instances=3), pools=pools, expansion=PODS_ONLY, catalogue=catalogue)
    result = plan_expansion(snapshot, b.NOW)
    assert (made(result), smaller(result)) == ({POD3: 3}, {})


def test_a_pool_that_was_made_for_one_demand_in_a_pass_gives_nothing_to_the_next():
    jobs = [*pod2_jobs(1, instances=3), asking("new", 2, 9, **TASK3)]
    snapshot = queue(*jobs, pools=(a_made_pool(cap=1),), expansion=replace(PODS_ONLY, max_instances=4))
    result = plan_expansion(snapshot, b.NOW)
    assert (made(result), smaller(result), [*result.refused]) == ({POD2: 3}, {}, ["new"])


def test_what_has_been_idle_for_long_is_given_back_though_the_rest_is_in_use():
    snapshot = queue(pools=(a_made_pool(cap=9),), active=(running("r1", POD2, 3),))
    assert smaller(plan_expansion(snapshot, b.NOW + IDLE - timedelta(seconds=1))) == {}
    (shrink,) = plan_expansion(snapshot, b.NOW + IDLE).decisions
    assert isinstance(shrink, Shrink)
    assert (shrink.pool, shrink.idle_since) == (a_made_pool(cap=target_size(3, 3, 0.8)), b.NOW)
    after = with_changes(snapshot, [shrink])
    assert after.pools[POD2].cap == 4
    assert plan_expansion(after, b.NOW + 2 * IDLE) == ExpansionPlan()


def test_an_attempt_that_ended_there_restarts_that_time_and_a_job_that_backs_off_keeps_it():
    active, released = (running("r1", POD2),), Records(released={POD2: b.at(600)})
    snapshot = queue(pools=(a_made_pool(cap=9),), active=active, records=released)
    assert smaller(plan_expansion(snapshot, b.NOW + IDLE)) == {}
    job = replace(asking("j", 5, **TASK2), retry_at=b.NOW + 2 * IDLE)
    coming = queue(job, pools=(a_made_pool(cap=9),), active=active)
    assert smaller(plan_expansion(coming, b.NOW + IDLE)) == {}


def naming(name: str, *alternatives: dict[str, int], **more: object) -> Job:
    """A job that names pools itself, and by whose own choice any of several will do."""
    return b.a_job(name, entry_time=b.at(0), demand=Demand(alternatives, queue_selects_pool=True), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("demand", "name", "cap"),
    [
        (({POD1: 4}, {POD2: 4}), POD2, 7),
        (({f"{POD2}.made": 6},), f"{POD2}.made", 9),
        (({POD1: 1, POD2: 5},), POD2, 8),
    ],
    ids=["people's pool as well", "by the name of the manager's pool", "several pools at once"],
)
def test_what_a_job_that_names_the_pool_itself_could_take_is_given_neither_back_nor_to_others(demand, name, cap):
    theirs = (Pool(POD1, 4), *([Pool(POD2, 1)] if name != POD2 else []))
    made_pool = a_made_pool(name, 9, type_=POD2)
    active = (running("r0", POD1, 3), running("r1", name, 3))
    snapshot = queue(naming("j", *demand), pools=(*theirs, made_pool), active=active)
    late = b.NOW + IDLE
    assert smaller(plan_expansion(snapshot, late)) == ({name: (cap, ())} if cap < 9 else {})
    assert [start.job.name for start in schedule(snapshot, late, random.Random(1)).starts] == ["j"]
    infeasible = asking("new", 9 - cap + 2, 9, **TASK3)
    rails = replace(PODS_ONLY, max_instances=9)
    contended = queue(naming("j", *demand), infeasible, pools=(*theirs, made_pool), active=active, expansion=rails)
    assert "j" in [start.job.name for start in schedule(contended, b.NOW, random.Random(1)).starts]


def test_of_two_pools_that_a_job_names_neither_gives_what_it_could_start_on():
    pools = (a_made_pool(cap=4), a_made_pool(POD3, 9, type_=POD3))
    active = (running("r1", POD2, 4), running("r2", POD3, 3))
    snapshot = queue(naming("j", {POD2: 4}, {POD3: 6}), pools=pools, active=active)
    assert smaller(plan_expansion(snapshot, b.NOW + IDLE)) == {}


def test_a_job_that_a_rule_keeps_from_a_pool_that_it_names_keeps_nothing_there():
    job = naming("j", {POD1: 4}, {POD2: 4}, share="vision")
    pools, active = (Pool(POD1, 4), a_made_pool(cap=9)), (running("r1", POD2, 3),)
    snapshot = queue(job, pools=pools, active=active)
    shares = {"vision": KEEPS_TO_ITSELF}
    barred = replace(snapshot, policy=replace(snapshot.policy, shares=shares))
    assert smaller(plan_expansion(snapshot, b.NOW + IDLE)) == {POD2: (7, ())}
    assert smaller(plan_expansion(barred, b.NOW + IDLE)) == {POD2: (4, ())}


def test_an_elastic_job_that_has_become_smaller_restarts_that_time():
    job, late = running("r1", POD2, 9), b.NOW + IDLE
    assert job.attempt is not None
    resized = replace(job, attempt=job.attempt.holding(3, late - timedelta(minutes=1)))
    snapshot = queue(pools=(a_made_pool(cap=9),), active=(resized, running("r2", POD1)))
    assert smaller(plan_expansion(snapshot, late)) == {}
    (shrink,) = plan_expansion(snapshot, late - timedelta(minutes=1) + IDLE).decisions
    assert isinstance(shrink, Shrink)
    assert (shrink.pool.cap, shrink.idle_since) == (4, late - timedelta(minutes=1))


# -- retiring ----------------------------------------------------------------------------------------------------------
def test_a_made_pool_goes_once_no_job_has_held_it_for_long():
    snapshot = queue(pools=(a_made_pool(),))
    assert gone(plan_expansion(snapshot, b.NOW + IDLE - timedelta(seconds=1))) == []
    (retire,) = plan_expansion(snapshot, b.NOW + IDLE).decisions
    assert isinstance(retire, Retire)
    assert retire.idle_since == b.NOW


def test_the_last_attempt_that_ended_in_it_restarts_the_time():
    records = Records(released={POD2: b.at(600)})
    snapshot = queue(pools=(a_made_pool(),), records=records)
    assert gone(plan_expansion(snapshot, b.NOW + IDLE)) == []
    assert gone(plan_expansion(snapshot, b.at(600) + IDLE)) == [POD2]


def test_a_pool_that_a_job_holds_or_waits_for_stays():
    held = queue(pools=(a_made_pool(),), active=(running("r", POD2),))
    awaited = queue(*pod2_jobs(1), pools=(a_made_pool(),))
    assert gone(plan_expansion(held, b.NOW + IDLE)) == gone(plan_expansion(awaited, b.NOW + IDLE)) == []


@pytest.mark.parametrize("share", [KEEPS_TO_ITSELF, SPENT], ids=["borrows nothing", "budget spent"])
def test_a_job_that_could_not_start_in_a_pool_does_not_keep_it(share):
    snapshot = resolve(under(share, asking("v1", **TASK2), pools=(a_made_pool(),)))
    assert snapshot.waiting[0].demand.pools == (POD2,)
    assert gone(plan_expansion(snapshot, b.NOW + IDLE)) == [POD2]
    mine = replace(snapshot, waiting=(replace(snapshot.waiting[0], share="other"),))
    assert gone(plan_expansion(mine, b.NOW + IDLE)) == []


def test_one_that_is_tried_again_later_does_keep_it():
    job = replace(asking("j", **TASK2), retry_at=b.NOW + 2 * IDLE)
    assert gone(plan_expansion(queue(job, pools=(a_made_pool(),)), b.NOW + IDLE)) == []


def test_a_pool_that_a_share_names_stays():
    share = Share(name="vision", nominal={POD2: 1})
    snapshot = queue(pools=(a_made_pool(),))
    snapshot = replace(snapshot, policy=replace(snapshot.policy, shares={"vision": share}))
    assert gone(plan_expansion(snapshot, b.NOW + IDLE)) == []


def test_pools_that_people_set_never_go():
    assert gone(plan_expansion(queue(pools=(Pool(POD2, 3),)), b.NOW + IDLE * 1000)) == []


def test_what_was_made_goes_though_expansion_is_off_by_now():
    snapshot = queue(pools=(a_made_pool(),), expansion=Expansion())
    assert gone(plan_expansion(snapshot, b.NOW + IDLE)) == [POD2]


def test_a_second_pass_over_what_a_first_has_made_changes_nothing():
    snapshot = queue(*ARTICLE)
    after = with_changes(snapshot, plan_expansion(snapshot, b.NOW).decisions)
    assert plan_expansion(after, b.NOW) == ExpansionPlan()


def test_what_a_pool_that_goes_leaves_within_the_guard_rails_is_used_in_the_same_pass():
    snapshot = queue(asking("task3", **TASK3), pools=(a_made_pool(cap=2),), expansion=replace(ON, max_instances=2))
    found = plan_expansion(snapshot, b.NOW + IDLE)
    assert (made(found), gone(found)) == ({POD3: 1}, [POD2])
    assert plan_expansion(with_changes(snapshot, found.decisions), b.NOW + IDLE) == ExpansionPlan()


def test_an_idle_pool_that_is_too_small_for_who_waits_grows_instead_of_going():
    snapshot = queue(*pod2_jobs(1, instances=3), pools=(a_made_pool(cap=2),))
    found = plan_expansion(snapshot, b.NOW + IDLE)
    assert (made(found), gone(found)) == ({POD2: 3}, [])
