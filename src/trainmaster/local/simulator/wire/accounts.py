"""Finds the account of a request: endpoints of another account are visible only to roles of that account.

The account is that of the access key, resolved by STS (GetAccessKeyInfo, STS API reference). moto reads it from a
header of its own; without the header, everything belongs to moto's default account. Signatures are not checked.
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
"""The header as WSGI names it."""
_SESSION_KEY = re.compile(r"Credential=(ASIA[A-Z0-9]+)/")
"""Prefix of the keys of role sessions ("IAM identifiers", IAM user guide); other keys belong to our account."""


@dataclass(slots=True)
class Accounts:
    """Marks the requests of sessions of other accounts.

    Args:
        sts: resolves access keys to accounts.
        own: the account whose endpoints are in moto's default account.
    """

    sts: STSClient
    own: str
    _known: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def mark_request(self, environ: WSGIEnvironment) -> None:
        """Add the account to the request, unless it is our own."""
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
    """Return the account in moto for a request with these headers, names in lower case."""
    return headers.get(ACCOUNT_HEADER.removeprefix("HTTP_").replace("_", "-").lower(), DEFAULT_ACCOUNT_ID)
