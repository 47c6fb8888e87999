"""Checks of the hardened profile of a template, rendered with every parameter of it."""

from __future__ import annotations

from typing import Any

from scripts.render_template import HARDENED, Stack

BOUNDARY = HARDENED["PermissionsBoundaryArn"]
NETWORK = {"SubnetIds": HARDENED["SubnetIds"].split(","), "SecurityGroupIds": [HARDENED["SecurityGroupIds"]]}


def properties(stack: Stack, kind: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the resources of a type."""
    return {name: each.get("Properties", {}) for name, each in stack.resources.items() if each["Type"] == kind}


def keys_of(stack: Stack) -> dict[str, str | None]:
    """Return the key of everything that has one of its own; None for a key of AWS."""
    queues = {name: each.get("KmsMasterKeyId") for name, each in properties(stack, "AWS::SQS::Queue").items()}
    logs = {name: each.get("KmsKeyId") for name, each in properties(stack, "AWS::Logs::LogGroup").items()}
    tables = properties(stack, "AWS::DynamoDB::Table").items()
    return queues | logs | {name: each["SSESpecification"].get("KMSMasterKeyId") for name, each in tables}


def check_hardened(stack: Stack, key: str, reserved: dict[str, str]) -> None:
    """Check that keys, boundary, network and reservations reach everything that they are for."""
    assert set(keys_of(stack).values()) == {key}
    assert not [name for name, each in properties(stack, "AWS::SQS::Queue").items() if "SqsManagedSseEnabled" in each]
    roles = properties(stack, "AWS::IAM::Role")
    assert {each["PermissionsBoundary"] for each in roles.values()} == {BOUNDARY}
    functions = properties(stack, "AWS::Serverless::Function")
    assert {name: each["ReservedConcurrentExecutions"] for name, each in functions.items()} == reserved
    assert stack.resolve(stack.document["Globals"])["Function"]["VpcConfig"] == NETWORK


def check_lean(stack: Stack) -> None:
    """Check that nothing of the profile is there by default."""
    assert set(keys_of(stack).values()) == {None}
    assert all(each["SqsManagedSseEnabled"] is True for each in properties(stack, "AWS::SQS::Queue").values())
    assert not [name for name, each in properties(stack, "AWS::IAM::Role").items() if "PermissionsBoundary" in each]
    functions = properties(stack, "AWS::Serverless::Function").values()
    assert not [each for each in functions if "ReservedConcurrentExecutions" in each]
    assert "VpcConfig" not in stack.resolve(stack.document["Globals"])["Function"]
    assert not {each["Type"] for each in stack.resources.values()} & {"AWS::KMS::Key", "AWS::WAFv2::WebACL"}
