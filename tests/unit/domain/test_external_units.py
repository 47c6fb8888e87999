"""Units of external training jobs: the pools in which they count, and those in which they do not."""

from __future__ import annotations

from dataclasses import replace

from builders import G5, P5, pools_of
from trainmaster.domain.capacity.external import ExternalJob, Origin, external_units
from trainmaster.domain.capacity.units import Kind, Pool, pool_for, source

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
ON_DEMAND = Pool(P5, 4, count_external=True)
SPOT = Pool("p5-spot", 8, count_external=True, type_=P5, kind=Kind.SPOT)
ON_PLAN = Pool("spring", 4, count_external=True, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn=PLAN)
THEIRS = {
    "a": ExternalJob({source(P5): 1}),
    "b": ExternalJob({source(P5, spot=True): 2}),
    "c": ExternalJob({source(P5, plan_arn=PLAN): 4}),
    "d": ExternalJob({source(P5): 8, source(G5): 16}),
}


def counted(*pools):
    return external_units(THEIRS, pools_of(*pools))


def test_each_counts_in_the_pool_of_its_kind():
    assert counted(ON_DEMAND, SPOT, ON_PLAN) == {P5: 9, "p5-spot": 2, "spring": 4}


def test_spot_without_a_spot_pool_counts_on_demand_and_a_plan_without_a_pool_nowhere():
    assert counted(ON_DEMAND) == {P5: 11}


def test_pools_that_do_not_count_external_jobs_do_not():
    assert counted(replace(ON_DEMAND, count_external=False), SPOT) == {"p5-spot": 2}


def test_a_pool_of_another_name_than_its_type_counts_them_too():
    assert counted(Pool("team", 4, count_external=True, type_=G5)) == {"team": 16}


def test_of_several_the_one_named_after_its_type_then_the_first_by_name():
    team, first = Pool("team", 1, type_=P5), Pool("a-team", 1, type_=P5)
    assert pool_for(pools_of(team, ON_DEMAND, first), Kind.ON_DEMAND, P5) == P5
    assert pool_for(pools_of(team, first), Kind.ON_DEMAND, P5) == "a-team"
    assert pool_for(pools_of(team, first), Kind.SPOT, P5) is None


def test_orphans_count_in_pools_that_do_not_count_external_jobs():
    pools = pools_of(replace(ON_DEMAND, count_external=False), replace(SPOT, count_external=False))
    orphans = {
        "a": ExternalJob({source(P5): 1}, Origin.ORPHAN),
        "b": ExternalJob({source(P5, spot=True): 2}, Origin.STOPPED_ORPHAN),
        "c": ExternalJob({source(P5): 4}, Origin.UNKNOWN),
    }
    assert external_units(orphans, pools) == {P5: 1, "p5-spot": 2}
