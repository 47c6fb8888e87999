"""The contract of permissions, kept by the memory and by IAM's adapter in front of a simulated IAM."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from permissions_contract import ACCOUNT, PermissionsContract

from aws_clients import aws_client
from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.iam import IamPermissions
from trainmaster.local.memory.permissions import Grant, MemoryPermissions


class MemoryBench:
    def __init__(self) -> None:
        self.permissions = MemoryPermissions()

    def grant(self, *grants: Grant) -> None:
        self.permissions.grants = list(grants)


class IamBench:
    """An IAM with one role for each name, whose simulator answers from grants."""

    def __init__(self) -> None:
        client = aws_client("iam")
        client.meta.events.register("before-call.iam.GetRole", self._role)
        client.meta.events.register("before-call.iam.SimulatePrincipalPolicy", self._simulate)
        self.permissions = IamPermissions(client, SystemClock())
        self._grants: tuple[Grant, ...] = (Grant(),)

    def grant(self, *grants: Grant) -> None:
        self._grants = grants

    def _role(self, params: dict[str, Any], **_: Any) -> Any:
        arn = f"arn:aws:iam::{ACCOUNT}:role/people/{params['body']['RoleName']}"
        return _answer({"Role": {"Arn": arn}})

    def _simulate(self, params: dict[str, Any], **_: Any) -> Any:
        body = params["body"]
        principal = body["PolicySourceArn"]
        if ":role/people/" in principal:
            principal = f"arn:aws:sts::{ACCOUNT}:assumed-role/{principal.rpartition('/')[2]}"
        asked = (principal, body["ActionNames.member.1"], body["ResourceArns.member.1"], _context(body))
        answer = next((each.answer for each in self._grants if each.covers(*asked)), False)
        if answer is None:
            raise ClientError({"Error": {"Code": "Throttling", "Message": "slow down"}}, "SimulatePrincipalPolicy")
        return _answer({"EvaluationResults": [{"EvalDecision": "allowed" if answer else "implicitDeny"}]})


def _answer(parsed: dict[str, Any]) -> Any:
    return type("Answer", (), {"status_code": 200})(), parsed


def _context(body: dict[str, Any]) -> dict[str, list[str]]:
    """Return the context keys of a question as the query protocol flattens them."""
    found: dict[str, list[str]] = {}
    for name, value in body.items():
        if name.endswith(".ContextKeyName"):
            values = name.replace("ContextKeyName", "ContextKeyValues.member.")
            found[value] = [each for field, each in body.items() if field.startswith(values)]
    return found


class TestMemory(PermissionsContract):
    @pytest.fixture
    def bench(self) -> MemoryBench:
        return MemoryBench()


class TestIam(PermissionsContract):
    @pytest.fixture
    def bench(self) -> IamBench:
        return IamBench()
