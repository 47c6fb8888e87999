"""Every policy of images/template.yaml under a real evaluator, in a stack beside that of the queue."""

from __future__ import annotations

import json

import pytest
from scripts.render_template import ACCOUNT, REGIONS, beside, document_of

from permissions import listed
from policy_evaluator import EVERYTHING, Request, allowed
from rendered import core_stack, policies_of

KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
PARAMETERS = {
    "ImageBucketArns": "arn:aws:s3:::scenes",
    "ImageOutputBucketArns": "arn:aws:s3:::results",
    "ImageOutputStreamArns": f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/detections-*",
    "ImageEndpointArns": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/ships-*",
    "ImageRoleArns": f"arn:aws:iam::{ACCOUNT}:role/images/*",
    "ImageKmsKeyArns": KEY,
    "ImageStatusTopicArn": f"arn:aws:sns:us-east-1:{ACCOUNT}:image-status",
}
DOCUMENT = document_of("images/template.yaml")
CORE = core_stack()
STACK = beside(CORE, DOCUMENT, **PARAMETERS)
TABLE = CORE.attribute("QueueTable")
WAKE = CORE.attribute("WakeQueue")
IMAGES, DEAD, REGION, PROGRESS = (
    STACK.attribute(name) for name in ("ImageQueue", "ImageDeadLetterQueue", "RegionQueue", "ProgressQueue")
)
SHIPS = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/ships-1"
OTHERS = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/faces"
IMAGE_ROLE = f"arn:aws:iam::{ACCOUNT}:role/images/reader"
THROUGH_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}


def on_table(action: str, key: str) -> Request:
    return Request(f"dynamodb:{action}", TABLE, {} if action == "Scan" else {"dynamodb:LeadingKeys": [key]})


def on_queue(queue: str, *actions: str) -> list[Request]:
    return [Request(f"sqs:{action}", queue) for action in actions]


def of_logs(function: str) -> list[Request]:
    stream = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/lambda/{function}:log-stream:1"
    traces = ("xray:PutTraceSegments", "xray:PutTelemetryRecords")
    return [*(Request(f"logs:{each}", stream) for each in ("CreateLogStream", "PutLogEvents")), *map(Request, traces)]


CONSUME = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
READ = ("BatchGetItem", "GetItem", "Query")
NEEDS = {
    "IntakeRole": [
        *(on_table(action, key) for action in READ for key in ("STATE", "JOB#a", "WAIT")),
        *(on_table("PutItem", key) for key in ("endpoints", "refused#a")),
        *on_queue(IMAGES, *CONSUME),
        *on_queue(PROGRESS, "SendMessage"),
        *on_queue(DEAD, "SendMessage"),
        *(Request(f"sagemaker:{each}", SHIPS) for each in ("DescribeEndpoint", "ListTags")),
        Request("s3:GetObject", "arn:aws:s3:::scenes/a.tif"),
        Request("sts:AssumeRole", IMAGE_ROLE),
        Request("sts:SetSourceIdentity", IMAGE_ROLE),
        Request("kms:Decrypt", KEY, THROUGH_S3),
        *of_logs("sagemaker-queue-image-intake"),
    ],
    "RegionRole": [
        *(on_table(action, key) for action in READ for key in ("JOB#a", "image#a")),
        *(on_table(action, "image#a") for action in ("PutItem", "UpdateItem")),
        on_table("PutItem", "endpoints"),
        *on_queue(REGION, *CONSUME, "SendMessage"),
        *on_queue(PROGRESS, "SendMessage"),
        Request("sagemaker:InvokeEndpoint", SHIPS),
        Request("s3:GetObject", "arn:aws:s3:::scenes/a.tif"),
        Request("s3:GetObject", "arn:aws:s3:::results/a.json"),
        Request("s3:PutObject", "arn:aws:s3:::results/a.json"),
        Request("s3:PutObjectAcl", "arn:aws:s3:::results/a.json", {"s3:x-amz-acl": "bucket-owner-full-control"}),
        Request("sts:AssumeRole", IMAGE_ROLE),
        Request("sts:SetSourceIdentity", IMAGE_ROLE),
        Request("kms:Decrypt", KEY, THROUGH_S3),
        Request("kms:GenerateDataKey", KEY, THROUGH_S3),
        Request("kms:GenerateDataKey", KEY, {"kms:ViaService": "kinesis.us-east-1.amazonaws.com"}),
        Request("kinesis:PutRecords", f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/detections-1"),
        *of_logs("sagemaker-queue-image-regions"),
    ],
}  # fmt: skip
"""The requests that the code and Lambda make as each role of this stack."""
QUEUE_NEEDS = {
    "ApiRole": on_queue(IMAGES, "SendMessage"),
    "ManagerRole": [
        *on_queue(REGION, "SendMessage"),
        *on_queue(DEAD, "SendMessage"),
        *on_queue(PROGRESS, *CONSUME),
        *(Request(f"sagemaker:{each}", SHIPS) for each in ("DescribeEndpoint", "ListTags")),
        Request("cloudwatch:GetMetricData"),
        Request("sns:Publish", f"arn:aws:sns:us-east-1:{ACCOUNT}:image-status"),
        on_table("PutItem", "AUDIT#2026-11"),
        Request("sts:AssumeRole", IMAGE_ROLE),
        Request("sts:SetSourceIdentity", IMAGE_ROLE),
    ],
}
"""The further requests of the queue's own functions."""


@pytest.mark.parametrize(
    ("role", "request_"), [(role, each) for role, needs in (NEEDS | QUEUE_NEEDS).items() for each in needs], ids=str
)
def test_a_role_may_do_what_image_jobs_need(evaluator, role, request_):
    assert allowed(evaluator, request_, policies_of(role, CORE, STACK))


@pytest.mark.parametrize("role", QUEUE_NEEDS)
def test_the_queues_roles_may_do_it_only_beside_this_stack(evaluator, role):
    for need in QUEUE_NEEDS[role]:
        assert not allowed(evaluator, need, policies_of(role, CORE)), need


@pytest.mark.parametrize("role", NEEDS)
def test_a_role_is_granted_no_action_that_nothing_needs(role):
    documents = policies_of(role, STACK)
    granted = {action for one in documents for each in one["Statement"] for action in listed(each["Action"])}
    assert granted == {need.action for need in NEEDS[role]}


def training_job(action: str, name: str = "a-1") -> Request:
    return Request(f"sagemaker:{action}", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/{name}")


TO_SAGEMAKER = {"iam:PassedToService": "sagemaker.amazonaws.com"}
DENIED = {
    "start a training job": training_job("CreateTrainingJob"),
    "stop a training job": training_job("StopTrainingJob"),
    "pass a role": Request("iam:PassRole", IMAGE_ROLE, TO_SAGEMAKER),
    "assume a role that is not listed": Request("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
    "assume the manager's role": Request("sts:AssumeRole", CORE.attribute("ManagerRole")),
    "write settings and pools": on_table("PutItem", "STATE"),
    "count a job's region in its own row": on_table("UpdateItem", "JOB#a"),
    "add or overwrite a job": on_table("PutItem", "JOB#a"),
    "add a job to a lane": on_table("PutItem", "WAIT"),
    "write an audit entry": on_table("PutItem", "AUDIT#2026-11"),
    "delete a job": on_table("DeleteItem", "JOB#a"),
    "change the secret of the rendezvous": on_table("PutItem", "rendezvous"),
    "change held jobs": on_table("PutItem", "HELD"),
    "scan the table": on_table("Scan", ""),
    "read another bucket": Request("s3:GetObject", "arn:aws:s3:::salaries/a"),
    "write into the images": Request("s3:PutObject", "arn:aws:s3:::scenes/a.tif"),
    "publish a result": Request("s3:PutObjectAcl", "arn:aws:s3:::results/a.json", {"s3:x-amz-acl": "public-read"}),
    "send to another stream": Request("kinesis:PutRecords", f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/payments"),
    "delete a result": Request("s3:DeleteObject", "arn:aws:s3:::results/a.json"),
    "call an endpoint that is not listed": Request("sagemaker:InvokeEndpoint", OTHERS),
    "decrypt other than through S3": Request("kms:Decrypt", KEY, {"kms:ViaService": "sqs.us-east-1.amazonaws.com"}),
    "take messages from the manager": Request("sqs:ReceiveMessage", WAKE),
    "send to the manager's queue": Request("sqs:SendMessage", WAKE),
    "take reports from the manager": Request("sqs:ReceiveMessage", PROGRESS),
    "change the manager's code": Request("lambda:UpdateFunctionCode", CORE.attribute("ManagerFunction")),
}


@pytest.mark.parametrize("role", NEEDS)
@pytest.mark.parametrize("case", DENIED)
def test_functions_that_open_images_must_not(evaluator, case, role):
    assert allowed(evaluator, DENIED[case], [EVERYTHING])
    assert not allowed(evaluator, DENIED[case], policies_of(role, STACK))


@pytest.mark.parametrize(
    ("policy", "queue", "senders"),
    [
        ("RegionQueuePolicy", REGION, (CORE.attribute("ManagerRole"), STACK.attribute("RegionRole"))),
        ("ProgressQueuePolicy", PROGRESS, (STACK.attribute("IntakeRole"), STACK.attribute("RegionRole"))),
    ],
)
def test_only_the_own_roles_send_to_a_queue_between_functions(evaluator, policy, queue, senders):
    document = STACK.resources[policy]["Properties"]["PolicyDocument"]

    def sends(principal: str, secure: str = "true") -> bool:
        context = {"aws:SecureTransport": secure, "aws:PrincipalArn": principal}
        request = Request("sqs:SendMessage", queue, context, principal)
        return evaluator.allows(request, [EVERYTHING], resource_policy=document)

    assert all(map(sends, senders))
    assert not any(sends(each, "false") for each in senders)
    others = {CORE.attribute(role) for role in ("ApiRole", "ManagerRole")} - {*senders}
    assert not any(map(sends, [*others, f"arn:aws:iam::{ACCOUNT}:role/admin", f"arn:aws:iam::{ACCOUNT}:user/ann"]))


def test_workers_neither_accept_requests_nor_add_jobs(evaluator):
    policies = policies_of("RegionRole", STACK)
    for request in (
        *on_queue(IMAGES, "SendMessage", *CONSUME),
        on_table("PutItem", "JOB#a"),
        on_table("PutItem", "WAIT"),
    ):
        assert not allowed(evaluator, request, policies), request


def test_the_intake_neither_calls_models_nor_writes_results(evaluator):
    policies = policies_of("IntakeRole", STACK)
    results = Request("s3:PutObject", "arn:aws:s3:::results/a.json")
    for request in (Request("sagemaker:InvokeEndpoint", SHIPS), results, on_table("PutItem", "image#a")):
        assert not allowed(evaluator, request, policies), request


@pytest.mark.parametrize("partition", ["aws-us-gov", "aws-cn"])
def test_roles_work_in_every_partition(evaluator, partition):
    def there(text: str) -> str:
        return text.replace("arn:aws:", f"arn:{partition}:").replace("us-east-1", REGIONS[partition])

    core = core_stack(partition)
    stack = beside(core, DOCUMENT, **PARAMETERS)
    assert "arn:aws:" not in json.dumps(stack.resources)
    suffix = ".cn" if partition == "aws-cn" else ""
    for role, needs in (NEEDS | QUEUE_NEEDS).items():
        for need in needs:
            context = {
                name: f"{there(value)}{suffix}" if name == "kms:ViaService" else value
                for name, value in need.context.items()
            }
            request = Request(need.action, there(need.resource), context, there(need.principal))
            assert allowed(evaluator, request, policies_of(role, core, stack)), request


@pytest.mark.parametrize("role", QUEUE_NEEDS)
def test_the_queues_own_functions_neither_call_models_nor_read_images(evaluator, role):
    policies = policies_of(role, CORE, STACK)
    for request in (
        Request("sagemaker:InvokeEndpoint", SHIPS),
        Request("s3:GetObject", "arn:aws:s3:::scenes/a.tif"),
        Request("s3:PutObject", "arn:aws:s3:::results/a.json"),
        Request("kms:Decrypt", KEY, THROUGH_S3),
        *(on_table(action, "AUDIT#2026-11") for action in ("UpdateItem", "DeleteItem")),
    ):
        assert allowed(evaluator, request, [EVERYTHING])
        assert not allowed(evaluator, request, policies), request


@pytest.mark.parametrize("role", NEEDS)
def test_a_stack_that_names_no_buckets_roles_and_keys_reaches_none(evaluator, role):
    policies = policies_of(role, beside(CORE, DOCUMENT))
    services = ("s3:", "sts:", "kms:", "kinesis:")
    for need in NEEDS[role]:
        assert allowed(evaluator, need, policies) is not need.action.startswith(services), need
