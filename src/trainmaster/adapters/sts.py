"""boto3 sessions under other IAM roles, which STS gives.

Each role is assumed with the queue's name as external ID, so that its trust policy can tell the queue from other users
of the same functions' account, and with the submitter of the job as source identity, which CloudTrail records and a
trust policy can restrict (IAM user guide, "Access to AWS accounts owned by third parties", "Monitor and control actions
taken with assumed roles").
"""

from __future__ import annotations

import hashlib
import re
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import boto3

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.ports.runtime import Clock

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient

SESSION_NAME = "trainmaster"
MAX_SOURCE_IDENTITY = 64
"""Characters (AssumeRole, `SourceIdentity`: 2 to 64 of `[\\w+=,.@-]`)."""
_DIGEST = 8
_NOT_ALLOWED = re.compile(r"[^\w+=,.@-]", re.ASCII)
_PRINCIPAL = re.compile(r"arn:[a-z-]+:(?:iam|sts)::([0-9]{12}):([a-z-]+)(?:/.*?)??(?:/([^/]+))?")
_SPARE = timedelta(minutes=20)
"""A session that ends earlier is not used for new work: a worker has a quarter of an hour."""


class Roles:
    """Sessions by role; a role is assumed once while its credentials last.

    Args:
        session: the session of this function's own role, also returned for no role.
        sts: assumes the other roles.
        clock: the time, compared to the expiry of credentials.
        queue: the queue's name: the external ID, and the source identity of what the queue does for no job.
    """

    def __init__(self, session: boto3.Session, sts: STSClient, clock: Clock, queue: str) -> None:
        self._session = session
        self._queue = queue
        self._sts = sts
        self._clock = clock
        self._assumed: dict[tuple[str, str], tuple[boto3.Session, datetime]] = {}
        self._lock = threading.Lock()

    def session(self, role: str | None, submitter: str = "") -> boto3.Session:
        """Return a session under this role, for a principal's job; "" if there is none, or it is unknown.

        Raises `NotPermitted`, `Throttled`, `Unavailable`.
        """
        if role is None:
            return self._session
        identity = source_identity(submitter) or self._queue
        with self._lock:
            known = self._assumed.get((role, identity))
            if known is None or known[1] - _SPARE <= self._clock.now():
                known = self._assumed[role, identity] = self._assume(role, identity)
            return known[0]

    def _assume(self, role: str, identity: str) -> tuple[boto3.Session, datetime]:
        with translate_errors():
            given = self._sts.assume_role(
                RoleArn=role, RoleSessionName=SESSION_NAME, ExternalId=self._queue, SourceIdentity=identity
            )["Credentials"]
        session = boto3.Session(
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
            region_name=self._session.region_name,
        )
        return session, given["Expiration"]


def source_identity(principal: str) -> str:
    """Return a principal's ARN as a source identity: `111122223333-assumed-role-research`; "" if it is none.

    The path is left out: an account has one user, and one role, of a name. IAM allows the same characters in names as
    STS here. Long ones are cut and end in a digest, so that two principals never have the same.
    """
    found = _PRINCIPAL.fullmatch(principal)
    if found is None:
        return ""
    text = _NOT_ALLOWED.sub("-", "-".join(filter(None, found.groups())))
    if len(text) <= MAX_SOURCE_IDENTITY:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    return f"{text[: MAX_SOURCE_IDENTITY - _DIGEST - 1]}-{digest}"
