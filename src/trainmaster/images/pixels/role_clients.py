"""boto3 clients of one AWS service under roles."""

from __future__ import annotations

import threading
from typing import Any

import boto3
from botocore.config import Config

from trainmaster.adapters.sts import Roles


class RoleClients:
    """One client for each role and submitter as long as its credentials last; new credentials need a new one.

    All jobs under the queue's own role share a client, and so its throttling state.

    Args:
        roles: sessions under roles.
        service: name of the service in boto3.
        config: of the clients.
    """

    def __init__(self, roles: Roles, service: str, config: Config) -> None:
        self._roles = roles
        self._service: Any = service
        self._config = config
        self._known: dict[tuple[str | None, str], tuple[boto3.Session, Any]] = {}
        self._lock = threading.Lock()

    def client(self, role: str | None, submitter: str = "") -> Any:
        """Return the client under a role, or the queue's own, for a principal's job; raises as `Roles.session` does."""
        session, key = self._roles.session(role, submitter), (role, "" if role is None else submitter)
        with self._lock:
            known = self._known.get(key)
            if known is None or known[0] is not session:
                known = self._known[key] = (session, session.client(self._service, config=self._config))
            return known[1]

    def close(self) -> None:
        """Close all connections."""
        for _, client in self._known.values():
            client.close()
