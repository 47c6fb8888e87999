"""The rendezvous of elastic jobs as rows of a table of their own; implements `ports.RendezvousControl`.

A run has one row. Its nodes write `st`, the group's state, under `rev`; the queue writes `control`, its commands to
them. So neither's writes meet the other's conditions, and one read shows a node both. Both write `expires`, after which
DynamoDB deletes the row. Each signs what it writes with the secret of the run (`mac`, `controlMac`), because training
jobs of others can have access to the row. The manager never unpickles what nodes wrote.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.adapters.dynamodb.rows import Key, Row
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.document import document
from trainmaster.domain.elastic.rendezvous import Control, RendezvousState, Run, SpeedReport, group_of, speed_of
from trainmaster.domain.errors import UnreadableRendezvous
from trainmaster.ports.runtime import Clock

ROW_LIFETIME = timedelta(days=30)
"""Life of a row after the queue's last write. A training job may take 28 days (MaxRuntimeInSeconds), and its nodes
extend the row's life while they run."""
SPEED = "speed"
"""Sort key of the row in which the nodes of a run report their speed."""


@dataclass(frozen=True, slots=True)
class DynamoRendezvousControl:
    """Reads the groups' states and writes the queue's commands to them.

    Args:
        table: the table of the rendezvous.
        clock: for the rows' expiry.
        keys: returns the secret of a run.
    """

    table: Table
    clock: Clock
    keys: Callable[[Run], str]

    def get(self, run: Run) -> RendezvousState | None:
        """Return its state, strongly consistent; see `ports.RendezvousControl`.

        Raises `UnreadableRendezvous` and `NotPermitted` too.
        """
        row = self.table.get(row_of_run(run))
        if row is None or not row.keys() & {"st", "rev", "mac"}:
            return None
        return group_of(_verified(row, run, self.keys(run)))

    def speed(self, run: Run) -> SpeedReport | None:
        """Return the last report of its nodes; see `ports.RendezvousControl`. Raises `NotPermitted` too."""
        row = self.table.get((row_of_run(run)[0], SPEED), consistent=False)
        if row is None:
            return None
        try:
            text, mac = str(row["speed"]["S"]), bytes(row["mac"]["B"])
        except (KeyError, TypeError) as error:
            raise UnreadableRendezvous("The row of a speed is not one that nodes wrote.") from error
        if not hmac.compare_digest(mac, _mac(self.keys(run), f"speed\n{run.name}\n{text}".encode())):
            raise UnreadableRendezvous("The speed is not signed with the secret of its run.")
        return speed_of(text)

    def set(self, run: Run, control: Control) -> None:
        """Store a command for the run's nodes; see `ports.RendezvousControl`. Raises `NotPermitted` too."""
        text = json.dumps(document(control), separators=(",", ":"))
        mac = _mac(self.keys(run), f"control\n{run.name}\n{text}".encode())
        expires = int((self.clock.now() + ROW_LIFETIME).timestamp())
        self.table.set(row_of_run(run), control=text, controlMac=mac, expires=expires)

    def key(self, run: Run) -> str:
        """Return the secret of a run; see `ports.RendezvousControl`. Raises `NotPermitted` too."""
        return self.keys(run)


def row_of_run(run: Run) -> Key:
    """Return the key of a run's row; an execution role's permissions are limited to partitions that begin with it."""
    return (f"{run.role}#{run.name}", "state")


def _verified(row: Row, run: Run, key: str) -> bytes:
    """Return the state in the row. Raises `UnreadableRendezvous` unless nodes of the run have written it."""
    try:
        state, revision, mac = bytes(row["st"]["B"]), int(row["rev"]["N"]), bytes(row["mac"]["B"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableRendezvous("The row of a rendezvous is not one that its nodes wrote.") from error
    if not hmac.compare_digest(mac, _mac(key, f"state\n{run.name}\n{revision}\n".encode() + state)):
        raise UnreadableRendezvous("The state of a rendezvous is not signed with the secret of its run.")
    return state


def _mac(key: str, message: bytes) -> bytes:
    return hmac.new(key.encode(), message, hashlib.sha256).digest()
