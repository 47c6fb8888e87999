"""Sessions whose jobs ask for resources or may be resized: what they submit beside what an SDK says."""

from datetime import timedelta
from typing import Any

import boto3
import pytest
from client_world import World, request_for

from trainmaster import ApiClient, ElasticOptions, route_to_queue
from trainmaster.client.sdk.elastic import TAGS
from trainmaster.client.sdk.request_defaults import with_session_defaults
from trainmaster.domain.requests.elastic.bounds import elastic_problems, is_elastic
from trainmaster.domain.requests.options import OPTIONS, Options

ASKED = "accelerators=8,accelerator=nvidia"
TAG = {"Key": "trainmaster:resources", "Value": ASKED}


def test_the_type_goes_and_the_number_of_instances_stays() -> None:
    request = {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2}, "Tags": [{"Key": "a"}]}
    assert with_session_defaults(request, ASKED) == {
        "ResourceConfig": {"InstanceCount": 2},
        "Tags": [{"Key": "a"}, TAG],
    }
    assert request["ResourceConfig"] == {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2}


@pytest.mark.parametrize("resources", [None, ""])
def test_without_resources_nothing_changes(resources: str | None) -> None:
    request = {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge"}}
    assert with_session_defaults(request, resources) is request


@pytest.mark.parametrize(
    "request_",
    [
        {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge"}, "Tags": [TAG | {"Value": "vcpus=4"}]},
        {"ResourceConfig": {"InstanceGroups": [{"InstanceType": "ml.p5.48xlarge"}]}},
        {"ResourceConfig": {"InstancePreferences": [{"InstanceType": "ml.p5.48xlarge"}]}},
    ],
    ids=["its own tag", "groups", "preferences"],
)
def test_a_jobs_own_tags_take_precedence(request_: dict[str, Any]) -> None:
    assert with_session_defaults(request_, ASKED) is request_


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


def the_tags(request: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"].removeprefix("trainmaster:"): tag["Value"] for tag in request.get("Tags", [])}


def test_elastic_options_become_tags_that_the_queue_reads() -> None:
    every = ElasticOptions(
        min_instances=2,
        max_instances=8,
        instance_step=2,
        instance_values=[2, 4, 8],
        resize_by="members",
        resize_target="event",
        scaling_timeout=timedelta(minutes=2),
        graceful_shutdown_timeout=100,
        faulty_scale_down_timeout="30",
        scale_up_snooze="1h",
        max_restarts=3,
        eval_period="6h",
        max_total_restarts=50,
        restarts_before_full=2,
        max_full_restarts=0,
    )
    tags = the_tags(with_session_defaults({"ResourceConfig": {"InstanceType": "ml.p5.48xlarge"}}, None, every))
    assert set(tags) == {key.removeprefix("trainmaster:") for key in TAGS}
    assert all(OPTIONS[name].read(text) is not None for name, text in tags.items())
    assert (tags["instance-values"], tags["scaling-timeout"], tags["max-full-restarts"]) == ("2+4+8", "120", "0")


def is_for_elastic_jobs(option: str) -> bool:
    """Tell whether an option makes a job elastic, or has no effect on a job that is not."""
    request = {"Tags": [{"Key": f"trainmaster:{option}", "Value": "1"}]}
    return is_elastic(request) or bool([*elastic_problems(request, Options())])


def test_every_elastic_option_of_the_queue_is_one_of_the_sessions() -> None:
    of_the_queue = {option for option in OPTIONS if is_for_elastic_jobs(option)}
    assert {key.removeprefix("trainmaster:") for key in TAGS} == of_the_queue


def test_sizes_in_words_may_have_commas() -> None:
    assert ElasticOptions(instance_values="2,4").tags == {"trainmaster:instance-values": "2+4"}


@pytest.mark.parametrize("tag", ["max-instances", "resize-by", "scale-up-snooze"])
def test_a_job_that_says_any_of_it_itself_says_all_of_it(tag: str) -> None:
    request = {"ResourceConfig": {}, "Tags": [{"Key": f"trainmaster:{tag}", "Value": "1"}]}
    assert with_session_defaults(request, None, ElasticOptions(instance_values=(2, 4))) is request


def test_resources_and_sizes_go_together_and_each_goes_alone() -> None:
    request = {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2}}
    both = with_session_defaults(request, ASKED, ElasticOptions(max_instances=4))
    assert the_tags(both) == {"resources": ASKED, "max-instances": "4"}
    assert "InstanceType" not in both["ResourceConfig"]
    elastic = with_session_defaults(request, None, ElasticOptions(max_instances=4))
    assert elastic["ResourceConfig"] == request["ResourceConfig"]
    assert with_session_defaults(request, None, ElasticOptions()) is request


def test_a_routed_sessions_jobs_are_elastic_until_it_is_routed_otherwise(
    session: boto3.session.Session, api: ApiClient, world: World, sagemaker_url: str
) -> None:
    def tags(name: str) -> dict[str, str]:
        sagemaker.create_training_job(**request_for(name))
        return the_tags(world.jobs[name]["jobDetails"])

    route_to_queue(session, api, elastic=ElasticOptions(max_instances=4))
    sagemaker = session.client("sagemaker", endpoint_url=sagemaker_url)
    try:
        assert tags("job1")["max-instances"] == "4"
        route_to_queue(session, api)
        assert tags("job2")["max-instances"] == "4"
        route_to_queue(session, api, elastic=ElasticOptions())
        assert "max-instances" not in tags("job3")
    finally:
        sagemaker.close()
