"""Sessions whose jobs ask for resources: what they submit in the place of the instance type that an SDK insists on."""

from typing import Any

import boto3
import pytest
from client_world import World, request_for

from trainmaster import ApiClient, route_to_queue
from trainmaster.client.asking import asking

ASKED = "accelerators=8,accelerator=nvidia"
TAG = {"Key": "trainmaster:resources", "Value": ASKED}


def test_the_type_goes_and_the_number_of_instances_stays() -> None:
    request = {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2}, "Tags": [{"Key": "a"}]}
    assert asking(request, ASKED) == {"ResourceConfig": {"InstanceCount": 2}, "Tags": [{"Key": "a"}, TAG]}
    assert request["ResourceConfig"] == {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2}


@pytest.mark.parametrize("resources", [None, ""])
def test_without_resources_nothing_changes(resources: str | None) -> None:
    request = {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge"}}
    assert asking(request, resources) is request


@pytest.mark.parametrize(
    "request_",
    [
        {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge"}, "Tags": [TAG | {"Value": "vcpus=4"}]},
        {"ResourceConfig": {"InstanceGroups": [{"InstanceType": "ml.p5.48xlarge"}]}},
        {"ResourceConfig": {"InstancePreferences": [{"InstanceType": "ml.p5.48xlarge"}]}},
    ],
    ids=["its own tag", "groups", "preferences"],
)
def test_what_a_job_says_itself_goes_before(request_: dict[str, Any]) -> None:
    assert asking(request_, ASKED) is request_


def test_a_routed_sessions_jobs_ask_for_resources_until_it_is_routed_otherwise(
    session: boto3.session.Session, api: ApiClient, world: World, sagemaker_url: str
) -> None:
    def tags(name: str) -> list[Any]:
        sagemaker.create_training_job(**request_for(name))
        return list(world.jobs[name]["jobDetails"].get("Tags", []))

    route_to_queue(session, api, resources=ASKED)
    sagemaker = session.client("sagemaker", endpoint_url=sagemaker_url)
    try:
        assert TAG in tags("job1")
        assert "InstanceType" not in world.jobs["job1"]["jobDetails"]["ResourceConfig"]
        route_to_queue(session, api)
        assert TAG in tags("job2")
        route_to_queue(session, api, resources="")
        assert TAG not in tags("job3")
    finally:
        sagemaker.close()
