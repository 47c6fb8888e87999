"""Every policy of template.yaml under a real evaluator: what a role needs is allowed, what it must not do is denied."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore import xform_name
from scripts.render_template import ACCOUNT, REGIONS, Stack

from builders import NOW
from permissions import IAM_NAMES, listed
from policy_evaluator import EVERYTHING, Request, allowed
from rendered import core_stack, policies_of
from template_checks import calls_of, of_type
from trainmaster.adapters.dynamodb.access.audit import ADOPTED, partition
from trainmaster.adapters.dynamodb.rendezvous.control import row_of_run
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.worker.rendezvous import run as worker

STACK = core_stack()
TABLE = STACK.attribute("QueueTable")
RENDEZVOUS = STACK.attribute("RendezvousTable")
FINISHED = f"{TABLE}/index/finished"
WAKE = STACK.attribute("WakeQueue")
WAKE_DEAD = STACK.attribute("WakeDeadLetterQueue")
EVENT_DEAD = STACK.attribute("EventDeadLetterQueue")
OURS = {"aws:ResourceTag/trainmaster:queue": "sagemaker-queue"}
TAGGED = {"aws:RequestTag/trainmaster:queue": "sagemaker-queue", "aws:TagKeys": ["trainmaster:queue"]}
CREATES = {"sagemaker:TaggingAction": "CreateTrainingJob"}
TO_SAGEMAKER = {"iam:PassedToService": "sagemaker.amazonaws.com"}
TRAINING_ROLE = f"arn:aws:iam::{ACCOUNT}:role/training/vision"
VOLUME_KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
RESERVED_CAPACITY = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:reserved-capacity/1"
"""A part of a training plan (developer guide, "IAM for SageMaker training plans")."""
EVENT_BUS = f"arn:aws:events:us-east-1:{ACCOUNT}:event-bus/default"
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:training-jobs"
EXECUTION = f"arn:aws:states:us-east-1:{ACCOUNT}:execution:nightly:run-1"
ANSWERS = ("states:SendTaskFailure", "states:SendTaskHeartbeat", "states:SendTaskSuccess")
STEPS = STACK.attribute("PipelinesQueue")
PIPELINE = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:pipeline/nightly"
ANSWERS_TO_STEPS = ("sagemaker:SendPipelineExecutionStepFailure", "sagemaker:SendPipelineExecutionStepSuccess")
AUDIT, ADOPTIONS = partition(NOW), partition(NOW, ADOPTED)
SECURE = {"aws:SecureTransport": "true"}


def on_table(action: str, key: str = "JOB#a", resource: str = TABLE) -> Request:
    """Return a request for rows of one partition key; a scan has no keys."""
    return Request(f"dynamodb:{action}", resource, {} if action == "Scan" else {"dynamodb:LeadingKeys": [key]})


def training_job(action: str, context: Mapping[str, Any], name: str = "a-1", region: str = "us-east-1") -> Request:
    return Request(f"sagemaker:{action}", f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}", context)


def of_logs(function: str) -> list[Request]:
    stream = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/lambda/{function}:log-stream:1"
    traces = ("xray:PutTraceSegments", "xray:PutTelemetryRecords")
    return [*(Request(f"logs:{each}", stream) for each in ("CreateLogStream", "PutLogEvents")), *map(Request, traces)]


QUESTIONS = [
    Request("iam:SimulatePrincipalPolicy", f"arn:aws:iam::{ACCOUNT}:role/people/anna"),
    Request("iam:SimulatePrincipalPolicy", f"arn:aws:iam::{ACCOUNT}:user/anna"),
    Request("iam:GetRole", f"arn:aws:iam::{ACCOUNT}:role/people/anna"),
]
"""The questions to IAM about a caller."""

NEEDS = {
    "ApiRole": [
        *(on_table(each) for each in ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")),
        on_table("PutItem", AUDIT),
        on_table("Query", AUDIT),
        on_table("Query", "2026-11", FINISHED),
        on_table("GetItem", "any", RENDEZVOUS),
        Request("sqs:SendMessage", WAKE),
        *QUESTIONS,
        *of_logs("sagemaker-queue-api"),
    ],
    "ManagerRole": [
        *(on_table(each) for each in ("BatchGetItem", "DeleteItem", "GetItem", "PutItem")),
        *(on_table(each) for each in ("Query", "UpdateItem")),
        on_table("PutItem", ADOPTIONS),
        on_table("Query", "2026-11", FINISHED),
        *(on_table(each, "any", RENDEZVOUS) for each in ("GetItem", "UpdateItem")),
        *(Request(f"sqs:{each}", WAKE) for each in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")),
        Request("sqs:SendMessage", WAKE),
        Request("sqs:SendMessage", WAKE_DEAD),
        training_job("AddTags", TAGGED | CREATES),
        training_job("CreateTrainingJob", TAGGED),
        training_job("DescribeTrainingJob", OURS),
        training_job("DescribeTrainingJob", {}, "job-of-others"),
        training_job("ListTags", OURS),
        training_job("StopTrainingJob", OURS),
        training_job("UpdateTrainingJob", OURS),
        Request("sagemaker:ListTrainingJobs"),
        Request("sagemaker:CreateTrainingJob", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/ours", TAGGED),
        Request("sagemaker:CreateTrainingJob", RESERVED_CAPACITY, TAGGED),
        Request("sagemaker:DescribeTrainingPlan", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/ours"),
        *QUESTIONS,
        Request("iam:PassRole", TRAINING_ROLE, TO_SAGEMAKER),
        Request("s3:ListBucket", f"arn:aws:s3:::sagemaker-us-east-1-{ACCOUNT}"),
        Request("s3:ListBucket", "arn:aws:s3:::checkpoints"),
        Request("events:PutEvents", EVENT_BUS, {"events:source": ["trainmaster"]}),
        Request("events:PutEvents", EVENT_BUS.replace("default", "platform"), {"events:source": ["trainmaster"]}),
        Request("sns:Publish", TOPIC),
        *map(Request, ANSWERS),
        *(Request(each, f"{PIPELINE}/execution/abcdefghij12") for each in ANSWERS_TO_STEPS),
        Request("lambda:InvokeFunction", f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:resize-a"),
        *map(Request, ("ec2:DescribeInstanceTypes", "pricing:GetProducts", "servicequotas:ListServiceQuotas")),
        Request("kms:DescribeKey", VOLUME_KEY),
        Request("kms:CreateGrant", VOLUME_KEY, {"kms:GrantIsForAWSResource": "true"}),
        *of_logs("sagemaker-queue-manager"),
    ],
    "TaskRole": [
        *(on_table(each) for each in ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")),
        on_table("PutItem", AUDIT),
        Request("sqs:SendMessage", WAKE),
        Request("states:DescribeStateMachineForExecution", EXECUTION),
        Request("states:GetExecutionHistory", EXECUTION),
        *map(Request, ANSWERS),
        training_job("DescribeTrainingJob", OURS),
        *QUESTIONS,
        *of_logs("sagemaker-queue-tasks"),
    ],
    "PipelineRole": [
        *(on_table(each) for each in ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")),
        on_table("PutItem", AUDIT),
        Request("sqs:SendMessage", WAKE),
        *(Request(f"sqs:{each}", STEPS) for each in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")),
        Request("sagemaker:DescribePipeline", PIPELINE),
        Request("sagemaker:DescribePipelineExecution", f"{PIPELINE}/execution/abcdefghij12"),
        *(Request(each, f"{PIPELINE}/execution/abcdefghij12") for each in ANSWERS_TO_STEPS),
        training_job("DescribeTrainingJob", OURS),
        *QUESTIONS,
        *of_logs("sagemaker-queue-pipelines"),
    ],
    "TickRole": [Request("sqs:SendMessage", WAKE), Request("sqs:SendMessage", EVENT_DEAD)],
}  # fmt: skip
"""The requests that the code, Lambda, SageMaker and Scheduler make as each role."""


@pytest.mark.parametrize(
    ("role", "request_"), [(role, each) for role, needs in NEEDS.items() for each in needs], ids=str
)
def test_a_role_may_do_what_it_needs(evaluator, role, request_):
    assert allowed(evaluator, request_, policies_of(role, STACK))


def test_the_needs_are_those_of_every_role_of_the_template():
    assert NEEDS.keys() | {"ApiLogRole"} == of_type(STACK.document, "AWS::IAM::Role").keys()


@pytest.mark.parametrize("role", NEEDS)
def test_a_role_is_granted_no_action_that_nothing_needs(role):
    documents = policies_of(role, STACK)
    grants = [each for one in documents for each in one["Statement"] if each["Effect"] == "Allow"]
    granted = {action for each in grants for action in listed(each["Action"])}
    assert granted == {need.action for need in NEEDS[role]}


def test_every_call_of_the_adapters_is_among_the_needs():
    actions = {each.action for needs in NEEDS.values() for each in needs}
    operations = actions | {IAM_NAMES[each] for each in actions if each in IAM_NAMES}
    methods = {xform_name(each.split(":")[1]) for each in operations}
    called = calls_of("**/*.py") - {"transact_write_items", "meta"}  # `meta` has the client's own events
    assert called
    assert called <= methods


OTHER_TABLE = TABLE.replace("table/", "table/other-")
DENIED = {
    "the API creates a training job": ("ApiRole", training_job("CreateTrainingJob", TAGGED)),
    "the API stops a training job": ("ApiRole", training_job("StopTrainingJob", OURS)),
    "the API reads a training job": ("ApiRole", training_job("DescribeTrainingJob", OURS)),
    "the API passes a role": ("ApiRole", Request("iam:PassRole", TRAINING_ROLE, TO_SAGEMAKER)),
    "the API assumes a role": ("ApiRole", Request("sts:AssumeRole", TRAINING_ROLE)),
    "the API gives itself permissions": ("ApiRole", Request("iam:PutRolePolicy", STACK.attribute("ApiRole"))),
    "the API reads another table": ("ApiRole", on_table("GetItem", resource=OTHER_TABLE)),
    "the API writes another table": ("ApiRole", on_table("PutItem", resource=OTHER_TABLE)),
    "the API deletes an audit entry": ("ApiRole", on_table("DeleteItem", AUDIT)),
    "the API changes an audit entry": ("ApiRole", on_table("UpdateItem", AUDIT)),
    "the API deletes an audit entry with SQL": ("ApiRole", on_table("PartiQLDelete", AUDIT)),
    "the manager deletes an audit entry": ("ManagerRole", on_table("DeleteItem", AUDIT)),
    "the manager changes an audit entry": ("ManagerRole", on_table("UpdateItem", AUDIT)),
    "the manager writes an audit entry": ("ManagerRole", on_table("PutItem", AUDIT)),
    "the manager deletes the entry of an adoption": ("ManagerRole", on_table("DeleteItem", ADOPTIONS)),
    "the manager changes the entry of an adoption": ("ManagerRole", on_table("UpdateItem", ADOPTIONS)),
    "the manager writes an audit entry with SQL": ("ManagerRole", on_table("PartiQLInsert", AUDIT)),
    "the API writes a rendezvous": ("ApiRole", on_table("UpdateItem", "any", RENDEZVOUS)),
    "the manager deletes a rendezvous": ("ManagerRole", on_table("DeleteItem", "any", RENDEZVOUS)),
    "the manager reads all rendezvous": ("ManagerRole", on_table("Scan", resource=RENDEZVOUS)),
    "the API scans the table": ("ApiRole", on_table("Scan")),
    "the API deletes the table": ("ApiRole", Request("dynamodb:DeleteTable", TABLE)),
    "the API takes messages from the manager": ("ApiRole", Request("sqs:ReceiveMessage", WAKE)),
    "the API empties the wake queue": ("ApiRole", Request("sqs:PurgeQueue", WAKE)),
    "the API sends to a dead-letter queue": ("ApiRole", Request("sqs:SendMessage", WAKE_DEAD)),
    "the API reads objects": ("ApiRole", Request("s3:GetObject", "arn:aws:s3:::checkpoints/a")),
    "the API deletes its logs": (
        "ApiRole",
        Request("logs:DeleteLogGroup", f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/lambda/sagemaker-queue-api"),
    ),
    "the manager passes a role that is not allowed": (
        "ManagerRole",
        Request("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", TO_SAGEMAKER),
    ),
    "the manager passes a role to another service": (
        "ManagerRole",
        Request("iam:PassRole", TRAINING_ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}),
    ),
    "the manager passes its own role": (
        "ManagerRole",
        Request("iam:PassRole", STACK.attribute("ManagerRole"), TO_SAGEMAKER),
    ),
    "the manager assumes a training role": ("ManagerRole", Request("sts:AssumeRole", TRAINING_ROLE)),
    "the manager starts a training job in another Region": (
        "ManagerRole",
        training_job("CreateTrainingJob", TAGGED, region="eu-west-1"),
    ),
    "the manager stops a training job without a tag": ("ManagerRole", training_job("StopTrainingJob", {})),
    "the manager stops a training job of another queue": (
        "ManagerRole",
        training_job("StopTrainingJob", {"aws:ResourceTag/trainmaster:queue": "another"}),
    ),
    "the manager updates a training job of others": ("ManagerRole", training_job("UpdateTrainingJob", {})),
    "the manager creates a training job without its tag": (
        "ManagerRole",
        training_job("CreateTrainingJob", {"aws:RequestTag/team": "vision", "aws:TagKeys": ["team"]}),
    ),
    "the manager creates a training job of another queue": (
        "ManagerRole",
        training_job("CreateTrainingJob", {"aws:RequestTag/trainmaster:queue": "another"}),
    ),
    "the manager tags a training job of others as its own": ("ManagerRole", training_job("AddTags", TAGGED)),
    "the manager uses a training plan that is not listed": (
        "ManagerRole",
        Request("sagemaker:CreateTrainingJob", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/theirs", TAGGED),
    ),
    "the manager uses a training plan without its tag": (
        "ManagerRole",
        Request("sagemaker:CreateTrainingJob", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/ours"),
    ),
    "the manager uses reserved capacity without its tag": (
        "ManagerRole",
        Request("sagemaker:CreateTrainingJob", RESERVED_CAPACITY),
    ),
    "the manager buys a training plan": (
        "ManagerRole",
        Request("sagemaker:CreateTrainingPlan", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/ours"),
    ),
    "the manager calls an endpoint": (
        "ManagerRole",
        Request("sagemaker:InvokeEndpoint", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/a"),
    ),
    "the manager reads a checkpoint": ("ManagerRole", Request("s3:GetObject", "arn:aws:s3:::checkpoints/a")),
    "the manager deletes a checkpoint": ("ManagerRole", Request("s3:DeleteObject", "arn:aws:s3:::checkpoints/a")),
    "the manager lists another bucket": ("ManagerRole", Request("s3:ListBucket", "arn:aws:s3:::salaries")),
    "the manager forges an event of SageMaker": (
        "ManagerRole",
        Request(
            "events:PutEvents",
            EVENT_BUS,
            {"events:source": ["trainmaster", "aws.sagemaker"]},
        ),
    ),
    "the manager puts events on another bus": (
        "ManagerRole",
        Request("events:PutEvents", EVENT_BUS.replace("default", "payroll"), {"events:source": ["trainmaster"]}),
    ),
    "the manager publishes to another topic": ("ManagerRole", Request("sns:Publish", f"{TOPIC}-of-others")),
    "the API publishes": ("ApiRole", Request("sns:Publish", TOPIC)),
    "the manager invokes a function that is not listed": (
        "ManagerRole",
        Request("lambda:InvokeFunction", f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:payroll"),
    ),
    "the manager decrypts with the key of volumes": (
        "ManagerRole",
        Request("kms:Decrypt", VOLUME_KEY),
    ),
    "the manager grants the key of volumes to itself": (
        "ManagerRole",
        Request("kms:CreateGrant", VOLUME_KEY, {"kms:GrantIsForAWSResource": "false"}),
    ),
    "the manager scans the table": ("ManagerRole", on_table("Scan")),
    "the manager deletes the table": ("ManagerRole", Request("dynamodb:DeleteTable", TABLE)),
    "the manager reads another table": ("ManagerRole", on_table("GetItem", resource=OTHER_TABLE)),
    "the API answers a task": ("ApiRole", Request("states:SendTaskSuccess")),
    "the manager reads an execution": ("ManagerRole", Request("states:GetExecutionHistory", EXECUTION)),
    "the tasks start an execution": (
        "TaskRole",
        Request("states:StartExecution", f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:nightly"),
    ),
    "the tasks stop an execution": ("TaskRole", Request("states:StopExecution", EXECUTION)),
    "the tasks read an execution of another account": (
        "TaskRole",
        Request("states:GetExecutionHistory", EXECUTION.replace(ACCOUNT, "999988887777")),
    ),
    "the tasks create a training job": ("TaskRole", training_job("CreateTrainingJob", TAGGED)),
    "the tasks pass a role": ("TaskRole", Request("iam:PassRole", TRAINING_ROLE, TO_SAGEMAKER)),
    "the pipelines start an execution": ("PipelineRole", Request("sagemaker:StartPipelineExecution", PIPELINE)),
    "the pipelines create a training job": ("PipelineRole", training_job("CreateTrainingJob", TAGGED)),
    "the pipelines pass a role": ("PipelineRole", Request("iam:PassRole", TRAINING_ROLE, TO_SAGEMAKER)),
    "the pipelines take messages from the manager": ("PipelineRole", Request("sqs:ReceiveMessage", WAKE)),
    "the pipelines delete an audit entry": ("PipelineRole", on_table("DeleteItem", AUDIT)),
    "the tasks delete an audit entry": ("TaskRole", on_table("DeleteItem", AUDIT)),
    "the tasks change an audit entry": ("TaskRole", on_table("UpdateItem", AUDIT)),
    "the tasks write another table": ("TaskRole", on_table("PutItem", resource=OTHER_TABLE)),
    "the tick reads the wake queue": ("TickRole", Request("sqs:ReceiveMessage", WAKE)),
    "the tick sends to a queue of others": ("TickRole", Request("sqs:SendMessage", f"{WAKE}-of-others")),
    "the tick writes the table": ("TickRole", on_table("PutItem")),
    "the tick starts a training job": ("TickRole", training_job("CreateTrainingJob", TAGGED)),
}  # fmt: skip


@pytest.mark.parametrize("case", DENIED)
def test_a_role_must_not(evaluator, case):
    role, request = DENIED[case]
    assert allowed(evaluator, request, [EVERYTHING]), "such a request exists, and only the role's policies deny it"
    assert not allowed(evaluator, request, policies_of(role, STACK))


def test_the_manager_of_a_prefix_creates_no_other_training_jobs(evaluator):
    policies = policies_of("ManagerRole", core_stack(TrainingJobPrefix="tm-"))
    assert evaluator.allows(training_job("CreateTrainingJob", TAGGED, "tm-a"), policies)
    assert not evaluator.allows(training_job("CreateTrainingJob", TAGGED, "a"), policies)


def test_a_queue_without_training_plans_uses_none(evaluator):
    policies = policies_of("ManagerRole", core_stack(TrainingPlanArns=""))
    for resource in (f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/ours", RESERVED_CAPACITY):
        assert not evaluator.allows(Request("sagemaker:CreateTrainingJob", resource, TAGGED), policies)


# ---------------------------------------------------------------- nodes of elastic jobs


def rendezvous() -> list[dict[str, Any]]:
    return [STACK.resources["RendezvousPolicy"]["Properties"]["PolicyDocument"]]


def of_a_node(action: str, key: str, role: str = "training") -> Request:
    """Return a node's request for the row of that partition key, as the execution role of its job."""
    principal = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    context: dict[str, Any] = {"aws:PrincipalArn": principal}
    if action != "Scan":
        context["dynamodb:LeadingKeys"] = [key]
    return Request(f"dynamodb:{action}", RENDEZVOUS, context, principal)


def row_of(role: str) -> str:
    return row_of_run(Run("a-1", f"arn:aws:iam::{ACCOUNT}:role/{role}"))[0]


@pytest.mark.parametrize("role", ["training", "teams/vision/training"])
@pytest.mark.parametrize("action", ["GetItem", "UpdateItem"])
def test_a_node_reads_and_updates_the_row_of_its_run(evaluator, action, role):
    assert evaluator.allows(of_a_node(action, row_of(role), role), rendezvous())


def announcements_of(role: str) -> str:
    return worker.Run("a-1", "secret", f"arn:aws:iam::{ACCOUNT}:role/{role}").announcements(3)


@pytest.mark.parametrize("role", ["training", "teams/vision/training"])
@pytest.mark.parametrize("action", ["UpdateItem", "Query", "DeleteItem"])
def test_a_node_writes_lists_and_deletes_announcements_of_its_run(evaluator, action, role):
    assert evaluator.allows(of_a_node(action, announcements_of(role), role), rendezvous())
    keyless = replace(of_a_node(action, "", role), context={"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/{role}"})
    assert not evaluator.allows(keyless, rendezvous())


@pytest.mark.parametrize("other", ["train", "training2", "teams/vision/training", "*", "t*"])
@pytest.mark.parametrize("action", ["GetItem", "UpdateItem", "Query", "DeleteItem"])
def test_a_node_has_no_access_to_the_runs_of_another_role(evaluator, action, other):
    assert not evaluator.allows(of_a_node(action, row_of(other)), rendezvous())
    assert not evaluator.allows(of_a_node(action, announcements_of(other)), rendezvous())


@pytest.mark.parametrize("action", ["GetItem", "UpdateItem"])
def test_a_node_has_no_access_without_a_key_or_to_the_queues_table(evaluator, action):
    request = of_a_node(action, row_of("training"))
    keyless = {name: value for name, value in request.context.items() if name != "dynamodb:LeadingKeys"}
    assert not evaluator.allows(replace(request, context=keyless), rendezvous())
    assert not evaluator.allows(replace(request, resource=TABLE), rendezvous())


@pytest.mark.parametrize("key", ["JOB#a", "STATE", "WAIT", "SETTINGS", "rendezvous"])
@pytest.mark.parametrize("action", ["GetItem", "UpdateItem", "Query", "PutItem", "DeleteItem"])
def test_a_node_has_no_access_to_jobs_and_settings(evaluator, action, key):
    assert not evaluator.allows(on_table(action, key), rendezvous())


@pytest.mark.parametrize("action", ["Query", "PutItem", "DeleteItem", "Scan"])
def test_a_node_neither_lists_nor_deletes_the_row_of_a_rendezvous(evaluator, action):
    assert not evaluator.allows(of_a_node(action, row_of("training")), rendezvous())


# ---------------------------------------------------------------- resource policies and trust


def queue_policy(name: str) -> dict[str, Any]:
    return STACK.resources[name]["Properties"]["PolicyDocument"]


@pytest.mark.parametrize(("policy", "queue"), [("QueuePolicy", WAKE), ("EventDeadLetterQueuePolicy", EVENT_DEAD)])
def test_only_the_rule_of_the_queue_sends_events_and_only_encrypted(evaluator, policy, queue):
    def sent(rule: str, secure: str = "true", service: str = "events") -> bool:
        context = {"aws:SourceArn": rule, "aws:SecureTransport": secure}
        request = Request("sqs:SendMessage", queue, context, f"{service}.amazonaws.com")
        return evaluator.allows(request, [], resource_policy=queue_policy(policy))

    ours = STACK.attribute("TrainingJobRule")
    assert sent(ours)
    assert not sent(ours, secure="false")
    assert not sent(ours, service="sns")
    assert not sent(f"{ours}-of-others")
    assert not sent(ours.replace(ACCOUNT, "999988887777"))


def test_no_principal_of_the_account_sends_to_the_wake_queue_in_the_clear(evaluator):
    policies, deny = policies_of("ApiRole", STACK), queue_policy("QueuePolicy")
    api = STACK.attribute("ApiRole")
    by_api = {"aws:PrincipalArn": api}
    assert evaluator.allows(Request("sqs:SendMessage", WAKE, SECURE | by_api, api), policies, resource_policy=deny)
    plain = Request("sqs:SendMessage", WAKE, {"aws:SecureTransport": "false"} | by_api, api)
    assert not evaluator.allows(plain, policies, resource_policy=deny)


def test_only_the_queues_own_roles_send_to_the_wake_queue(evaluator):
    def sends(principal: str) -> bool:
        request = Request("sqs:SendMessage", WAKE, SECURE | {"aws:PrincipalArn": principal}, principal)
        return evaluator.allows(request, [EVERYTHING], resource_policy=queue_policy("QueuePolicy"))

    assert all(sends(STACK.attribute(role)) for role in ("ApiRole", "ManagerRole", "TickRole"))
    assert not sends(f"arn:aws:iam::{ACCOUNT}:role/admin")
    assert not sends(f"arn:aws:iam::{ACCOUNT}:user/ann")
    # Those who may read it still may: only sending is restricted.
    receive = Request("sqs:ReceiveMessage", WAKE, SECURE, f"arn:aws:iam::{ACCOUNT}:role/admin")
    assert evaluator.allows(receive, [EVERYTHING], resource_policy=queue_policy("QueuePolicy"))


@pytest.mark.parametrize(
    ("role", "service", "context"),
    [
        ("ApiRole", "lambda", {}),
        ("ManagerRole", "lambda", {}),
        ("TickRole", "scheduler", {"aws:SourceAccount": ACCOUNT}),
        ("ApiLogRole", "apigateway", {}),
    ],
)
def test_a_role_is_assumed_by_its_service_alone(evaluator, role, service, context):
    stack = core_stack(ApiAccessLogs="true", CreateApiLogRole="true")
    trust = stack.resources[role]["Properties"]["AssumeRolePolicyDocument"]

    def assumed(principal: str, of: Mapping[str, Any] = context) -> bool:
        own = [EVERYTHING] if principal.startswith("arn:") else []
        request = Request("sts:AssumeRole", STACK.attribute(role), of, principal)
        return evaluator.allows(request, own, resource_policy=trust)

    assert assumed(f"{service}.amazonaws.com")
    assert not assumed("ec2.amazonaws.com")
    assert not assumed(f"arn:aws:iam::{ACCOUNT}:role/anybody")
    assert not context or not assumed(f"{service}.amazonaws.com", {"aws:SourceAccount": "999988887777"})


# ---------------------------------------------------------------- callers of the API


def of_api(stack: Stack) -> dict[str, Any]:
    """Return the resource policy of the API, its shortened ARNs in full as API Gateway stores them."""
    statements = stack.resources["QueueApi"]["Properties"]["Auth"]["ResourcePolicy"]["CustomStatements"]
    api = stack.arn("execute-api", "abc123/*")
    return {"Version": "2012-10-17", "Statement": [{**each, "Resource": api} for each in statements]}


INVOKE = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"},
}
ENDPOINT = "vpce-0123456789abcdef0"


def a_call(caller: str, *, endpoint: str | None = ENDPOINT) -> Request:
    context = {"aws:PrincipalArn": caller} | ({"aws:SourceVpce": endpoint} if endpoint else {})
    return Request(
        "execute-api:Invoke", f"arn:aws:execute-api:us-east-1:{ACCOUNT}:abc123/prod/GET/jobs", context, caller
    )


ANNA = f"arn:aws:iam::{ACCOUNT}:role/ml/anna"


def test_a_private_api_is_called_through_its_endpoints_alone(evaluator):
    policy = of_api(STACK)
    assert evaluator.allows(a_call(ANNA), [INVOKE], resource_policy=policy)
    assert not evaluator.allows(a_call(ANNA, endpoint=None), [INVOKE], resource_policy=policy)
    assert not evaluator.allows(a_call(ANNA, endpoint="vpce-00000000000000000"), [INVOKE], resource_policy=policy)


def test_principals_that_the_deployment_does_not_list_cannot_call_the_api(evaluator):
    stack = core_stack(AllowedPrincipals=f"arn:aws:iam::{ACCOUNT}:role/ml/*", EndpointType="REGIONAL")
    other = a_call(f"arn:aws:iam::{ACCOUNT}:role/web", endpoint=None)
    assert evaluator.allows(a_call(ANNA, endpoint=None), [INVOKE], resource_policy=of_api(stack))
    assert not evaluator.allows(other, [INVOKE], resource_policy=of_api(stack))


def test_callers_of_other_accounts_cannot_call_the_api(evaluator):
    policy = of_api(core_stack(EndpointType="REGIONAL"))
    stranger = a_call("arn:aws:iam::999988887777:role/ml/anna", endpoint=None)
    assert not evaluator.allows(stranger, [INVOKE], resource_policy=policy)


# ---------------------------------------------------------------- partitions


@pytest.mark.parametrize("partition", ["aws-us-gov", "aws-cn"])
@pytest.mark.parametrize("role", NEEDS)
def test_roles_work_in_every_partition_and_name_none(evaluator, partition, role):
    stack = core_stack(partition)
    policies = policies_of(role, stack)
    for need in NEEDS[role]:
        there = Request(need.action, _in(partition, need.resource), need.context, _in(partition, need.principal))
        assert allowed(evaluator, there, policies), there
        assert need.resource == "*" or not allowed(evaluator, need, policies)


def _in(partition: str, arn: str) -> str:
    return arn.replace("arn:aws:", f"arn:{partition}:").replace("us-east-1", REGIONS[partition])


@pytest.mark.parametrize("partition", ["aws-us-gov", "aws-cn"])
def test_the_rendered_template_names_no_other_partition(partition):
    text = json.dumps(core_stack(partition).resources)
    assert "arn:aws:" not in text
    assert "us-east-1" not in text
    if partition == "aws-cn":
        assert not re.search(r"https://[^\"]*amazonaws\.com(?!\.cn)", text)
