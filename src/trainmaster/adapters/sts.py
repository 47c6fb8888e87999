"""boto3 sessions under other IAM roles, which STS gives."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import boto3

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.ports.runtime import Clock

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient

SESSION_NAME = "trainmaster"
_SPARE = timedelta(minutes=20)
"""A session that ends earlier is not used for new work: a worker has a quarter of an hour."""


class Roles:
    """Sessions by role; a role is assumed once while its credentials last.

    Args:
        session: the session of this function's own role, also returned for no role.
        sts: assumes the other roles.
        clock: the time, compared to the expiry of credentials.
    """

    def __init__(self, session: boto3.Session, sts: STSClient, clock: Clock) -> None:
        self._session = session
        self._sts = sts
        self._clock = clock
        self._assumed: dict[str, tuple[boto3.Session, datetime]] = {}
        self._lock = threading.Lock()

    def session(self, role: str | None) -> boto3.Session:
        """Return a session under this role. Raises `NotPermitted`, `Throttled`, `Unavailable`."""
        if role is None:
            return self._session
        with self._lock:
            known = self._assumed.get(role)
            if known is None or known[1] - _SPARE <= self._clock.now():
                known = self._assumed[role] = self._assume(role)
            return known[0]

    def _assume(self, role: str) -> tuple[boto3.Session, datetime]:
        with translate_errors():
            given = self._sts.assume_role(RoleArn=role, RoleSessionName=SESSION_NAME)["Credentials"]
        session = boto3.Session(
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
            region_name=self._session.region_name,
        )
        return session, given["Expiration"]
