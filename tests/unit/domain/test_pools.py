"""Pools as people set them: what is wrong with them is named, and what is right is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import G5, P5, a_pool, at
from trainmaster.domain.capacity.pools import as_made, default_name, pool_problems, problems_of_one, with_windows
from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
ON_PLAN = Pool("spring", 4, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn=PLAN)
SPOT = Pool("p5-spot", 8, type_=P5, kind=Kind.SPOT, price=31.5)


def fields(*pools):
    return [problem.field for problem in pool_problems(pools)]


def test_pools_of_all_kinds_are_right():
    others = [Pool("team.a_1-x", 1, type_=P5), Pool(default_name(P5, Kind.SPOT), 1, type_=P5, kind=Kind.SPOT)]
    described = Pool("odd", 1, type_="ml.x9.large", vcpus=8, memory_gib=0.5, accelerator="aws", draining=True)
    assert fields(described) == []
    assert fields() == fields(a_pool(P5, 0), a_pool(G5, 1_000_000), ON_PLAN, SPOT, *others) == []


def test_names_follow_type_and_kind():
    assert [default_name(P5, kind) for kind in Kind if kind is not Kind.SERVICE] == [
        P5,
        f"{P5}.spot",
        f"{P5}.training-plan",
    ]


@pytest.mark.parametrize(
    ("pool", "field"),
    [
        (Pool("", 1, type_=P5), "name"),
        (Pool("a b", 1, type_=P5), "name"),
        (Pool("a/b", 1, type_=P5), "name"),
        (Pool("-a", 1, type_=P5), "name"),
        (Pool("é", 1, type_=P5), "name"),
        (Pool("a\n", 1, type_=P5), "name"),
        (Pool("a" * 64, 1, type_=P5), "name"),
        (Pool(G5, 1, type_=P5), "name"),
        (Pool(P5, 1, kind=Kind.SPOT), "name"),
        (Pool("a", 1, type_="p5.48xlarge"), "instanceType"),
        (Pool("spring", 1), "instanceType"),
        (Pool(P5, -1), "cap"),
        (Pool(P5, 1_000_001), "cap"),
        (Pool(P5, 1, price=-0.5), "price"),
        (Pool(P5, 1, price=float("nan")), "price"),
        (Pool(P5, 1, price=float("inf")), "price"),
        (Pool(P5, 1, accelerators_per_unit=-1), "accelerators"),
        (Pool(P5, 1, accelerators_per_unit=1025), "accelerators"),
        (Pool(P5, 1, vcpus=-1), "vcpus"),
        (Pool(P5, 1, vcpus=100_001), "vcpus"),
        (Pool(P5, 1, memory_gib=-0.5), "memoryGib"),
        (Pool(P5, 1, memory_gib=float("nan")), "memoryGib"),
        (Pool(P5, 1, memory_gib=1_000_001), "memoryGib"),
        (Pool(P5, 1, accelerator_memory_gib=float("inf")), "acceleratorMemoryGib"),
        (Pool(P5, 1, accelerator="NVIDIA"), "accelerator"),
        (Pool(P5, 1, accelerator="a\n"), "accelerator"),
        (replace(ON_PLAN, plan_arn=None), "trainingPlanArn"),
        (replace(ON_PLAN, plan_arn="arn:aws:sagemaker:us-east-1:1:training-plan/x"), "trainingPlanArn"),
        (replace(ON_PLAN, plan_arn=PLAN + "/x"), "trainingPlanArn"),
        (replace(SPOT, plan_arn=PLAN), "trainingPlanArn"),
    ],
)
def test_problems_are_named(pool, field):
    assert fields(a_pool("ml.m5.large", 1), pool) == [f"pools[1].{field}"]


def test_two_pools_of_a_type_and_kind_need_names():
    spot = Pool(default_name(P5, Kind.SPOT), 1, type_=P5, kind=Kind.SPOT)
    (problem,) = pool_problems([spot, spot])
    assert (problem.field, "different names" in problem.hint) == ("pools[1].name", True)
    (problem,) = pool_problems([SPOT, replace(SPOT, type_=G5)])
    assert problem.hint == "Name each pool once."


def test_one_pool_is_checked_beside_the_others_by_its_own_fields():
    wrong = replace(ON_PLAN, name="other", cap=-1)
    assert [problem.field for problem in problems_of_one(wrong, [SPOT, ON_PLAN])] == ["cap", "trainingPlanArn"]
    assert list(problems_of_one(ON_PLAN, [SPOT])) == []


MADE = Pool(G5, 2, made_for="accelerators=1", made_at=at(0))


@pytest.mark.parametrize(
    ("given", "noted"),
    [
        ({}, True),
        ({"draining": True}, True),
        ({"cap": 3}, False),
        ({"price": 1.0}, False),
        ({"count_external": False}, False),
        ({"type_": P5}, False),
    ],
)
def test_a_made_pool_stays_the_managers_where_people_leave_it_as_it_was(given, noted):
    sent = replace(MADE, made_for="", made_at=None, **given)
    stays = replace(MADE, **given) if noted else sent
    assert as_made([sent, SPOT], {G5: MADE}) == [stays, SPOT]
    assert as_made([replace(sent, made_for="x", made_at=at(9))], {G5: MADE}) == [stays]


def test_people_cannot_say_that_the_manager_made_a_pool():
    assert as_made([MADE], {}) == as_made([MADE], {G5: Pool(G5, 1)}) == [Pool(G5, 2)]


def test_a_plan_has_one_pool():
    assert fields(ON_PLAN, replace(ON_PLAN, name="other")) == ["pools[1].trainingPlanArn"]


def test_training_plan_details_survive_renaming_the_pool():
    known = replace(ON_PLAN, plan_status=PlanStatus.ACTIVE, starts_at=at(0), ends_at=at(900))
    renamed = replace(ON_PLAN, name="other", cap=1)
    assert with_windows([renamed, SPOT], {"spring": known}) == [replace(known, name="other", cap=1), SPOT]
    assert with_windows([renamed], {"spring": ON_PLAN}) == [renamed]
    assert with_windows([replace(SPOT, kind=Kind.ON_DEMAND)], {"x": known}) == [replace(SPOT, kind=Kind.ON_DEMAND)]
