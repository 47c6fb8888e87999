"""Jobs that ask for resources: what the door says of them, and how they run, over the simulator on a virtual clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import ADA, G5, NOW, P5, a_request, pools_of
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.errors import InvalidRequest, NeverFits, Refused, RequestNotAllowed
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Expansion, Policy
from trainmaster.domain.reasons.capacity import Infeasible
from trainmaster.domain.reasons.rules import Draining
from trainmaster.local.memory.permissions import Grant, MemoryPermissions
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.capacity.pools import set_pools
from trainmaster.service.explain.explain import explain_in
from world import World
from world import a_request as world_request

P4, CPU, TRN = "ml.p4d.24xlarge", "ml.c5.xlarge", "ml.trn1.32xlarge"
EIGHT = "accelerators=8,vcpus=96,memory_gib=768,accelerator=nvidia"
HUGE = "accelerators=8,accelerator_memory_gib=640"
POOLS = pools_of(Pool(P4, 4), Pool(G5, 8), Pool("big", 2, type_=P5), Pool("p5-spot", 8, type_=P5, kind=Kind.SPOT))
DOOR = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))
NO_TYPE = {"VolumeSizeInGB": 30}


def asking(resources=EIGHT, instances=None, *, config=None, pools=None, **members):
    options = {"resources": resources}
    if instances is not None:
        options["instances"] = str(instances)
    if pools is not None:
        options["pools"] = pools
    return a_request(options=options, ResourceConfig=NO_TYPE | (config or {}), **members)


def admit(request, pools=POOLS, expansion=None, catalogue=None):
    policy = Policy(expansion=expansion or Expansion())
    return DOOR.admit(request, ADA, pools, NOW, policy, catalogue=catalogue or Catalogue())


def demand(request, **others):
    return admit(request, **others).job.demand


def refusal(request, **others):
    with pytest.raises(Refused) as refused:
        admit(request, **others)
    return refused.value


class TestTheDemand:
    def test_is_the_pools_on_demand_whose_type_covers_it(self):
        asked = demand(asking(instances=2))
        assert asked.alternatives == ({"big": 2}, {P4: 2})
        assert (asked.queue_selects_pool, asked.instances, asked.listed) == (True, 2, 0)
        assert asked.resources == Resources(accelerators=8, vcpus=96, memory_gib=768, accelerator="nvidia")

    def test_is_for_one_instance_where_nothing_says_how_many(self):
        assert demand(asking()).instances == 1
        assert demand(asking(config={"InstanceCount": 3})).instances == 3
        preferred = [{"InstanceType": P4, "InstanceCount": 2}, {"InstanceType": P5, "InstanceCount": 2}]
        assert demand(asking(config={"InstancePreferences": preferred})).instances == 2

    @pytest.mark.parametrize(
        ("more", "alternatives"),
        [
            ({"config": {"InstanceType": P4}}, [P4, "big"]),
            ({"config": {"InstanceType": P4, "InstanceCount": 2}, "instances": 2}, [P4, "big"]),
            ({"config": {"InstancePreferences": [{"InstanceType": P4}, {"InstanceType": P5}]}}, [P4, P5, "big"]),
            ({"pools": f"p5-spot+{P4}"}, ["p5-spot", P4, "big"]),
            ({"pools": "p5-spot", "config": {"InstanceType": G5}}, ["p5-spot", "big", P4]),
        ],
    )
    def test_begins_with_what_the_job_lists_itself(self, more, alternatives):
        pools = {name: pool for name, pool in POOLS.items() if name != "big"} if "Preferences" in str(more) else POOLS
        pools = pools | {P5: Pool(P5, 2), "big": POOLS["big"]} if P5 in alternatives else pools
        asked = demand(asking(**more), pools=pools)
        assert [next(iter(units)) for units in asked.alternatives] == alternatives
        assert asked.listed == (2 if "Preferences" in str(more) or "+" in str(more.get("pools")) else 1)

    def test_of_a_type_that_the_catalogue_does_not_know_is_what_its_pools_settings_say(self):
        odd = Pool("odd", 2, type_="ml.zz9.large", vcpus=128, memory_gib=1024, accelerators_per_unit=8)
        odd_door = AdmissionPolicy(shape_problems=lambda _: (), rules=CallerRules(allowed_roles=("*",)))
        job = odd_door.admit(asking("accelerators=8,vcpus=96,memory_gib=768"), ADA, pools_of(odd), NOW).job
        assert job.demand.alternatives == ({"odd": 1},)

    def test_keeps_its_lane_while_pools_come_and_go(self):
        assert demand(asking()).lane == demand(asking(), pools=pools_of(Pool(P5, 1))).lane
        assert demand(asking()).lane != demand(asking(HUGE)).lane

    def test_of_any_size_that_a_warm_pool_would_fit_has_its_fit(self):
        warm = {"KeepAlivePeriodInSeconds": 600}
        typed = a_request(ResourceConfig=NO_TYPE | warm | {"InstanceType": P4, "InstanceCount": 1})
        assert admit(asking(config=warm)).job.warm_pool_key == admit(typed).job.warm_pool_key != ""


class TestRefusing:
    @pytest.mark.parametrize(
        ("more", "field", "said"),
        [
            ({"config": {"InstanceType": G5}}, "ResourceConfig.InstanceType", f"{G5} does not meet"),
            ({"config": {"InstanceType": CPU}}, "ResourceConfig.InstanceType", "accelerators=0, vcpus=4"),
            (
                {"config": {"InstancePreferences": [{"InstanceType": P4}, {"InstanceType": G5}]}},
                "ResourceConfig.InstancePreferences[1].InstanceType",
                "does not meet",
            ),
            ({"pools": f"big+{G5}"}, "Tags[1].Value", "does not meet"),
            ({"config": {"InstanceType": P4, "InstanceCount": 2}, "instances": 3}, "ResourceConfig.InstanceCount", "2"),
            (
                {"config": {"InstancePreferences": [{"InstanceType": P4, "InstanceCount": 1}]}, "instances": 3},
                "ResourceConfig.InstancePreferences[0].InstanceCount",
                "'trainmaster:instances' is 3",
            ),
            (
                {
                    "config": {
                        "InstancePreferences": [
                            {"InstanceType": P4, "InstanceCount": 1},
                            {"InstanceType": P5, "InstanceCount": 2},
                        ]
                    }
                },
                "ResourceConfig.InstancePreferences[1].InstanceCount",
                "the first count is 1",
            ),
            (
                {"config": {"InstanceGroups": [{"InstanceType": P4, "InstanceCount": 1, "InstanceGroupName": "a"}]}},
                "ResourceConfig.InstanceGroups",
                "cannot be combined",
            ),
            (
                {
                    "EnableManagedSpotTraining": True,
                    "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90},
                },
                "EnableManagedSpotTraining",
                "runs on demand",
            ),
            (
                {"config": {"TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"}},
                "ResourceConfig.TrainingPlanArn",
                "names none",
            ),
        ],
    )
    def test_contradictions_of_the_resources_are_rejected(self, more, field, said):
        refused = refusal(asking(**more))
        assert (type(refused), refused.field, said in refused.message) == (InvalidRequest, field, True), refused.message
        assert refused.hint

    def test_instances_without_resources(self):
        assert refusal(a_request(options={"instances": "2"})).field == "Tags[0].Value"

    @pytest.mark.parametrize(
        ("resources", "said"),
        [
            ("accelerators=64", "the maximum accelerators is 16 (ml."),
            ("vcpus=9000,memory_gib=8", "the maximum vcpus is"),
            ("accelerators=1,accelerator=graphcore", "known manufacturers of accelerators"),
            ("accelerators=16,accelerator=nvidia,memory_gib=8000", "the maximum memory_gib is"),
        ],
    )
    def test_resources_beyond_all_types_are_rejected_with_the_maxima(self, resources, said):
        refused = refusal(asking(resources))
        assert (type(refused), refused.field) == (NeverFits, "Tags[0].Value")
        assert said in str(refused.hint)

    def test_not_where_a_pools_own_settings_say_that_its_type_has_it(self):
        pool = Pool("odd", 1, type_=P5, accelerators_per_unit=64)
        assert demand(asking("accelerators=64"), pools=pools_of(pool)).alternatives == ({"odd": 1},)

    def test_values_from_ec2_take_precedence_over_the_shipped_table(self):
        told = Catalogue(learned={P5: InstanceType(name=P5, accelerators=64)})
        assert demand(asking("accelerators=64"), catalogue=told).alternatives == ({"big": 1},)


TYPES = st.sampled_from([P4, P5, G5, CPU])
COUNTS = st.none() | st.integers(-1, 4) | st.booleans() | st.just("2")
CONFIGS = st.fixed_dictionaries(
    {"VolumeSizeInGB": st.just(30)},
    optional={
        "InstanceType": st.none() | TYPES,
        "InstanceCount": COUNTS,
        "InstancePreferences": st.lists(
            st.fixed_dictionaries({}, optional={"InstanceType": TYPES, "InstanceCount": COUNTS}), max_size=3
        ),
        "TrainingPlanArn": st.just("arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"),
    },
)


@given(
    CONFIGS,
    st.sampled_from([EIGHT, HUGE, "vcpus=4", "vcpus=many", ""]),
    st.none() | st.integers(0, 4),
    st.none() | st.sampled_from([P4, f"big+{G5}", "p5-spot", "nowhere"]),
)
def test_whatever_a_request_says_it_is_refused_or_all_its_pools_cover_what_it_asks_for(config, asked, instances, pools):
    request = asking(asked, instances, config=config, pools=pools)
    found, field = None, None
    try:
        found = (
            AdmissionPolicy(shape_problems=lambda _: (), rules=CallerRules(allowed_roles=("*",)))
            .admit(request, ADA, POOLS, NOW)
            .job.demand
        )
    except Refused as refused:
        field = refused.field
    if found is None:
        assert field
        return
    assert found.resources is not None
    assert found.instances == (instances or found.instances) >= 1
    assert all(list(units.values()) == [found.instances] for units in found.alternatives)
    kinds = (POOLS.get(name, Pool(name, 0)) for name in found.pools)
    assert all(found.resources.covered_by(Catalogue().of_pool(pool)) for pool in kinds)


class TestTypesThatTheServiceModelIsTooOldToKnow:
    """A pool may have them: the administrator who set it says that they exist."""

    LAB = "ml.x9.large"
    NEW = Pool("lab", 2, type_=LAB, vcpus=256, memory_gib=4096, accelerators_per_unit=16, accelerator="acme")
    THERE = pools_of(Pool(P4, 4), NEW, Pool(LAB, 1, type_=LAB))

    def test_are_candidates(self):
        asked = demand(asking("accelerators=16,accelerator=acme"), pools=self.THERE)
        assert asked.alternatives == ({"lab": 1},)

    def test_do_not_keep_out_jobs_that_could_run_elsewhere(self):
        assert {P4: 1} in demand(asking("accelerators=8"), pools=self.THERE).alternatives

    def test_may_be_named_in_each_way_to_ask_for_instances(self):
        one = {"InstanceType": self.LAB, "InstanceCount": 1}
        for config in (one, {"InstancePreferences": [one]}, {"InstanceGroups": [one | {"InstanceGroupName": "a"}]}):
            request = a_request(ResourceConfig=NO_TYPE | config)
            assert demand(request, pools=self.THERE).alternatives == ({self.LAB: 1},)

    def test_are_refused_where_no_pool_has_them(self):
        found = refusal(a_request(instance_type=self.LAB), pools=pools_of(Pool(P4, 4)))
        assert (type(found), found.field) == (InvalidRequest, "ResourceConfig.InstanceType")


class TestInfeasible:
    def test_is_accepted_with_what_would_help(self):
        admission = admit(asking(instances=9))
        (warning,) = [each for each in admission.warnings if "Infeasible" in each]
        assert admission.job.demand.alternatives == ({"big": 9}, {P4: 9})
        assert f"can hold 9 x ({admission.job.demand.resources})" in warning
        assert f"a cap of 9 for {P4}, which has 4" in warning
        assert ", or a pool of 9 x ml." in warning

    def test_is_accepted_where_no_pool_has_such_instances(self):
        admission = admit(asking(HUGE), pools=pools_of(Pool(P4, 4)))
        assert admission.job.demand.alternatives == ()
        assert "Possible remedies: a pool of 1 x ml." in admission.warnings[0]

    def test_is_told_where_the_manager_makes_a_pool_by_itself(self):
        pools = pools_of(Pool(P4, 4))
        enabled = Expansion(enabled=True, types=("ml.p5.*",), max_per_type=2, max_instances=2)
        assert "The manager creates one" in admit(asking(HUGE), pools, enabled).warnings[0]
        for rules, count in ((Expansion(enabled=True, types=("ml.g5.*",)), 1), (enabled, 3)):
            assert "Possible remedies: " in admit(asking(HUGE, count), pools, rules).warnings[0]

    def test_nothing_is_said_where_a_pool_could_hold_it(self):
        assert not any("nfeasible" in each for each in admit(asking(instances=4)).warnings)


class TestTypedJobsUnderExpansion:
    ENABLED = Expansion(enabled=True, types=("ml.p5.*",), max_per_type=2, max_instances=4)

    def typed(self, count=1, kind=P5):
        return a_request(instance_type=kind, count=count)

    def test_are_accepted_without_a_pool_where_the_rules_allow_one(self):
        admission = admit(self.typed(2), pools_of(Pool(P4, 4)), self.ENABLED)
        assert admission.job.demand.alternatives == ({P5: 2},)
        assert f"No pool can hold 2 x {P5} now" in admission.warnings[0]

    @pytest.mark.parametrize(("count", "kind"), [(3, P5), (1, G5)])
    def test_are_refused_beyond_the_rules(self, count, kind):
        assert type(refusal(self.typed(count, kind), pools=pools_of(Pool(P4, 4)), expansion=self.ENABLED)) is NeverFits

    def test_are_refused_where_people_have_set_that_pool_or_expansion_is_off(self):
        assert type(refusal(self.typed(2), pools=pools_of(Pool(P5, 1)), expansion=self.ENABLED)) is NeverFits
        assert type(refusal(self.typed(2), pools=pools_of(Pool(P4, 4)))) is NeverFits


# ---------------------------------------------------------------- over the simulator

CALM = {"rates": {"DescribeTrainingJob": None, "CreateTrainingJob": None}}


def a_world(*pools, **settings):
    world = World(**CALM, **settings)
    set_pools(world.api_context, ADA, pools)
    return world


def submit(world, name, resources=EIGHT, instances=1, *, config=None, **request):
    made = world_request(name, **request)
    made["ResourceConfig"] = NO_TYPE | (config or {})
    tags = {"trainmaster:resources": resources, "trainmaster:instances": str(instances)}
    made["Tags"] += [{"Key": key, "Value": value} for key, value in tags.items()]
    return world.submit_request(made)


def described(world, name):
    return world.simulator.call("DescribeTrainingJob", TrainingJobName=name)


def reason(world, name):
    snapshot = world.api_context.store.read_snapshot()
    return explain_in(snapshot, world.now(), [world.job(name)])[name].reason


def test_a_job_runs_on_the_pool_that_covers_it_and_sagemaker_gets_its_type_and_count():
    world = a_world(Pool(G5, 4), Pool("wide", 4, type_=P4))
    submit(world, "job1", instances=2, training_seconds=60)
    world.run_until_ended("job1")
    job, config = world.job("job1"), described(world, "job1")["ResourceConfig"]
    assert (config["InstanceType"], config["InstanceCount"]) == (P4, 2)
    assert (job.state, job.attempts[0].units, job.attempts[0].instance_type) == (JobState.COMPLETED, {"wide": 2}, P4)
    assert f"takes 2 x wide ({P4})" in [line.reason for line in job.history]


def test_the_tag_reaches_sagemaker_without_commas():
    world = a_world(Pool(P4, 1))
    submit(world, "job1", training_seconds=60)
    world.run(60)
    arn = described(world, "job1")["TrainingJobArn"]
    tags = {tag["Key"]: tag["Value"] for tag in world.simulator.call("ListTags", ResourceArn=arn)["Tags"]}
    assert tags["trainmaster:resources"] == EIGHT.replace(",", "+")


def test_of_two_unequal_pools_small_jobs_take_the_small_one_and_large_jobs_the_large_one():
    world = a_world(Pool(P4, 1), Pool("small", 2, type_="ml.g5.12xlarge"))
    for name, asked in (("little1", "accelerators=4"), ("little2", "accelerators=2"), ("large", "accelerators=8")):
        submit(world, name, asked, training_seconds=5000)
    world.run(120)
    placed = {name: dict(world.job(name).units) for name in ("little1", "little2", "large")}
    assert placed == {"little1": {"small": 1}, "little2": {"small": 1}, "large": {P4: 1}}


def test_a_job_takes_what_it_lists_first_and_spills_over_where_that_is_full():
    world = a_world(Pool(P4, 1), Pool(P5, 1))
    for name in ("job1", "job2"):
        submit(world, name, config={"InstancePreferences": [{"InstanceType": P5}]}, training_seconds=5000)
    world.run(120)
    assert [list(world.job(name).units) for name in ("job1", "job2")] == [[P5], [P4]]
    config = described(world, "job2")["ResourceConfig"]
    assert (config["InstanceType"], config["InstanceCount"]) == (P4, 1)
    assert not config.get("InstancePreferences")


def test_an_infeasible_job_blocks_no_other_and_runs_after_a_pool_is_added():
    world = a_world(Pool(P4, 1))
    submit(world, "huge", HUGE, priority=100, training_seconds=60)
    submit(world, "plain", training_seconds=60)
    world.run_until_ended("plain")
    why = reason(world, "huge")
    assert (type(why), why.needed, why.largest, world.job("huge").state) == (Infeasible, 1, 0, JobState.PENDING)
    set_pools(world.api_context, ADA, [Pool(P4, 1), Pool("new", 1, type_=P5)])
    world.run_until_ended("huge")
    assert (world.job("huge").state, described(world, "huge")["ResourceConfig"]["InstanceType"]) == (
        JobState.COMPLETED,
        P5,
    )


def test_a_job_whose_pool_goes_before_it_starts_waits_for_another():
    world = a_world(Pool(P4, 1), Pool(G5, 1))
    submit(world, "job1", training_seconds=600)
    world.simulator.faults.inject("CreateTrainingJob", "ServiceUnavailable", times=3)
    world.settle()
    assert world.job("job1").state is JobState.STARTING
    set_pools(world.api_context, ADA, [Pool("other", 1, type_=P5)])
    world.run_until_ended("job1")
    assert [dict(attempt.units) for attempt in world.job("job1").attempts] == [{"other": 1}]


def test_a_job_whose_only_pool_is_drained_says_so():
    world = a_world(Pool(P4, 1, draining=True))
    submit(world, "job1")
    world.run(60)
    assert reason(world, "job1") == Draining((P4,))


def test_waiting_jobs_have_a_position_and_an_estimate_for_current_pools():
    world = a_world(Pool(P4, 1))
    submit(world, "first", training_seconds=600)
    world.settle()
    submit(world, "second", training_seconds=600)
    submit(world, "huge", HUGE)
    set_pools(world.api_context, ADA, [Pool("renamed", 1, type_=P4), Pool(P4, 1)])
    snapshot = world.api_context.store.read_snapshot()
    told = explain_in(snapshot, world.now(), [world.job("second"), world.job("huge")])
    assert told["second"].starts
    assert (told["huge"].position, told["huge"].estimated_start) == (1, None)


@pytest.mark.parametrize("order", ["fifo", "backfill", "gittins", "fair"])
def test_no_order_trips_over_a_job_that_no_pool_could_hold(order):
    world = a_world(Pool(P4, 1))
    world.api_context.store.set_settings(policy=Policy(order=order))
    for name, asked in (("huge", HUGE), ("one", EIGHT), ("two", EIGHT), ("many", EIGHT)):
        submit(world, name, asked, 5 if name == "many" else 1, training_seconds=60)
    job = admit(asking(HUGE)).job
    snapshot = world.api_context.store.read_snapshot()
    assert explain_in(snapshot, world.now(), [job])[job.name].reason is not None
    world.run_until_ended("one", "two")
    assert {type(reason(world, name)) for name in ("huge", "many")} == {Infeasible}


def test_iam_is_asked_about_each_type_that_the_queue_may_choose():
    permissions = MemoryPermissions([Grant(context={"sagemaker:InstanceTypes": [P5]}), Grant(action="iam:PassRole")])
    prefix = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"
    rules = CallerRules(allowed_roles=("*",), permissions=permissions, training_jobs=prefix)
    door = AdmissionPolicy(shape_problems=problems, rules=rules)
    pools = pools_of(Pool(P5, 2), Pool(G5, 2))
    request = asking(resources="accelerators=1", instances=1)
    with pytest.raises(RequestNotAllowed, match=f"sagemaker:InstanceTypes={G5}"):
        door.admit(request, ADA, pools, NOW)
    door.admit(asking(resources="accelerators=1", instances=1, pools=P5), ADA, pools_of(Pool(P5, 2)), NOW)
