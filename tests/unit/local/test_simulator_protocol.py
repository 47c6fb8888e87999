"""Requests and answers against botocore's model, names, tags, faults and hooks."""

from __future__ import annotations

import json

import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from simulated import Account, refusal, resources

from aws_clients import aws_client
from builders import P5, a_request
from trainmaster.local.simulator import Account as Identity
from trainmaster.local.simulator import ApiError, SageMakerSimulator

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/job1"


def test_a_name_can_be_used_once_and_the_refusal_has_the_real_text():
    account = Account()
    account.create("job1")
    account.simulator.run_until_idle()
    code, text = refusal(account.create, "job1")
    assert code == "ResourceInUse"
    assert text.startswith("Training job names must be unique within an AWS account and region")


def test_a_duplicate_name_is_told_even_when_the_quota_is_full():
    account = Account()
    account.create("job1", count=2)
    assert refusal(account.create, "job1")[0] == "ResourceInUse"


@pytest.mark.parametrize("operation", ["describe_training_job", "stop_training_job", "delete_training_job"])
def test_a_job_that_does_not_exist_is_answered_as_the_service_does(operation):
    account = Account()
    answer = refusal(getattr(account.client, operation), TrainingJobName="missing")
    assert answer == ("ValidationException", "Requested resource not found.")


def test_a_job_that_does_not_exist_may_be_answered_as_the_model_promises():
    account = Account(account=Identity(not_found_code="ResourceNotFound"))
    with pytest.raises(account.client.exceptions.ResourceNotFound):
        account.describe("missing")


@pytest.mark.parametrize(
    ("members", "constraint"),
    [
        ({"name": "no_underscores"}, "'trainingJobName' failed to satisfy constraint: Member must satisfy regular"),
        ({"name": "x" * 64}, "Member must have length less than or equal to 63"),
        ({"RoleArn": "missing-at-all-1234567"}, "'roleArn' failed to satisfy constraint: Member must satisfy regular"),
        ({"instance_type": "ml.p9.huge"}, "Member must satisfy enum value set: [ml."),
        ({"ResourceConfig": resources(KeepAlivePeriodInSeconds=21601)}, "value less than or equal to 21600"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 0}}, "greater than or equal to 1"),
        ({"HyperParameters": {"key": "v" * 2501}}, "'hyperParameters.key'"),
        ({"HyperParameters": {f"k{n}": "v" for n in range(101)}}, "length less than or equal to 100"),
        ({"Environment": {"1BAD": "v"}}, "'environment'"),
        ({"Tags": [{"Key": "a\t!", "Value": "v"}]}, "'tags.1.member.key'"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_violations_of_the_model_have_the_services_messages(members, constraint):
    account = Account().unvalidated()
    code, text = refusal(account.create, **members)
    assert code == "ValidationException"
    assert "validation error" in text
    assert constraint in text


def test_a_single_violation_is_told_in_the_singular():
    assert refusal(Account().create, name="a_b")[1].startswith("1 validation error detected: ")


def test_every_violation_is_told_at_once():
    account = Account().unvalidated()
    text = refusal(account.create, name="a_b", RoleArn="missing-at-all-1234567")[1]
    assert text.startswith("2 validation errors detected")


def test_a_request_as_large_as_sagemaker_accepts_is_accepted():
    account = Account()
    account.create(
        HyperParameters={f"key{n}": "v" * 2500 for n in range(100)},
        Environment={f"KEY{n}": "v" * 512 for n in range(100)},
        Tags=[{"Key": f"tag{n} ä:/=+-@", "Value": "v"} for n in range(50)],
    )
    assert len(account.describe()["HyperParameters"]) == 100


@pytest.mark.parametrize(
    "members",
    [
        {"ResourceConfig": {"VolumeSizeInGB": 30}},
        {"ResourceConfig": {"InstanceType": P5, "VolumeSizeInGB": 30}},
        {"ResourceConfig": resources(InstancePreferences=[{"InstanceType": P5}])},
        {"ResourceConfig": resources(SelectedInstanceType=P5)},
        {"ResourceConfig": {"InstancePreferences": [{"InstanceType": P5}], "VolumeSizeInGB": 30}},
        {"ResourceConfig": {"InstancePreferences": [{"InstanceType": P5}] * 2, "InstanceCount": 1}},
        {"ResourceConfig": {"InstancePreferences": [{"InstanceType": P5}], "InstanceCount": 1},
         "EnableManagedSpotTraining": True},
        {"EnableManagedSpotTraining": True},
        {"EnableManagedSpotTraining": True,
         "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3599}},
        {"StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3600}},
        {"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400 + 1}},
        {"AlgorithmSpecification": {"TrainingInputMode": "File"}},
        {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]},
    ],
    ids=lambda members: str(members)[:70],
)  # fmt: skip
def test_members_that_contradict_each_other_are_refused(members):
    account = Account()
    assert refusal(account.create, **members)[0] == "ValidationException"


def test_a_request_of_wrong_types_is_a_serialization_exception():
    account = Account()
    body = json.dumps({"TrainingJobName": 7}).encode()
    reply = account.simulator.reply("DescribeTrainingJob", body)
    assert (reply.status, json.loads(reply.body)["__type"]) == (400, "SerializationException")


def test_a_body_that_is_no_json_is_a_serialization_exception():
    reply = Account().simulator.reply("DescribeTrainingJob", b"{")
    assert json.loads(reply.body)["__type"] == "SerializationException"


def test_an_unknown_member_is_refused_and_a_null_is_no_member():
    account = Account()
    account.create()
    unknown = account.simulator.reply("DescribeTrainingJob", b'{"TrainingJobName": "job1", "Color": "red"}')
    assert json.loads(unknown.body)["__type"] == "ValidationException"
    null = account.simulator.reply("ListTrainingJobs", b'{"NextToken": null}')
    assert null.status == 200


def test_describe_gives_back_what_was_asked_for():
    account = Account()
    request = a_request("job1", HyperParameters={"epochs": "3"}, Environment={"A": "1"})
    account.client.create_training_job(**request)
    seen = account.describe()
    kept = {key: value for key, value in request.items() if key != "Tags"}
    kept["AlgorithmSpecification"] |= {"EnableSageMakerMetricsTimeSeries": False}
    kept["OutputDataConfig"] |= {"KmsKeyId": "", "CompressionType": "GZIP"}
    assert {key: seen[key] for key in kept} == kept
    assert seen["ProfilingStatus"] == "Disabled"


def test_describe_fills_in_what_published_responses_have_of_a_channel():
    account = Account()
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data"}}
    channels = [{"ChannelName": "train", "DataSource": source, "CompressionType": "Gzip"}]
    account.client.create_training_job(**a_request("job1", InputDataConfig=channels))
    (channel,) = account.describe()["InputDataConfig"]
    assert (channel["CompressionType"], channel["RecordWrapperType"]) == ("Gzip", "None")


def test_tags_are_added_listed_and_deleted_but_not_described():
    account = Account()
    account.create(priority=3)
    account.client.add_tags(ResourceArn=ARN, Tags=[{"Key": "team", "Value": "vision"}])
    assert account.client.list_tags(ResourceArn=ARN)["Tags"] == [
        {"Key": "priority", "Value": "3"}, {"Key": "team", "Value": "vision"},
    ]  # fmt: skip
    account.client.delete_tags(ResourceArn=ARN, TagKeys=["priority", "absent"])
    assert account.client.list_tags(ResourceArn=ARN)["Tags"] == [{"Key": "team", "Value": "vision"}]
    assert "Tags" not in account.describe()


def test_a_job_has_at_most_fifty_tags():
    account = Account()
    account.create(Tags=[{"Key": f"k{n}", "Value": ""} for n in range(50)])
    account.client.add_tags(ResourceArn=ARN, Tags=[{"Key": "k1", "Value": "again"}])
    assert refusal(account.client.add_tags, ResourceArn=ARN, Tags=[{"Key": "one-more", "Value": ""}])[0] == (
        "ValidationException"
    )


def test_tags_of_a_resource_that_does_not_exist_are_not_found():
    account = Account()
    assert refusal(account.client.list_tags, ResourceArn=ARN)[1] == "Requested resource not found."


def test_a_deleted_job_frees_its_name():
    account = Account()
    account.create("job1")
    assert refusal(account.client.delete_training_job, TrainingJobName="job1")[0] == "ValidationException"
    account.simulator.run_until_idle()
    account.client.delete_training_job(TrainingJobName="job1")
    account.create("job1")


def test_a_job_with_an_available_pool_cannot_be_deleted():
    account = Account()
    account.warm("job1", 600)
    account.advance(130)
    assert refusal(account.client.delete_training_job, TrainingJobName="job1")[0] == "ValidationException"


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 400), ("InternalFailure", 500),
                                              ("ServiceUnavailable", 503), ("AccessDeniedException", 400)])  # fmt: skip
def test_an_injected_fault_is_answered_instead_of_doing_it(code, status):
    account = Account()
    account.simulator.faults.inject("CreateTrainingJob", code)
    reply = account.simulator.reply("CreateTrainingJob", json.dumps(a_request("job1")).encode())
    assert (reply.status, json.loads(reply.body)["__type"]) == (status, code)
    assert refusal(account.describe)[1] == "Requested resource not found."
    account.create("job1")


def test_a_fault_may_lose_only_the_answer():
    account = Account()
    account.simulator.faults.inject("CreateTrainingJob", "InternalFailure", executed=True)
    assert refusal(account.create, "job1")[0] == "InternalFailure"
    assert account.status("job1") == ("InProgress", "Starting")
    assert account.told("job1") == [("InProgress", "Starting")]


def test_faults_follow_their_script_and_can_be_cleared():
    account = Account()
    account.create("job1")
    account.simulator.faults.inject("*", "ThrottlingException", skip=1, times=2)
    account.describe()
    for _ in range(2):
        assert refusal(account.describe)[0] == "ThrottlingException"
    account.describe()
    account.simulator.faults.inject("DescribeTrainingJob", "InternalFailure", times=None)
    refusal(account.describe)
    account.simulator.faults.clear()
    account.describe()


def test_a_client_may_retry_where_it_is_told_to():
    account = Account()
    account.create("job1")
    client = account.simulator.client(Config(retries={"mode": "standard", "total_max_attempts": 2}))
    account.simulator.faults.inject("DescribeTrainingJob", "InternalFailure")
    assert client.describe_training_job(TrainingJobName="job1")["TrainingJobStatus"] == "InProgress"


def test_hooks_stand_before_and_after_each_call():
    account = Account()
    seen = []
    account.simulator.on_call = lambda operation, phase: seen.append((operation, phase))
    account.create("job1")
    assert seen == [("CreateTrainingJob", "before"), ("CreateTrainingJob", "after")]


class Killed(BaseException):
    """The caller dies here."""


@pytest.mark.parametrize(("phase", "exists"), [("before", False), ("after", True)])
def test_a_hook_may_kill_the_caller_before_or_after_the_call_took_effect(phase, exists):
    account = Account()

    def kill(_operation, at):
        if at == phase:
            raise Killed

    account.simulator.on_call = kill
    with pytest.raises(Killed):
        account.create("job1")
    account.simulator.on_call = None
    names = [each["TrainingJobName"] for each in account.client.list_training_jobs()["TrainingJobSummaries"]]
    assert names == (["job1"] if exists else [])


def test_a_hook_may_pretend_that_the_connection_was_lost():
    account = Account()

    def lose(_operation, _phase):
        raise EndpointConnectionError(endpoint_url="https://nowhere")

    account.simulator.on_call = lose
    with pytest.raises(EndpointConnectionError):
        account.create("job1")


def test_a_client_that_exists_already_can_be_attached():
    account = Account()
    client = aws_client("sagemaker", endpoint_url="https://nowhere.invalid")
    account.simulator.attach(client)
    client.create_training_job(**a_request("job1"))
    assert account.status() == ("InProgress", "Starting")


def test_the_direct_methods_answer_python_values_and_raise_api_errors():
    account = Account()
    account.simulator.call("CreateTrainingJob", **a_request("job1"))
    assert account.simulator.call("DescribeTrainingJob", TrainingJobName="job1")["CreationTime"] == account.start
    with pytest.raises(ApiError) as caught:
        account.simulator.call("CreateTrainingJob", **a_request("job1"))
    assert caught.value.code == "ResourceInUse"
    with pytest.raises(ApiError, match="trainingJobName"):
        account.simulator.call("DescribeTrainingJob", TrainingJobName="a_b")


def test_an_answer_that_breaks_the_model_does_not_leave_the_checked_simulator():
    account = Account()
    account.create("job1")
    account.simulator._engine.operations["DescribeTrainingJob"] = lambda _request, _now: {"TrainingJobName": "a_b"}
    with pytest.raises(AssertionError, match="Missing required parameter"):
        account.simulator.call("DescribeTrainingJob", TrainingJobName="job1")


def test_the_account_and_region_are_those_asked_for():
    simulator = SageMakerSimulator(account=Identity(number="222233334444", region="eu-west-1"))
    client = simulator.client()
    arn = client.create_training_job(**a_request("job1"))["TrainingJobArn"]
    assert arn == "arn:aws:sagemaker:eu-west-1:222233334444:training-job/job1"
    assert client.meta.region_name == "eu-west-1"
