"""Asks IAM what a principal may do without the queue, as `ports.Permissions`.

The queue acts with its own role, so it first asks whether the caller could have done the same directly. The service
decides when IAM's answer is unknown; `domain/policy/roles.py` has the roles that the deployment allows.

`iam:SimulatePrincipalPolicy` ignores session policies: it answers for the session's role. It evaluates conditions with
the context keys that the question carries and no others.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.ports.permissions import Context
from trainmaster.ports.runtime import Clock

if TYPE_CHECKING:
    from mypy_boto3_iam import IAMClient

_LOG = logging.getLogger(__name__)
_KEPT = timedelta(minutes=5)
_MAX_KEPT = 1024
_PAUSE = timedelta(seconds=30)
"""After a failed connection, unknown answers cost no time for so long: a pass has one minute in all."""
_MAX_ARN_LENGTH = 2048
_USER = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>[0-9]{12}):user/\S+", re.ASCII)
_SESSION = re.compile(
    r"(?P<owner>arn:aws[a-z-]*:sts::(?P<account>[0-9]{12}):assumed-role/(?P<name>[\w+=,.@-]{1,64}))(?:/[^/\s]+)?",
    re.ASCII,
)
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>[0-9]{12}):role/[^\s*?]+", re.ASCII)
_RESOURCE = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(?P<account>[0-9]{12})?:[^\s*?]+", re.ASCII)
_TYPES = {
    "aws:calledvia": "stringList",
    "aws:securetransport": "boolean",
    "aws:tagkeys": "stringList",
    "sagemaker:enableremotedebug": "boolean",
    "sagemaker:instancetypes": "stringList",
    "sagemaker:intercontainertrafficencryption": "boolean",
    "sagemaker:keepaliveperiod": "numeric",
    "sagemaker:maxruntimeinseconds": "numeric",
    "sagemaker:networkisolation": "boolean",
    "sagemaker:vpcsecuritygroupids": "stringList",
    "sagemaker:vpcsubnets": "stringList",
}
"""Types of context keys that are not strings, by their names in lower case (service authorization reference)."""

T = TypeVar("T")


class _CannotTellError(Exception):
    """IAM cannot answer this question."""


class IamPermissions:
    """Answers from IAM's policy simulator, each cached for five minutes.

    A revoked permission therefore stays valid here for up to five minutes; unknown answers are not cached. Needs
    `iam:SimulatePrincipalPolicy`, and `iam:GetRole` for callers with an assumed role, whose ARN lacks the role's path.
    """

    def __init__(self, iam: IAMClient, clock: Clock) -> None:
        self._iam = iam
        self._clock = clock
        self._unreachable_until: datetime | None = None
        self._answers: _Cache[bool] = _Cache(clock)
        self._roles: _Cache[str] = _Cache(clock)

    def allows(self, caller_arn: str, action: str, resource: str, context: Context) -> bool | None:
        """Return IAM's answer; see `ports.Permissions.allows`. The log has the cause of an unknown answer."""
        try:
            return self._answer(caller_arn, action, resource, context)
        except self._iam.exceptions.NoSuchEntityException:
            # The role or user was deleted. Not cached: IAM may not know a new one everywhere yet.
            return False
        except (ClientError, BotoCoreError, _CannotTellError) as error:
            if isinstance(error, BotoCoreError):
                self._unreachable_until = self._clock.now() + _PAUSE
            _LOG.warning("IAM could not determine whether %r may %s on %r: %s", caller_arn, action, resource, error)
            return None

    def _answer(self, caller_arn: str, action: str, resource: str, context: Context) -> bool:
        caller = _USER.fullmatch(caller_arn) or _SESSION.fullmatch(caller_arn)
        target = _RESOURCE.fullmatch(resource)
        if caller is None or target is None or max(len(caller_arn), len(resource)) > _MAX_ARN_LENGTH:
            raise _CannotTellError("the caller is not an IAM user or role session, or the resource's ARN is invalid")
        if target["account"] not in (None, caller["account"]):
            return False
        if self._unreachable_until is not None and self._clock.now() < self._unreachable_until:
            raise _CannotTellError("IAM could not be reached a moment ago")
        # Sessions of one role share an answer, because the simulator evaluates the role.
        owner = caller.groupdict().get("owner", caller_arn)
        question = _digest(owner, action, resource, context)
        return self._answers.get(question, lambda: self._simulate(self._principal(caller), action, resource, context))

    def _principal(self, caller: re.Match[str]) -> str:
        """Return the ARN whose policies apply: the user's own, or that of the session's role."""
        name = caller.groupdict().get("name")
        return caller.group() if name is None else self._roles.get(caller["owner"], lambda: self._role(caller))

    def _role(self, caller: re.Match[str]) -> str:
        found = self._iam.get_role(RoleName=caller["name"])["Role"]["Arn"]
        # A session of another account may belong to a role with the same name as one here.
        owner = _ROLE.fullmatch(found)
        if owner is None or owner["account"] != caller["account"]:
            raise _CannotTellError("the caller's role is in another account")
        return found

    def _simulate(self, principal: str, action: str, resource: str, context: Context) -> bool:
        pages = self._iam.get_paginator("simulate_principal_policy").paginate(
            PolicySourceArn=principal,
            ActionNames=[action],
            ResourceArns=[resource],
            ContextEntries=[_entry(key, context) for key in sorted(context)],
        )
        results = [result for page in pages for result in page.get("EvaluationResults", [])]
        if not results:
            raise _CannotTellError("the simulation had no result")
        return all(map(_allowed, results))


class _Cache(Generic[T]):
    """Values that each stay valid for a time; the oldest make room for new ones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._values: dict[str, tuple[datetime, T]] = {}

    def get(self, key: str, find: Callable[[], T]) -> T:
        """Return the value, from `find` if none is valid. Raises what `find` raises, and caches nothing then."""
        found = self._values.get(key)
        if found is not None and self._clock.now() < found[0]:
            return found[1]
        value = find()
        self._values.pop(key, None)
        if len(self._values) >= _MAX_KEPT:
            self._values.pop(next(iter(self._values)))
        self._values[key] = (self._clock.now() + _KEPT, value)
        return value


def _digest(owner: str, action: str, resource: str, context: Context) -> str:
    """Return a key of constant length, so that large requests do not fill the memory."""
    named = [[key, list(context[key])] for key in sorted(context)]
    return hashlib.sha256(json.dumps([owner, action, resource, named]).encode()).hexdigest()


def _entry(key: str, context: Context) -> Any:
    kind = _TYPES.get(key.lower(), "string")
    return {"ContextKeyName": key, "ContextKeyType": kind, "ContextKeyValues": list(context[key])}


def _allowed(result: Any) -> bool:
    """Return True if the principal's policies, its boundary and the organization all allow the action."""
    boundary = result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True)
    organization = result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True)
    return bool(result["EvalDecision"] == "allowed" and boundary and organization)
