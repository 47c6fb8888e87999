"""Asks IAM whether a caller may pass a role to SageMaker.

A caller therefore gets no role through the queue that the caller could not pass without it. The service decides when
IAM's answer is unknown; `domain/policy/roles.py` has the roles that the deployment allows.

`iam:SimulatePrincipalPolicy` ignores session policies (it answers for the session's role) and context keys other than
`iam:PassedToService`.
"""

from __future__ import annotations

import logging
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.ports.runtime import Clock

if TYPE_CHECKING:
    from mypy_boto3_iam import IAMClient

_LOG = logging.getLogger(__name__)
_KEPT = timedelta(minutes=5)
_MAX_KEPT = 1024
_USER = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>[0-9]{12}):user/\S+", re.ASCII)
_SESSION = re.compile(
    r"(?P<owner>arn:aws[a-z-]*:sts::(?P<account>[0-9]{12}):assumed-role/(?P<name>[\w+=,.@-]{1,64}))/[^/\s]+", re.ASCII
)
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>[0-9]{12}):role/[^\s*?]+", re.ASCII)
_CONTEXT: Any = [
    {
        "ContextKeyName": "iam:PassedToService",
        "ContextKeyType": "string",
        "ContextKeyValues": ["sagemaker.amazonaws.com"],
    }
]


class _CannotTellError(Exception):
    """IAM cannot answer this question."""


class PassRoleChecker:
    """Answers from IAM's policy simulator, each cached for five minutes.

    A revoked permission therefore stays valid here for up to five minutes; unknown answers are not cached. Needs
    `iam:SimulatePrincipalPolicy`, and `iam:GetRole` for callers with an assumed role, whose ARN lacks the role's path.
    """

    def __init__(self, iam: IAMClient, clock: Clock, kept: timedelta = _KEPT) -> None:
        self._iam = iam
        self._clock = clock
        self._kept = kept
        self._answers: dict[tuple[str, str], tuple[datetime, bool]] = {}

    def may_pass(self, caller_arn: str, role_arn: str) -> bool | None:
        """Return True if IAM lets the caller pass the role to SageMaker, None if IAM cannot answer.

        IAM cannot answer for the root user, federated users and callers of another account than the client's, nor while
        it refuses, throttles or fails; the log has the cause. False across accounts: a principal can pass only roles of
        its own account (IAM user guide, "Granting a user permissions to pass a role").
        """
        try:
            return self._answer(caller_arn, role_arn)
        except (ClientError, BotoCoreError, _CannotTellError) as error:
            _LOG.warning("IAM could not determine whether %r may pass %r: %s", caller_arn, role_arn, error)
            return None

    def _answer(self, caller_arn: str, role_arn: str) -> bool:
        caller = _USER.fullmatch(caller_arn) or _SESSION.fullmatch(caller_arn)
        role = _ROLE.fullmatch(role_arn)
        if caller is None or role is None:
            raise _CannotTellError("the caller is not an IAM user or role session, or the role's ARN is invalid")
        if caller["account"] != role["account"]:
            return False
        # Sessions of one role share an answer, because the simulator evaluates the role.
        key = (caller.groupdict().get("owner", caller_arn), role_arn)
        until, answer = self._answers.get(key, (None, False))
        if until is None or self._clock.now() >= until:
            answer = self._simulate(self._principal(caller), role_arn)
            self._remember(key, answer=answer)
        return answer

    def _principal(self, caller: re.Match[str]) -> str:
        """Return the ARN whose policies apply: the user's own, or that of the session's role."""
        name = caller.groupdict().get("name")
        if name is None:
            return caller.group()
        found = self._iam.get_role(RoleName=name)["Role"]["Arn"]
        # A session of another account may belong to a role with the same name as one here.
        owner = _ROLE.fullmatch(found)
        if owner is None or owner["account"] != caller["account"]:
            raise _CannotTellError("the caller's role is in another account")
        return found

    def _simulate(self, principal: str, role_arn: str) -> bool:
        pages = self._iam.get_paginator("simulate_principal_policy").paginate(
            PolicySourceArn=principal,
            ActionNames=["iam:PassRole"],
            ResourceArns=[role_arn],
            ContextEntries=_CONTEXT,
        )
        results = [result for page in pages for result in page.get("EvaluationResults", [])]
        if not results:
            raise _CannotTellError("the simulation had no result")
        return all(map(_allowed, results))

    def _remember(self, key: tuple[str, str], *, answer: bool) -> None:
        self._answers.pop(key, None)
        if len(self._answers) >= _MAX_KEPT:
            self._answers.pop(next(iter(self._answers)))
        self._answers[key] = (self._clock.now() + self._kept, answer)


def _allowed(result: Any) -> bool:
    """Return True if the principal's policies, its boundary and the organization all allow the action."""
    boundary = result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True)
    organization = result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True)
    return bool(result["EvalDecision"] == "allowed" and boundary and organization)
