"""Whose account a request is of: an endpoint of another account is found under a role of that account alone.

As AWS does, the account is read off the access key, by asking STS (STS API reference, GetAccessKeyInfo). moto is told
in a header of its own; without one everything is in moto's one account. It must not check signatures.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moto.core.models import DEFAULT_ACCOUNT_ID

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment
    from mypy_boto3_sts import STSClient

ACCOUNT_HEADER = "HTTP_X_MOTO_ACCOUNT_ID"
"""The header as WSGI has it."""
_SESSION_KEY = re.compile(r"Credential=(ASIA[A-Z0-9]+)/")
"""Keys of roles' sessions begin so (IAM user guide, "IAM identifiers"); others are the owner's here."""


@dataclass(slots=True)
class Accounts:
    """Marks the requests of other accounts' sessions.

    Args:
        sts: tells the accounts of access keys.
        own: the account whose endpoints are moto's own.
    """

    sts: STSClient
    own: str
    _known: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def mark_request(self, environ: WSGIEnvironment) -> None:
        """Say in the request whose it is, where that is not our own account."""
        found = _SESSION_KEY.search(environ.get("HTTP_AUTHORIZATION", ""))
        account = self._account(found.group(1)) if found else self.own
        if account != self.own:
            environ[ACCOUNT_HEADER] = account

    def _account(self, key: str) -> str:
        with self._lock:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self.sts.get_access_key_info(AccessKeyId=key)["Account"]
            return known


def account_of(headers: Mapping[str, str]) -> str:
    """The account in moto for a request with these headers, names in lower case."""
    return headers.get(ACCOUNT_HEADER.removeprefix("HTTP_").replace("_", "-").lower(), DEFAULT_ACCOUNT_ID)
