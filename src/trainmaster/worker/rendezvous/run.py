"""Identity of a run, the key of its row, and the signatures of what the row contains.

Other jobs with the same execution role can write the row, but do not know the run's secret. The queue's side of the
same signatures is `adapters/dynamodb/rendezvous/control.py`; a contract test compares the two.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.worker.container.container import require

TABLE_VARIABLE = "TRAINMASTER_RENDEZVOUS_TABLE"


@dataclass(frozen=True, slots=True)
class Run:
    """One rendezvous.

    Attributes:
        name: the same on every node; in a job of the queue, the name of the base training job.
        key: secret that only the queue and the nodes of the run know.
        role: ARN of the execution role. The queue's policy gives each role the rows whose key begins with it.
    """

    name: str
    key: str = field(repr=False)
    role: str = ""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], name: str | None = None) -> Run:
        """Return the run in an environment.

        Args:
            environ: variables, as set by the queue.
            name: its name; None for TRAINMASTER_RUN.

        Raises:
            InvalidRequest: a variable is missing.
        """
        return cls(
            name or require(environ, "TRAINMASTER_RUN"),
            require(environ, "TRAINMASTER_RENDEZVOUS_KEY"),
            environ.get("TRAINMASTER_RENDEZVOUS_ROLE", ""),
        )

    @property
    def partition(self) -> str:
        """Partition key of its row."""
        return f"{self.role}#{self.name}"

    def announcements(self, shard: int) -> str:
        """Return the partition key of announcements of its nodes."""
        return f"{self.partition}#live#{shard}"

    def sign_state(self, state: bytes, revision: int) -> bytes:
        """Return the signature of a state under a revision."""
        return self._sign(f"state\n{self.name}\n{revision}\n".encode() + state)

    def sign_announcement(self, name: str, text: str) -> bytes:
        """Return the signature of what a node announces."""
        return self._sign(f"presence\n{self.name}\n{name}\n{text}".encode())

    def sign_control(self, control: str) -> bytes:
        """Return the signature of a control."""
        return self._sign(f"control\n{self.name}\n{control}".encode())

    def sign_speed(self, speed: str) -> bytes:
        """Return the signature of a reported speed."""
        return self._sign(f"speed\n{self.name}\n{speed}".encode())

    def _sign(self, message: bytes) -> bytes:
        return hmac.new(self.key.encode(), message, hashlib.sha256).digest()
