"""The stacks that tests evaluate: the templates rendered with every optional policy, and what is attached to roles."""

from __future__ import annotations

from typing import Any

from scripts.render_template import ACCOUNT, Stack, in_partition

from permissions import template

CORE_PARAMETERS = {
    "AllowedRoles": f"arn:aws:iam::{ACCOUNT}:role/training/*",
    "CheckpointBucketArns": "arn:aws:s3:::checkpoints",
    "EventBusName": "platform",
    "NotificationTopicArn": f"arn:aws:sns:us-east-1:{ACCOUNT}:training-jobs",
    "Pools": "ml.p5.48xlarge=2",
    "ResizeFunctionArns": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:resize-*",
    "SageMakerPipelines": "true",
    "StepFunctions": "true",
    "TrainingPlanArns": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/ours",
    "VolumeKmsKeyArns": f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555",
    "VpcEndpointIds": "vpce-0123456789abcdef0",
}
"""Every optional resource is named, so that every optional policy is there."""


def core_stack(partition: str = "aws", **parameters: str) -> Stack:
    """Return the stack of `template.yaml`, with every optional policy unless parameters say otherwise."""
    return Stack(template(), in_partition(CORE_PARAMETERS, partition) | parameters, partition)


def policies_of(role: str, *stacks: Stack) -> list[dict[str, Any]]:
    """Return the documents of a role's own policies and of those that stacks attach to it by its name."""
    owner = next(stack for stack in stacks if role in stack.document["Resources"])
    found = [policy["PolicyDocument"] for policy in owner.resources[role]["Properties"].get("Policies", [])]
    for stack in stacks:
        attached = (each["Properties"] for each in stack.resources.values() if each["Type"] in _ATTACHED)
        found += [each["PolicyDocument"] for each in attached if owner.reference(role) in each.get("Roles", [])]
    return found


_ATTACHED = {"AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"}
