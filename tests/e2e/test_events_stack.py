"""Events of a deployed queue arrive at EventBridge: a rule sends them to a queue, in a stack with `Events=all`."""

from __future__ import annotations

import json

import boto3
import pytest

from deployed_stack import Deployed
from trainmaster import ApiClient
from trainmaster.domain.events.types import DETAIL_TYPES, EventType
from trainmaster.local.stack import LocalStack
from trainmaster.local.stack.address import ACCOUNT, REGION, SECRET

TYPE = "ml.g5.xlarge"
IMAGE = "000000000000.dkr.ecr.us-east-1.amazonaws.com/x:1"
SPEED = 40


@pytest.fixture(scope="module")
def publishing():
    session = boto3.Session(ACCOUNT, SECRET, region_name=REGION)
    stack = LocalStack(
        label="events",
        limits={TYPE: 2},
        parameters={"Events": "all", "Pools": f"{TYPE}=1"},
        simulator=("--speed", str(SPEED)),
    )
    with stack as address, ApiClient(address.api_url, session=session) as api:
        yield Deployed(address, api)


def subscribed(deployed):
    """The address of an SQS queue that gets all events of the queue."""
    sqs, events = deployed.aws("sqs"), deployed.aws("events")
    url = sqs.create_queue(QueueName="heard")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name="heard", EventPattern=json.dumps({"source": ["trainmaster"]}))
    events.put_targets(Rule="heard", Targets=[{"Id": "heard", "Arn": arn}])
    return url


def heard(deployed, url, types):
    """The events by type, once all these types have come; an event may come more than once."""
    sqs, found = deployed.aws("sqs"), {}
    for _ in range(60):
        for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2).get("Messages", []):
            event = json.loads(message["Body"])
            found.setdefault((event["detail"]["type"], event["detail"].get("jobName")), event)
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        if types <= found.keys():
            break
    return found


def a_request(name, priority, seconds):
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::000000000000:role/trainer",
        "AlgorithmSpecification": {
            "TrainingImage": "000000000000.dkr.ecr.us-east-1.amazonaws.com/x:1",
            "TrainingInputMode": "File",
        },
        "OutputDataConfig": {"S3OutputPath": "s3://training/output"},
        "ResourceConfig": {"InstanceType": TYPE, "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3_600},
        "CheckpointConfig": {"S3Uri": f"s3://training/checkpoints/{name}"},
        "Environment": {"SIMULATOR_TRAINING_SECONDS": str(seconds * SPEED)},
        "Tags": [{"Key": "priority", "Value": str(priority)}],
    }


@pytest.mark.slow
def test_events_of_jobs_pools_and_settings_arrive_at_eventbridge(publishing):
    url = subscribed(publishing)
    api = publishing.api
    api.submit(a_request("lower", 1, 20))
    publishing.state("lower", "running")
    api.submit(a_request("higher", 2, 3))
    publishing.state("higher", "completed")
    api.change_pool(TYPE, cap=2)
    api.set_settings({"order": "fifo"})
    publishing.state("lower", "completed", seconds=120)
    states = ("submitted", "starting", "started", "preempting", "preempted", "resumed", "ended")
    wanted = {*((kind, "lower") for kind in states), ("pools", None), ("settings", None)}
    found = heard(publishing, url, wanted)
    assert wanted - found.keys() == set()
    assert {event["source"] for event in found.values()} == {"trainmaster"}
    assert all(event["detail-type"] == DETAIL_TYPES[EventType(kind)] for (kind, _), event in found.items())
