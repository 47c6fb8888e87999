"""Contract of every implementation of `ports.Permissions`."""

from __future__ import annotations

from typing import Protocol

import pytest

from trainmaster.local.memory.permissions import Grant
from trainmaster.ports.permissions import Context, Permissions

ACCOUNT = "111122223333"
ALICE = f"arn:aws:iam::{ACCOUNT}:user/team/alice"
TEAM = f"arn:aws:sts::{ACCOUNT}:assumed-role/TeamA"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/training"
JOB = f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:training-job/resnet"
PASS, CREATE = "iam:PassRole", "sagemaker:CreateTrainingJob"
NONE: Context = {}


class Bench(Protocol):
    permissions: Permissions

    def grant(self, *grants: Grant) -> None:
        """Replace what principals may do; a grant with the answer None is a question that IAM cannot answer."""
        ...


class PermissionsContract:
    @pytest.mark.parametrize("caller", [ALICE, TEAM, f"{TEAM}/bob"])
    def test_allowed_and_nothing_else(self, bench: Bench, caller: str) -> None:
        bench.grant(Grant(action=PASS, resource=ROLE))
        assert bench.permissions.allows(caller, PASS, ROLE, NONE) is True
        assert bench.permissions.allows(caller, PASS, f"{ROLE}2", NONE) is False
        assert bench.permissions.allows(caller, CREATE, JOB, NONE) is False

    def test_each_principal_has_its_own_answer(self, bench: Bench) -> None:
        bench.grant(Grant(principal=TEAM))
        assert bench.permissions.allows(f"{TEAM}/bob", CREATE, JOB, NONE) is True
        assert bench.permissions.allows(f"{TEAM}/alice", CREATE, JOB, NONE) is True
        assert bench.permissions.allows(f"{TEAM}B/bob", CREATE, JOB, NONE) is False
        assert bench.permissions.allows(ALICE, CREATE, JOB, NONE) is False

    def test_the_context_decides(self, bench: Bench) -> None:
        key = "sagemaker:InstanceTypes"
        bench.grant(Grant(context={key: ["ml.g5.2xlarge"]}))
        assert bench.permissions.allows(ALICE, CREATE, JOB, {key: ["ml.g5.2xlarge"]}) is True
        assert bench.permissions.allows(ALICE, CREATE, JOB, {key: ["ml.p5.48xlarge"]}) is False
        assert bench.permissions.allows(ALICE, CREATE, JOB, NONE) is False

    def test_nothing_is_allowed_across_accounts(self, bench: Bench) -> None:
        other = "999999999999"
        assert bench.permissions.allows(ALICE, CREATE, JOB.replace(ACCOUNT, other), NONE) is False
        assert bench.permissions.allows(ALICE.replace(ACCOUNT, other), CREATE, JOB, NONE) is False

    @pytest.mark.parametrize(
        ("caller", "resource"),
        [
            ("", JOB),
            ("anonymous", JOB),
            (f"arn:aws:iam::{ACCOUNT}:root", JOB),
            (f"arn:aws:sts::{ACCOUNT}:federated-user/bob", JOB),
            (f"{TEAM}/bob/x", JOB),
            (ALICE, "*"),
            (ALICE, JOB + "*"),
            (ALICE, ""),
        ],
    )
    def test_what_iam_cannot_answer(self, bench: Bench, caller: str, resource: str) -> None:
        assert bench.permissions.allows(caller, CREATE, resource, NONE) is None

    def test_an_outage_is_no_answer(self, bench: Bench) -> None:
        bench.grant(Grant(principal=ALICE, answer=None), Grant())
        assert bench.permissions.allows(ALICE, CREATE, JOB, NONE) is None
        assert bench.permissions.allows(TEAM, CREATE, JOB, NONE) is True
