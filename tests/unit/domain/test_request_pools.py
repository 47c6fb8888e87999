"""Pools of a request, and the request that goes to SageMaker for the chosen pool."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from builders import G5, NOW, P5, a_request
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.access.caller import UNKNOWN
from trainmaster.domain.capacity.units import Demand, Kind, PlanStatus, Pool
from trainmaster.domain.errors import InvalidRequest, NeverFits
from trainmaster.domain.requests.pools import demand_in, for_pool, pool_warnings
from trainmaster.domain.requests.training_job import meaning_problems
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
OTHER = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/autumn"
P5E = "ml.p5e.48xlarge"
POOLS = {
    pool.name: pool
    for pool in (
        Pool(P5, 4),
        Pool("p5-spot", 8, type_=P5, kind=Kind.SPOT),
        Pool("spring", 2, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn=PLAN),
        Pool("autumn", 2, type_=P5E, kind=Kind.TRAINING_PLAN, plan_arn=OTHER),
        Pool(G5, 8),
        Pool("team-a", 2, type_=P5E),
        Pool("team-b", 2, type_=P5E),
    )
}


def asks(*named, count=2, kind=P5, config=None, **members):
    request = a_request(instance_type=kind, count=count, **members)
    request["ResourceConfig"] |= config or {}
    return demand_in(request, named, POOLS)


class TestWhatTheRequestSays:
    def test_plain_instances_come_from_the_pool_of_their_type(self):
        assert asks() == Demand(({P5: 2},))
        assert asks(kind=G5) == Demand(({G5: 2},))

    def test_several_pools_of_the_type_and_none_named_after_it_the_first_by_name(self):
        assert asks(kind=P5E) == Demand(({"team-a": 2},))

    def test_a_type_without_a_pool_stays_itself(self):
        assert asks(kind="ml.m5.large") == Demand(({"ml.m5.large": 2},))

    def test_a_plan_leads_to_its_pool(self):
        assert asks(config={"TrainingPlanArn": PLAN}) == Demand(({"spring": 2},))

    def test_a_plan_without_a_pool_never_fits(self):
        with pytest.raises(NeverFits, match=r"winter' has no pool") as refused:
            asks(config={"TrainingPlanArn": PLAN.replace("spring", "winter")})
        assert refused.value.field == "ResourceConfig.TrainingPlanArn"

    def test_nor_does_one_of_another_type(self):
        with pytest.raises(NeverFits, match=r"autumn' has ml.p5e.48xlarge, not ml.p5.48xlarge"):
            asks(config={"TrainingPlanArn": OTHER})

    def test_spot_goes_to_the_spot_pool_of_the_type(self):
        assert asks(EnableManagedSpotTraining=True) == Demand(({"p5-spot": 2},))

    def test_without_one_it_counts_on_demand_and_says_so(self):
        request = a_request(instance_type=G5, EnableManagedSpotTraining=True)
        demand = demand_in(request, (), POOLS)
        assert demand == Demand(({G5: 1},))
        assert "There is no spot pool for ml.g5.2xlarge" in pool_warnings(request, demand, POOLS)[0]

    def test_groups_add_up_by_pool(self):
        groups = [
            {"InstanceType": P5, "InstanceCount": 1, "InstanceGroupName": "a"},
            {"InstanceType": P5, "InstanceCount": 2, "InstanceGroupName": "b"},
            {"InstanceType": P5E, "InstanceCount": 1, "InstanceGroupName": "c"},
        ]
        request = a_request(ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 1})
        assert demand_in(request, (), POOLS) == Demand(({P5: 3, "team-a": 1},))

    def test_preferences_stay_sagemakers_choice_each_in_its_pool(self):
        preferences = [
            {"InstanceType": P5, "TrainingPlanArns": [PLAN]},
            {"InstanceType": P5E, "TrainingPlanArns": [PLAN]},
            {"InstanceType": G5},
        ]
        config = {"InstancePreferences": preferences, "InstanceCount": 2, "VolumeSizeInGB": 1}
        assert demand_in(a_request(ResourceConfig=config), (), POOLS) == Demand(({"spring": 2}, {"team-a": 2}, {G5: 2}))


class TestWhereItsOptionSays:
    def test_the_queue_chooses_in_that_order(self):
        assert asks("spring", P5, "p5-spot") == Demand(
            ({"spring": 2}, {P5: 2}, {"p5-spot": 2}), queue_selects_pool=True
        )

    def test_even_where_there_is_one(self):
        assert asks("p5-spot").queue_selects_pool

    def test_a_pool_that_is_not_there_is_refused_with_those_that_are(self):
        request = a_request(options={"pools": "spring winter"})
        with pytest.raises(NeverFits, match="There is no pool 'winter'") as refused:
            demand_in(request, ("spring", "winter"), POOLS)
        assert refused.value.field == "Tags[0].Value"
        assert "p5-spot" in refused.value.hint

    @pytest.mark.parametrize("status", [PlanStatus.EXPIRED, PlanStatus.FAILED])
    def test_plans_that_are_over_are_no_choice_unless_there_is_another(self, status):
        pools = POOLS | {"spring": replace(POOLS["spring"], plan_status=status)}
        with pytest.raises(NeverFits, match="plan of spring has ended or failed") as refused:
            demand_in(a_request(options={"pools": "spring"}), ("spring",), pools)
        assert refused.value.field == "Tags[0].Value"
        assert demand_in(a_request(options={"pools": "spring"}), ("spring", P5), pools).queue_selects_pool
        request = a_request()
        request["ResourceConfig"]["TrainingPlanArn"] = PLAN
        with pytest.raises(NeverFits) as refused:
            demand_in(request, (), pools)
        assert refused.value.field == "ResourceConfig.TrainingPlanArn"

    @pytest.mark.parametrize("member", ["InstanceGroups", "InstancePreferences"])
    def test_not_together_with_sagemakers_own_ways_to_name_several(self, member):
        config = {member: [{"InstanceType": P5, "InstanceCount": 1, "InstanceGroupName": "a"}]}
        with pytest.raises(InvalidRequest) as refused:
            demand_in(a_request(ResourceConfig=config), (P5,), POOLS)
        assert refused.value.field == f"ResourceConfig.{member}"


class TestTheRequestForAPool:
    """Each is what SageMaker's service model and the queue's own rules take."""

    CONFIG: ClassVar = {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 1}
    REQUESTS = (
        a_request(),
        a_request(
            EnableManagedSpotTraining=True,
            StoppingCondition={"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90},
        ),
        a_request(ResourceConfig=CONFIG | {"KeepAlivePeriodInSeconds": 60}),
        a_request(ResourceConfig=CONFIG | {"TrainingPlanArn": PLAN}),
    )

    @pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
    @pytest.mark.parametrize("request_", REQUESTS, ids=["plain", "spot", "warm", "plan"])
    def test_is_one_that_sagemaker_takes(self, request_, pool):
        before = repr(request_)
        made = for_pool(request_, pool, 1)
        assert repr(request_) == before
        assert [*problems(made), *meaning_problems(made)] == []
        assert made["ResourceConfig"]["InstanceType"] == pool.instance_type
        assert made["ResourceConfig"].get("TrainingPlanArn") == pool.plan_arn
        assert made.get("EnableManagedSpotTraining", False) is (pool.kind is Kind.SPOT)
        assert ("MaxWaitTimeInSeconds" in made["StoppingCondition"]) is (pool.kind is Kind.SPOT)
        changed = {"ResourceConfig", "StoppingCondition", "EnableManagedSpotTraining"}
        assert {k: v for k, v in made.items() if k not in changed} == {
            k: v for k, v in request_.items() if k not in changed
        }

    def test_without_a_change_nothing_changes(self):
        assert for_pool(self.REQUESTS[0], POOLS[P5], 1) == self.REQUESTS[0]
        assert for_pool(self.REQUESTS[1], POOLS["p5-spot"], 1) == self.REQUESTS[1]
        assert for_pool(self.REQUESTS[3], POOLS["spring"], 1) == self.REQUESTS[3]

    @pytest.mark.parametrize(
        ("limits", "wait"),
        [
            ({"MaxRuntimeInSeconds": 60}, 60 + 3600),
            ({"MaxRuntimeInSeconds": 7200}, 14_400),
            ({"MaxRuntimeInSeconds": 28 * 86_400}, 29 * 86_400),
            ({"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 600}, 600),
            ({"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 60}, 600),
            ({}, 172_800),
            (None, 172_800),
        ],
    )
    def test_a_spot_job_may_wait_as_long_as_it_may_run(self, limits, wait):
        request = a_request(StoppingCondition=limits)
        if limits is None:
            del request["StoppingCondition"]
        assert for_pool(request, POOLS["p5-spot"], 1)["StoppingCondition"]["MaxWaitTimeInSeconds"] == wait

    def test_no_limits_are_invented_for_others(self):
        request = a_request()
        del request["StoppingCondition"]
        assert "StoppingCondition" not in for_pool(request, POOLS[P5], 1)


class TestWarnings:
    def warned(self, *named, **members):
        request = a_request(**members)
        return pool_warnings(request, demand_in(request, named, POOLS), POOLS)

    def test_nothing_to_say_of_plain_jobs(self):
        assert self.warned() == self.warned(checkpoint=False) == self.warned("spring", "p5-spot") == []

    def test_spot_and_plans_need_checkpoints_to_be_worth_it(self):
        (spot,) = self.warned("p5-spot", checkpoint=False)
        assert "spot instances and has no CheckpointConfig" in spot
        (plan,) = self.warned("spring", checkpoint=False)
        assert "only if it is expected to end half an hour before the plan does" in plan

    def test_no_warm_pool_after_spot(self):
        config = {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 1, "KeepAlivePeriodInSeconds": 60}
        (warm,) = self.warned("p5-spot", P5, ResourceConfig=config)
        assert "keeps no warm pool" in warm


class TestAtTheDoor:
    DOOR = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))

    def admit(self, request, pools=POOLS):
        return self.DOOR.admit(request, UNKNOWN, pools, NOW)

    def test_the_job_has_its_demand_and_its_fit(self):
        job = self.admit(a_request(options={"pools": "spring+p5-spot"})).job
        assert job.demand == Demand(({"spring": 1}, {"p5-spot": 1}), queue_selects_pool=True)
        assert job.warm_pool_key == self.admit(a_request()).job.warm_pool_key != ""

    def test_a_spot_job_has_none(self):
        wait = {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90}
        assert self.admit(a_request(EnableManagedSpotTraining=True, StoppingCondition=wait)).job.warm_pool_key == ""

    def test_it_fits_where_any_of_its_pools_is_large_enough(self):
        assert self.admit(a_request(count=3, options={"pools": "spring+p5-spot"})).job
        with pytest.raises(NeverFits, match="needs 3 x spring"):
            self.admit(a_request(count=3, options={"pools": "spring"}))

    def test_a_type_that_a_pool_has_is_good_though_the_service_model_lacks_it(self):
        pools = POOLS | {"odd": Pool("odd", 4, type_="ml.p99.large")}
        (units,) = self.admit(a_request(options={"pools": "odd"}), pools).job.demand.alternatives
        assert set(units) == {"odd"}
