"""Calls through the endpoint: which are the queue's, and how all others reach AWS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ConnectTimeoutError, TokenRetrievalError
from client_proxy import client_of, proxied
from client_world import REGION, World, request_for
from proxy_wire import Aws, Wire, authorization

from trainmaster import ApiClient
from trainmaster.client.sdk.elastic import ElasticOptions
from trainmaster.proxy.accounts import account_of
from trainmaster.proxy.app import Defaults, Session
from trainmaster.proxy.upstream import Upstream

OTHER = "eu-west-1"
KEYS = {"029608264753": "ASIAQNZGKIQY56JQ7WML", "other": "ASIAY34FZKBOKMUTVV7A"}
"""The first is the published example of how a key's ID holds its account."""


class KeySession(Session):
    """A session whose credentials the test finds."""

    find: Callable[[], Any]

    def get_credentials(self) -> Any:
        return self.find()


@pytest.fixture(scope="module")
def keys() -> KeySession:
    return KeySession(region_name=REGION)


@pytest.fixture
def wire_of(keys: KeySession, api: ApiClient, aws: Aws) -> Iterator[Wire]:
    """An endpoint that signs with temporary keys of the published account."""
    keys.find = lambda: Credentials(KEYS["029608264753"], "s", "t")
    with proxied(keys, api, upstream=Upstream(keys, aws)) as proxy:
        yield Wire(proxy)


def sent_headers(aws: Aws, number: int = -1) -> dict[str, str]:
    found = aws.requests[number].headers.items()
    return {name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in found}


# -- what passes on


def test_other_operations_reach_aws_as_they_are(wire: Wire, aws: Aws, world: World) -> None:
    body = b'{"NotebookInstanceName" :  "n1"}'
    answer = b'{"NotebookInstanceArn":  "arn", "New": 1}'
    aws.answers = [(200, {"Content-Type": "application/x-amz-json-1.1", "x-amzn-RequestId": "r1"}, answer)]

    got = wire.call("DescribeNotebookInstance", body, User_Agent="program/1", X_Amz_User_Agent="x")

    (request,) = aws.requests
    assert (request.method, request.url, request.body) == (
        "POST",
        f"https://api.sagemaker.{REGION}.amazonaws.com/",
        body,
    )
    sent = sent_headers(aws)
    assert (sent["user-agent"], sent["x-amz-target"]) == ("program/1", "SageMaker.DescribeNotebookInstance")
    assert (got.status, got.content, got.headers["x-amzn-requestid"]) == (200, answer, "r1")
    assert got.headers["content-type"] == "application/x-amz-json-1.1"
    assert world.calls == []


def test_an_operation_that_botocore_does_not_know_passes_on(wire: Wire, aws: Aws) -> None:
    aws.answers = [(400, {"x-amzn-ErrorType": "NewError"}, b'{"__type":"NewError"}')]
    got = wire.call("InventSomething", {"A": 1})
    assert (got.status, got.content, got.headers["x-amzn-errortype"]) == (400, b'{"__type":"NewError"}', "NewError")
    assert len(aws.requests) == 1


def test_requests_are_signed_with_the_users_credentials_for_the_programs_region(wire: Wire, aws: Aws) -> None:
    wire.call(
        "ListModels",
        {},
        Authorization=authorization(OTHER, "AKIDPROGRAM"),
        X_Amz_Date="20300101T000000Z",
        X_Amz_Security_Token="of-the-program",
        X_Amz_Content_Sha256="0",
        Cookie="a=b",
    )
    assert aws.requests[0].url == f"https://api.sagemaker.{OTHER}.amazonaws.com/"
    sent = sent_headers(aws)
    assert f"/{OTHER}/sagemaker/aws4_request" in sent["authorization"]
    assert "Credential=AKIDEXAMPLE/" in sent["authorization"]
    assert sent["x-amz-date"] != "20300101T000000Z"
    assert {"x-amz-security-token", "cookie", "x-amz-content-sha256"} & sent.keys() == set()


def test_a_request_that_tells_no_region_is_for_the_queues(wire: Wire, aws: Aws) -> None:
    wire.call("ListModels", {}, Authorization="Bearer x")
    assert aws.requests[0].url == f"https://api.sagemaker.{REGION}.amazonaws.com/"


def test_the_address_that_the_user_has_set_is_where_calls_pass_on(
    proxy_session: Session, api: ApiClient, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a path, which is what another `trainmaster exec` around this one sets."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", "http://127.0.0.1:9/outer-token/sagemaker")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BATCH", "http://127.0.0.1:9/outer-token/batch/")
    with proxied(proxy_session, api, upstream=Upstream(proxy_session, aws)) as proxy:
        client_of(proxy).list_models()
        arn = f"arn:aws:batch:{REGION}:123456789012:job/a"
        aws.answers = [(200, {}, b'{"tags": {"a": "b"}}')]
        assert client_of(proxy, "batch").list_tags_for_resource(resourceArn=arn)["tags"] == {"a": "b"}
        client_of(proxy, "batch").untag_resource(resourceArn=arn, tagKeys=["a/b", "c"])
    tags = f"http://127.0.0.1:9/outer-token/batch/v1/tags/{quote(arn, safe='')}"
    assert [request.url for request in aws.requests] == [
        "http://127.0.0.1:9/outer-token/sagemaker/",
        tags,
        f"{tags}?tagKeys=a%2Fb&tagKeys=c",
    ]


def test_what_fails_is_sent_once_and_the_program_decides_about_more(wire: Wire, aws: Aws) -> None:
    aws.answers = [
        ConnectTimeoutError(endpoint_url="https://aws"),
        (503, {}, b"{}"),
        (429, {"Retry-After": "3"}, b"{}"),
    ]
    unreached = wire.call("ListModels", {})
    assert (unreached.status, unreached.headers["x-amzn-errortype"]) == (503, "ServiceUnavailable")
    assert wire.call("ListModels", {}).status == 503
    assert wire.call("ListModels", {}).headers["retry-after"] == "3"
    assert len(aws.requests) == 3


def test_expired_credentials_are_an_error_that_says_what_to_do(wire_of: Wire, keys: KeySession) -> None:
    def expired() -> Any:
        raise TokenRetrievalError(provider="sso", error_msg="Token has expired")

    keys.find = expired
    got = wire_of.call("ListModels", {})
    assert (got.status, got.json["__type"]) == (400, "AccessDeniedException")
    assert "aws sso login" in got.json["message"]
    keys.find = lambda: None
    assert "Unable to locate credentials" in wire_of.call("ListModels", {}).json["message"]


# -- what is the queue's


def test_an_answer_keeps_what_only_aws_knows(wire: Wire, aws: Aws, world: World) -> None:
    """Members that this botocore does not have, at any depth, are not lost where the handlers change others."""
    wire.call("CreateTrainingJob", request_for("job1"))
    world.start("job1")
    described = world.trainings["job1"] | {
        "TrainingJobName": "job1",
        "TrainingJobArn": "arn",
        "NewMember": {"New": [1]},
        "ModelArtifacts": {"S3ModelArtifacts": "s3://b/m", "New": 1},
    }
    aws.answers = [(200, {}, json.dumps(described, default=float).encode())]

    got = wire.call("DescribeTrainingJob", {"TrainingJobName": "job1"}).json

    assert (got["NewMember"], got["ModelArtifacts"]) == ({"New": [1]}, {"S3ModelArtifacts": "s3://b/m", "New": 1})
    assert [each["Status"] for each in got["SecondaryStatusTransitions"]][-1] == "Training"
    assert isinstance(got["CreationTime"], float | int)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "SerializationException"),
        (b"[]", "SerializationException"),
        (b"[" * 100_000, "SerializationException"),
        ({}, "ValidationException"),
        ({"TrainingJobName": None}, "ValidationException"),
        ({"TrainingJobName": 5}, "SerializationException"),
        ({"TrainingJobName": ["job1"]}, "SerializationException"),
    ],
    ids=str,
)
@pytest.mark.parametrize("operation", ["DescribeTrainingJob", "StopTrainingJob", "CreateTrainingJob"])
def test_a_malformed_request_is_the_programs_error(wire: Wire, aws: Aws, operation: str, body: Any, code: str) -> None:
    """Clients of botocore never send one, others may."""
    got = wire.call(operation, body)
    assert (got.status, got.json["__type"]) == (400, code)
    assert got.headers["x-amzn-errortype"] == code
    assert aws.requests == []


def test_errors_of_the_queue_are_sagemakers(wire: Wire) -> None:
    wire.call("CreateTrainingJob", request_for("job1"))
    got = wire.call("CreateTrainingJob", request_for("job1", Environment={"A": "b"}))
    assert (got.status, got.json["__type"], got.headers["x-amzn-errortype"]) == (400, "ResourceInUse", "ResourceInUse")
    assert got.json["message"] == got.json["Message"]
    assert got.headers["content-type"] == "application/x-amz-json-1.1"


def test_an_outage_of_the_queue_is_an_error_that_programs_repeat(wire: Wire, world: World, aws: Aws) -> None:
    world.outage = [503] * 10
    got = wire.call("CreateTrainingJob", request_for("job1"))
    assert (got.status, got.json["__type"]) == (503, "ServiceUnavailable")
    assert aws.requests == []


def test_jobs_of_other_regions_bypass_the_queue_with_a_warning(
    wire: Wire, aws: Aws, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        wire.call("CreateTrainingJob", request_for("job1"), Authorization=authorization(OTHER))
    wire.call("DescribeTrainingJob", {"TrainingJobName": "job1"}, Authorization=authorization(OTHER))
    assert world.calls == []
    assert len(aws.requests) == 3
    assert [record.getMessage() for record in caplog.records if record.name == "trainmaster"] == [
        f"CreateTrainingJob: Jobs in {OTHER} bypass the queue, which is in {REGION}."
    ]


def test_calls_that_bypass_the_queue_are_a_warning_once(wire: Wire, aws: Aws, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        wire.call(
            "CreateProcessingJob",
            {"ProcessingJobName": "p", "ProcessingResources": {}, "AppSpecification": {}, "RoleArn": "r"},
        )
    wire.call(
        "CreatePipeline",
        {"PipelineName": "p", "ClientRequestToken": "t" * 32, "RoleArn": "r", "PipelineDefinition": '{"Steps": []}'},
    )
    told = [record.getMessage() for record in caplog.records if record.name == "trainmaster"]
    assert (len(told), len(aws.requests)) == (1, 3)
    assert told[0].startswith("CreateProcessingJob: Processing jobs bypass the queue")


def test_defaults_are_of_jobs_that_do_not_say_otherwise(
    proxy_session: Session, api: ApiClient, world: World, aws: Aws
) -> None:
    defaults = Defaults({"priority": "3", "trainmaster:share": "vision"}, None, ElasticOptions(max_instances=4))
    with proxied(proxy_session, api, defaults, Upstream(proxy_session, aws)) as proxy:
        client_of(proxy).create_training_job(**request_for("job1"))
        payload = json.dumps(request_for("job2", Tags=[]))
        given = {"jobName": "job2", "jobQueue": "sagemaker-queue", "serviceJobType": "SAGEMAKER_TRAINING"}
        client_of(proxy, "batch").submit_service_job(**given, serviceRequestPayload=payload, shareIdentifier="text")
    tags = {name: {tag["Key"]: tag["Value"] for tag in job["jobDetails"]["Tags"]} for name, job in world.jobs.items()}
    expected = {"priority": "7", "trainmaster:share": "vision", "trainmaster:max-instances": "4"}
    assert tags["job1"] == expected
    expected = {"priority": "3", "trainmaster:share": "text", "trainmaster:max-instances": "4"}
    assert expected.items() <= tags["job2"].items()


def test_a_job_of_batch_without_a_token_has_one(wire: Wire, world: World) -> None:
    """The SDKs fill it in; a program that writes its own requests may not."""
    body = {
        "jobName": "job1",
        "jobQueue": "sagemaker-queue",
        "serviceJobType": "SAGEMAKER_TRAINING",
        "serviceRequestPayload": json.dumps(request_for("job1")),
    }
    got = wire.ask(f"POST {wire.path('batch')}/v1/submitservicejob", json.dumps(body).encode())
    assert (got.status, got.json["jobId"]) == (200, "tm.job1")
    assert got.headers["content-type"] == "application/json"


def test_calls_may_come_at_once(wire: Wire, world: World) -> None:
    names = [f"job{number}" for number in range(40)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda name: wire.call("CreateTrainingJob", request_for(name)).status, names))
    assert (answers, sorted(world.jobs)) == ([200] * 40, sorted(names))


# -- accounts


def test_the_account_is_in_the_id_of_a_key() -> None:
    assert account_of(KEYS["029608264753"]) == "029608264753"
    assert [account_of(key) for key in ("AKIDEXAMPLE", "", "AKIAI44QH8DHBEXAMPLE", "ASIAqnzgkiqy56jq7wml")] == [
        None
    ] * 4


def test_a_program_that_means_another_account_is_refused(wire_of: Wire, aws: Aws, world: World) -> None:
    """It has assumed a role there; with the user's own credentials, the call would change this account instead."""
    for operation, body in (("DeleteModel", {"ModelName": "m"}), ("CreateTrainingJob", request_for("job1"))):
        got = wire_of.call(operation, body, Authorization=authorization(key_id=KEYS["other"]))
        assert (got.status, got.json["__type"]) == (400, "AccessDeniedException")
        assert "029608264753" in got.json["message"]
    assert (aws.requests, world.calls) == ([], [])


@pytest.mark.parametrize("key_id", ["ASIAQNZGKIQYZZZZZZZZ", "AKIDEXAMPLE", "ASIAQNZGKIQY56JQ7WML"])
def test_other_keys_of_the_account_and_unknown_ones_are_not(wire_of: Wire, aws: Aws, key_id: str) -> None:
    """Each process that assumes a role has keys of its own."""
    assert wire_of.call("ListModels", {}, Authorization=authorization(key_id=key_id)).status == 200
    assert sent_headers(aws)["x-amz-security-token"] == "t"
