"""Queues, environments, policies and quota shares of AWS Batch that stand for the queue; real botocore clients."""

from typing import Any

import boto3
import pytest
from batch_client import QUEUE, Batch
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from client_world import ACCOUNT, REGION

from aws_clients import aws_client
from fake_api import P5, FakeApi, a_part, a_pool, a_share
from trainmaster import ApiClient
from trainmaster.client.batch.hook import route_batch
from trainmaster.client.batch.resources import Resources

QUEUE_ARN = f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/{QUEUE}"
OF_BATCH = {"jobQueueName": "of-batch", "jobQueueArn": "arn", "state": "ENABLED", "priority": 1}
DENIED = (403, {"__type": "AccessDeniedException", "message": "not authorized"})


@pytest.fixture
def batch(session: boto3.session.Session, fake_client: ApiClient, fake: FakeApi) -> Batch:
    """A client of a session for which the queue answers under four names, with a job whose role names the account."""
    route_batch(session, fake_client, queues=[QUEUE], environments=["environment"], policies=["policy"])
    fake.add("job1")
    return Batch.of(session)


def test_the_queue_is_a_valid_job_queue(batch: Batch) -> None:
    for name in (QUEUE, QUEUE_ARN):
        (queue,) = batch("describe_job_queues", jobQueues=[name])["jobQueues"]
        assert (queue["jobQueueName"], queue["jobQueueArn"]) == (QUEUE, QUEUE_ARN)
        assert (queue["state"], queue["status"], queue["jobQueueType"]) == ("ENABLED", "VALID", "SAGEMAKER_TRAINING")
        (environment,) = queue["serviceEnvironmentOrder"]
        assert environment["serviceEnvironment"].endswith(":service-environment/environment")
        assert queue["schedulingPolicyArn"].endswith(":scheduling-policy/policy")


def test_its_environment_has_the_caps_of_the_pools(batch: Batch, fake: FakeApi) -> None:
    fake.pools["pools"] = [a_pool(P5, 2), a_pool(f"{P5}:spot", 3, instanceType=P5), a_pool("ml.g5.2xlarge", 8)]
    (environment,) = batch("describe_service_environments", serviceEnvironments=["environment"])["serviceEnvironments"]
    limits = {limit["capacityUnit"]: limit["maxCapacity"] for limit in environment["capacityLimits"]}
    assert limits == {P5: 5, "ml.g5.2xlarge": 8}
    assert (environment["state"], environment["status"]) == ("ENABLED", "VALID")


def test_resources_of_batch_are_described_beside_those_of_the_queue(batch: Batch) -> None:
    batch.answers = [(200, {"jobQueues": [{**OF_BATCH, "computeEnvironmentOrder": []}]})]
    queues = batch("describe_job_queues", jobQueues=["of-batch", QUEUE])["jobQueues"]
    assert {queue["jobQueueName"] for queue in queues} == {"of-batch", QUEUE}
    batch("describe_job_queues", jobQueues=["of-batch"])
    assert batch.real == [("describejobqueues", {"jobQueues": ["of-batch"]})] * 2


def test_lists_of_all_resources_include_those_of_the_queue_once(batch: Batch) -> None:
    queue = {**OF_BATCH, "computeEnvironmentOrder": []}
    batch.answers = [(200, {"jobQueues": [queue], "nextToken": "more"}), (200, {"jobQueues": [queue]})]
    pages = list(batch.client.get_paginator("describe_job_queues").paginate())
    assert [[each["jobQueueName"] for each in page["jobQueues"]] for page in pages] == [
        [QUEUE, "of-batch"],
        ["of-batch"],
    ]
    assert batch("list_scheduling_policies")["schedulingPolicies"][0]["arn"].endswith("/policy")
    assert batch("describe_service_environments")["serviceEnvironments"][0]["serviceEnvironmentName"] == "environment"


def test_callers_without_access_to_batch_see_the_queues_resources(batch: Batch) -> None:
    batch.answers = [DENIED, (400, {"__type": "ClientException", "message": "no"})]
    assert [each["jobQueueName"] for each in batch("describe_job_queues")["jobQueues"]] == [QUEUE]
    with pytest.raises(batch.client.exceptions.ClientException):
        batch("describe_job_queues")


def test_policies_are_described(batch: Batch) -> None:
    arn = f"arn:aws:batch:{REGION}:{ACCOUNT}:scheduling-policy/policy"
    (policy,) = batch("describe_scheduling_policies", arns=[arn])["schedulingPolicies"]
    assert (policy["name"], policy["arn"]) == ("policy", arn)


def test_quota_shares_are_the_shares_of_the_settings(batch: Batch, fake: FakeApi) -> None:
    fake.shares = [a_share("default"), a_share("vision", a_part(own=2), lending="lend-and-borrow")]
    shares = {share["quotaShareName"]: share for share in batch("list_quota_shares", jobQueue=QUEUE)["quotaShares"]}
    assert set(shares) == {"default", "vision"}
    vision = batch("describe_quota_share", quotaShareArn=f"{QUEUE_ARN}/quota-share/vision")
    assert {key: vision[key] for key in shares["vision"]} == shares["vision"]
    assert vision["capacityLimits"] == [{"capacityUnit": P5, "maxCapacity": 2}]
    assert vision["resourceSharingConfiguration"] == {"strategy": "LEND_AND_BORROW", "borrowLimit": -1}
    with pytest.raises(batch.client.exceptions.ClientException, match="There is no share nlp"):
        batch("describe_quota_share", quotaShareArn=f"{QUEUE_ARN}/quota-share/nlp")


def test_without_shares_in_the_settings_any_share_is_valid(batch: Batch) -> None:
    share = batch("describe_quota_share", quotaShareArn=f"{QUEUE_ARN}/quota-share/QS1")
    assert (share["quotaShareName"], share["state"], share["status"]) == ("QS1", "ENABLED", "VALID")


def test_a_snapshot_has_the_front_of_the_queue_and_the_use_of_shares(fake_client: ApiClient, fake: FakeApi) -> None:
    session = boto3.session.Session("AKIDEXAMPLE", "wJalrXUtnFEMI", region_name=REGION)
    route = route_batch(session, fake_client, queues=[QUEUE])
    route.serve(Resources(fake_client, {QUEUE: None}, frozenset(), frozenset(), now=lambda: 1000.0))
    fake.add("job1")
    fake.add("job2", share="vision")
    fake.pools["pools"] = [a_pool(P5, 4, used=3)]
    fake.shares = [a_share("default", a_part(used=1), running=1), a_share("vision", a_part(used=2), running=1)]
    snapshot = Batch.of(session)("get_job_queue_snapshot", jobQueue=QUEUE)
    front = [job["jobArn"].rpartition("/")[2] for job in snapshot["frontOfQueue"]["jobs"]]
    assert (front, snapshot["frontOfQueue"]["lastUpdatedAt"]) == (["tm.job1", "tm.job2"], 1_000_000)
    assert set(snapshot["frontOfQuotaShares"]["quotaShares"]) == {"default", "vision"}
    use = snapshot["queueUtilization"]
    assert use["totalCapacityUsage"] == [{"capacityUnit": P5, "quantity": 3.0}]
    assert use["fairshareUtilization"]["activeShareCount"] == 2
    top = use["fairshareUtilization"]["topCapacityUtilization"]
    assert [(each["shareIdentifier"], each["capacityUsage"][0]["quantity"]) for each in top] == [
        ("vision", 2.0),
        ("default", 1.0),
    ]


LIMITS = [{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}]
CREATIONS: list[tuple[str, dict[str, Any]]] = [
    ("create_job_queue", {"jobQueueName": QUEUE, "priority": 1}),
    (
        "create_service_environment",
        {
            "serviceEnvironmentName": "environment",
            "serviceEnvironmentType": "SAGEMAKER_TRAINING",
            "capacityLimits": LIMITS,
        },
    ),
    ("create_scheduling_policy", {"name": "policy"}),
    (
        "create_quota_share",
        {
            "quotaShareName": "QS1",
            "jobQueue": QUEUE,
            "capacityLimits": LIMITS,
            "resourceSharingConfiguration": {"strategy": "LEND"},
            "preemptionConfiguration": {"inSharePreemption": "DISABLED"},
        },
    ),
]


@pytest.mark.parametrize(("operation", "request_"), CREATIONS)
def test_what_the_queue_stands_for_exists_already(batch: Batch, operation: str, request_: dict[str, Any]) -> None:
    """AWS's sample notebooks read this message, at the top of the response, to skip what exists."""
    with pytest.raises(batch.client.exceptions.ClientException) as raised:
        batch(operation, **request_)
    assert raised.value.response["message"] == "Object already exists"  # type: ignore[typeddict-item]
    assert batch.real == []


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("update_job_queue", {"jobQueue": QUEUE, "state": "DISABLED"}),
        ("delete_job_queue", {"jobQueue": QUEUE_ARN}),
        ("update_service_environment", {"serviceEnvironment": "environment", "state": "DISABLED"}),
        ("delete_service_environment", {"serviceEnvironment": "environment"}),
        ("delete_scheduling_policy", {"arn": "arn:aws:batch:us-east-1:123456789012:scheduling-policy/policy"}),
        ("update_quota_share", {"quotaShareArn": f"{QUEUE_ARN}/quota-share/vision", "state": "DISABLED"}),
        ("delete_quota_share", {"quotaShareArn": f"{QUEUE_ARN}/quota-share/vision"}),
        ("create_quota_share", CREATIONS[3][1] | {"quotaShareName": "nlp"}),
    ],
)
def test_what_the_queue_stands_for_is_changed_by_its_own_commands(
    batch: Batch, fake: FakeApi, operation: str, request_: dict[str, Any]
) -> None:
    fake.shares = [a_share("vision")]
    with pytest.raises(batch.client.exceptions.ClientException, match="`trainmaster settings`"):
        batch(operation, **request_)
    assert batch.real == []


def test_resources_of_batch_are_changed_there(batch: Batch) -> None:
    batch.answers = [(200, {}), (200, {"serviceEnvironmentName": "of-batch", "serviceEnvironmentArn": "arn"})]
    batch("delete_job_queue", jobQueue="of-batch")
    batch("create_service_environment", **CREATIONS[1][1] | {"serviceEnvironmentName": "of-batch"})
    assert [path for path, _ in batch.real] == ["deletejobqueue", "createserviceenvironment"]


def test_tags_of_the_queues_resources_are_none_and_stay_so(batch: Batch) -> None:
    assert batch("list_tags_for_resource", resourceArn=QUEUE_ARN)["tags"] == {}
    with pytest.raises(batch.client.exceptions.ClientException, match="cannot change"):
        batch("tag_resource", resourceArn=QUEUE_ARN, tags={"a": "b"})
    with pytest.raises(batch.client.exceptions.ClientException, match="cannot change"):
        batch("untag_resource", resourceArn="arn:aws:batch:us-east-1:123456789012:service-job/tm.job1", tagKeys=["a"])
    batch("tag_resource", resourceArn=QUEUE_ARN + "2", tags={"a": "b"})
    assert len(batch.real) == 1


def test_without_jobs_the_account_is_the_callers(fake_client: ApiClient) -> None:
    identity = {"Account": "210987654321", "Arn": "arn:aws-cn:sts::210987654321:assumed-role/me/you", "UserId": "x"}
    sts = aws_client("sts")

    class OneSession(boto3.session.Session):
        def client(self, service: str, *args: Any, **more: Any) -> Any:  # type: ignore[override]
            return sts if service == "sts" else super().client(service, *args, **more)  # type: ignore[call-overload]

    session = OneSession("AKIDEXAMPLE", "wJalrXUtnFEMI", region_name=REGION)
    route_batch(session, fake_client, queues=[QUEUE])
    with Stubber(sts) as stubber:
        stubber.add_response("get_caller_identity", identity)
        (queue,) = Batch.of(session)("describe_job_queues", jobQueues=[QUEUE])["jobQueues"]
    assert queue["jobQueueArn"] == f"arn:aws-cn:batch:{REGION}:210987654321:job-queue/{QUEUE}"


def test_a_caller_whose_account_is_unknown_gets_batchs_error(batch: Batch, fake: FakeApi) -> None:
    fake.outage = [503] * 3
    with pytest.raises(ClientError) as raised:
        batch("describe_job_queues", jobQueues=[QUEUE])
    assert raised.value.response["Error"]["Code"] == "ServerException"
