"""Translation of SageMaker's description of an endpoint, and of its tags, into an endpoint."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from moto import mock_aws

from aws_clients import impatient_client, scripted
from trainmaster.domain.errors import InvalidRequest, NotPermitted, Throttled, Unavailable
from trainmaster.images.adapters.sagemaker_endpoints import SageMakerEndpoints
from trainmaster.images.domain.endpoint import Endpoint, Variant, is_serving

ARN = "arn:aws:sagemaker:us-east-1:111122223333:endpoint/ships"
ROLE = "arn:aws:iam::444455556666:role/reader"
WHEN = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def script():
    with scripted("sagemaker") as script:
        yield script


@pytest.fixture
def endpoints(script):
    return SageMakerEndpoints(lambda role: script.client)


def an_answer(*variants, **members):
    fixed = {"EndpointName": "ships", "EndpointArn": ARN, "EndpointStatus": "InService"}
    times = {"CreationTime": WHEN, "LastModifiedTime": WHEN}
    return {**fixed, **times, "ProductionVariants": [*variants], **members}


def instances(name="blue", count=2, weight=1.0):
    return {"VariantName": name, "CurrentInstanceCount": count, "CurrentWeight": weight}


def serverless(name="blue", most=100):
    return {"VariantName": name, "CurrentServerlessConfig": {"MemorySizeInMB": 4096, "MaxConcurrency": most}}


def tells(script, answer, *pages):
    """The script of one description; each page is of tags."""
    script.add_response("describe_endpoint", answer, {"EndpointName": "ships"})
    asked = {"ResourceArn": ARN}
    for number, tags in enumerate(pages, start=1):
        more = {"NextToken": f"t{number}"} if number < len(pages) else {}
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        script.add_response("list_tags", {"Tags": listed, **more}, asked)
        asked = {"ResourceArn": ARN, **more}


def test_instances_weights_and_serverless_variants_are_read(script, endpoints):
    tells(script, an_answer(instances("blue", 3, 70.0), instances("green", 0, 0.0), serverless("free", 20)), {})
    assert endpoints.describe("ships") == Endpoint(
        key="ships",
        variants=(
            Variant(name="blue", weight=70.0, instances=3),
            Variant(name="green", weight=0.0, instances=0),
            Variant(name="free", max_concurrency=20),
        ),
        status="InService",
    )


@pytest.mark.parametrize(("status", "serves"), [("Creating", False), ("Failed", False), ("RollingBack", True)])
def test_w17_how_an_endpoint_stands_is_read(script, endpoints, status, serves):
    tells(script, an_answer(instances(), EndpointStatus=status), {})
    assert is_serving(endpoints.describe("ships")) is serves


def test_a_creating_endpoint_defaults_to_one_instance_of_weight_one(script, endpoints):
    tells(script, an_answer({"VariantName": "blue"}, {"VariantName": "green", "DesiredInstanceCount": 4}), {})
    blue, green = endpoints.describe("ships").variants
    assert (blue.instances, blue.weight) == (1, 1.0)
    assert green.instances == 4


def test_an_asynchronous_endpoint_is_told_apart(script, endpoints):
    output = {"OutputConfig": {"S3OutputPath": "s3://results/ships"}}
    tells(script, an_answer(instances(), AsyncInferenceConfig=output), {})
    assert endpoints.describe("ships").asynchronous


def test_an_endpoint_without_variants_has_none(script, endpoints):
    answer = an_answer()
    del answer["ProductionVariants"]
    tells(script, answer, {})
    assert endpoints.describe("ships").variants == ()


def test_its_tags_say_what_an_instance_takes(script, endpoints):
    tags = {"osml:instance-concurrency": "5", "osml:capacity-target-percentage": "0.8", "osml:tile-workers": "3"}
    tells(script, an_answer(instances()), {"team": "ships"}, tags)
    found = endpoints.describe("ships")
    assert (found.instance_concurrency, found.target, found.tile_workers) == (5, 0.8, 3)


def test_a_wrong_tag_is_left_out_with_a_word_about_it(script, endpoints, caplog):
    tells(script, an_answer(instances()), {"osml:instance-concurrency": "many"})
    found = endpoints.describe("ships")
    assert found.instance_concurrency is None
    assert not found.tags_unread
    assert "tag is invalid" in caplog.text


def test_tags_that_cannot_be_read_are_told_as_such(script, endpoints):
    script.add_response("describe_endpoint", an_answer(instances()), {"EndpointName": "ships"})
    script.add_client_error("list_tags", "AccessDeniedException", "no", 403)
    found = endpoints.describe("ships")
    assert found.tags_unread
    assert found.variants[0].instances == 2


def test_an_endpoint_that_is_not_there_is_the_requests_fault(script, endpoints):
    words = 'Could not find endpoint "arn:aws:sagemaker:us-east-1:111122223333:endpoint/ships".'
    script.add_client_error("describe_endpoint", "ValidationException", words, 400)
    with pytest.raises(InvalidRequest) as told:
        endpoints.describe("ships")
    assert told.value.field == "imageProcessor.name"


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 400, Throttled),
        ("AccessDeniedException", 403, NotPermitted),
        ("InternalFailure", 500, Unavailable),
        ("ValidationException", 400, Unavailable),
    ],
)
def test_other_trouble_keeps_its_meaning(script, endpoints, code, status, error):
    script.add_client_error("describe_endpoint", code, "words", status)
    with pytest.raises(error):
        endpoints.describe("ships")


def test_an_endpoint_of_another_account_is_asked_for_by_its_name_under_its_role(script):
    """W14: what is described is what is invoked."""
    asked = []
    tells(script, an_answer(instances()), {})
    endpoints = SageMakerEndpoints(lambda role: asked.append(role) or script.client)
    found = endpoints.describe("444455556666:ships", role=ROLE)
    assert asked == [ROLE]
    assert (found.key, found.role) == ("444455556666:ships", ROLE)


def test_it_reads_what_moto_makes_of_an_endpoint():
    with mock_aws():
        client = impatient_client("sagemaker")
        client.create_model(ModelName="m", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": "image"})
        variants = [
            {"VariantName": "blue", "ModelName": "m", "InitialInstanceCount": 3, "InstanceType": "ml.m5.large"},
            {
                "VariantName": "free",
                "ModelName": "m",
                "ServerlessConfig": {"MemorySizeInMB": 2048, "MaxConcurrency": 20},
            },
        ]
        client.create_endpoint_config(EndpointConfigName="c", ProductionVariants=variants)
        tags = [{"Key": "osml:instance-concurrency", "Value": "5"}]
        client.create_endpoint(EndpointName="ships", EndpointConfigName="c", Tags=tags)
        endpoints = SageMakerEndpoints(lambda role: client)
        found = endpoints.describe("ships")
        assert [(v.name, v.instances, v.max_concurrency) for v in found.variants] == [
            ("blue", 3, None),
            ("free", 0, 20),
        ]
        assert found.instance_concurrency == 5
        with pytest.raises(InvalidRequest):
            endpoints.describe("boats")
