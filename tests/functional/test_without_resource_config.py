"""Jobs that ask for resources and have no `ResourceConfig`: all that it would say, the queue says."""

from __future__ import annotations

import pytest

from api_world import ApiWorld
from builders import ADA, G5, NOW, P5, a_request, pools_of
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import InvalidRequest, UnknownOption
from trainmaster.domain.jobs.job import JobState
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.capacity.pools import put_pool
from world import BRISK, World
from world import a_request as world_request

DOOR = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))
EIGHT = {"resources": "accelerators=8"}
SMALL, LARGE = pools_of(Pool(G5, 4)), pools_of(Pool(G5, 4), Pool(P5, 4))
ELASTIC = {**EIGHT, "min-instances": "1", "max-instances": "2"}


def bare(options=None, **members):
    """A request without `ResourceConfig`."""
    request = a_request(options=options or EIGHT, **members)
    del request["ResourceConfig"]
    return request


@pytest.mark.parametrize("pools", [SMALL, LARGE])
@pytest.mark.parametrize("options", [EIGHT, {**EIGHT, "instances": "2"}, ELASTIC])
def test_are_taken_whether_or_not_a_pool_covers_them(options, pools):
    demand = DOOR.admit(bare(options), ADA, pools, NOW).job.demand
    assert demand.instances == int(options.get("instances", "1"))
    assert set(demand.pools) == {P5} & set(pools)


def test_may_name_their_pools():
    assert DOOR.admit(bare({**EIGHT, "pools": P5}), ADA, LARGE, NOW).job.demand.alternatives == ({P5: 1},)


def test_are_refused_with_the_field_where_they_ask_for_nothing():
    with pytest.raises(InvalidRequest) as refused:
        DOOR.admit(bare({"share": "default"}), ADA, LARGE, NOW)
    assert refused.value.field == "ResourceConfig.InstanceType"


@pytest.mark.parametrize("key", ["trainmaster:resource", "Trainmaster:Resources", "trainmaster:resources "])
def test_a_misspelt_tag_is_told_as_that_and_not_as_a_missing_type(key):
    request = bare()
    request["Tags"][0]["Key"] = key
    with pytest.raises(UnknownOption) as refused:
        DOOR.admit(request, ADA, LARGE, NOW)
    assert (refused.value.field, "Did you mean 'trainmaster:resources'?" in str(refused.value.hint)) == (
        "Tags[0].Key",
        True,
    )


def test_rules_apply_to_the_instances_that_expansion_would_provide():
    seen = []
    admission = AdmissionPolicy(
        shape_problems=lambda request: seen.append(request) or [], rules=CallerRules(allowed_roles=("*",))
    )
    admission.admit(bare(), ADA, SMALL, NOW)
    assert seen[-1]["ResourceConfig"]["InstanceCount"] == 1
    assert seen[-1]["ResourceConfig"]["InstanceType"].startswith("ml.")
    assert "ResourceConfig" not in seen[0]


@pytest.mark.parametrize("path", ["/add-job", "/plan"])
def test_the_api_takes_them(path):
    world = ApiWorld(pools=LARGE)
    assert world.post(path, bare()).status in (200, 202)


@pytest.mark.parametrize("options", [EIGHT, ELASTIC])
def test_run_after_a_pool_is_added_and_block_no_other(options):
    world = World(pools=f"{G5}=4", profile=BRISK)
    request = world_request("early", training_seconds=30)
    del request["ResourceConfig"]
    request["Tags"] += [{"Key": f"trainmaster:{name}", "Value": text} for name, text in options.items()]
    assert world.submit_request(request).state is JobState.PENDING
    put_pool(world.api_context, ADA, Pool(P5, 1))
    world.submit("later", kind=G5, training_seconds=30)
    world.run_until_ended("early", "later")
    assert {world.job(name).state for name in ("early", "later")} == {JobState.COMPLETED}
    config = world.simulator.call("DescribeTrainingJob", TrainingJobName="early")["ResourceConfig"]
    assert (config["InstanceType"], config["InstanceCount"]) == (P5, 1)
