"""Sessions under other IAM roles: to read images (`imageReadRole`), to reach endpoints (`imageProcessor.assumedRole`).

It must not read or invoke anything itself.
"""

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
    """Sessions by role, each role assumed once while its credentials last.

    Args:
        session: our own, also given for no role.
        sts: assumes the others.
        clock: tells whether credentials still last.
    """

    def __init__(self, session: boto3.Session, sts: STSClient, clock: Clock) -> None:
        self._session = session
        self._sts = sts
        self._clock = clock
        self._assumed: dict[str, tuple[boto3.Session, datetime]] = {}
        self._lock = threading.Lock()

    def session(self, role: str | None) -> boto3.Session:
        """A session under this role. Raises `NotPermitted`, `Throttled`, `Unavailable`."""
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
