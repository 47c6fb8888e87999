"""Secrets of runs, derived from one random secret that the queue keeps in its own table.

The secret of a run is a function of its name and role, so repeated requests for an attempt are equal, and nothing is
stored for each run. Training jobs have no access to the queue's table.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from trainmaster.adapters.dynamodb.rows import Key, keyed
from trainmaster.adapters.dynamodb.table import ABSENT, Table
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.errors import UnreadableRendezvous

SECRET: Key = ("rendezvous", "secret")
"""In a partition of its own, because passes read all of `STATE`."""
SECRET_BYTES = 32


@dataclass(slots=True)
class RunKeys:
    """Returns the secret of a run.

    Args:
        table: the queue's own.
        new_secret: returns random bytes.
    """

    table: Table
    new_secret: Callable[[], bytes] = lambda: secrets.token_bytes(SECRET_BYTES)
    _secret: bytes = b""

    def __call__(self, run: Run) -> str:
        """Return the secret of a run, 64 hexadecimal digits, always the same.

        Raises `UnreadableRendezvous`, `Throttled`, `Unavailable` and `NotPermitted`.
        """
        if not self._secret:
            self._secret = self._read() or self._create()
        return hmac.new(self._secret, f"{run.role}\n{run.name}".encode(), hashlib.sha256).hexdigest()

    def _read(self) -> bytes:
        """Return the queue's secret; empty if there is none yet."""
        row = self.table.get(SECRET)
        if row is None:
            return b""
        secret = row.get("secret", {}).get("B", b"")
        if len(secret) != SECRET_BYTES:
            raise UnreadableRendezvous(
                f"The secret of the rendezvous in the table of the queue cannot be read; delete the row {SECRET} to"
                " have a new one."
            )
        return bytes(secret)

    def _create(self) -> bytes:
        """Store a secret unless another function did so meanwhile, and return the stored one."""
        self.table.replace(keyed(SECRET, secret=self.new_secret()), ABSENT)
        return self._read()
