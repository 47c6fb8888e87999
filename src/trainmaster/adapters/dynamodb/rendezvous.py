"""The rendezvous of elastic jobs as rows of the table; implements `ports.RendezvousControl`.

A run has one row. Its nodes write `st`, the group's state, under `rev`; the queue writes `control`, its commands to
them. So neither's writes meet the other's conditions, and one read shows a node both. Both write `expires`, after which
DynamoDB deletes the row. The manager never unpickles what nodes wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.adapters.dynamodb.rows import Key
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.document import document
from trainmaster.domain.elastic.rendezvous import Control, RendezvousState, group_of
from trainmaster.ports.runtime import Clock

ROW_LIFETIME = timedelta(days=30)
"""Life of a row after the queue's last write. A training job may take 28 days (MaxRuntimeInSeconds), and its nodes
extend the row's life while they run."""


@dataclass(frozen=True, slots=True)
class DynamoRendezvousControl:
    """Reads the groups' states and writes the queue's commands to them.

    Args:
        table: the queue's own.
        clock: for the rows' expiry.
    """

    table: Table
    clock: Clock

    def get(self, run: str) -> RendezvousState | None:
        """Return its state, strongly consistent; see `ports.RendezvousControl`.

        Raises `UnreadableRendezvous` and `NotPermitted` too.
        """
        row = self.table.get(row_of_run(run))
        if row is None or "st" not in row:
            return None
        # Torch's own handler would store other bytes here, as text or in a format that is not ours.
        state = row["st"].get("B", b"")
        return group_of(bytes(state))

    def set(self, run: str, control: Control) -> None:
        """Store a command for the run's nodes; see `ports.RendezvousControl`. Raises `NotPermitted` too."""
        text = json.dumps(document(control), separators=(",", ":"))
        self.table.set(row_of_run(run), control=text, expires=int((self.clock.now() + ROW_LIFETIME).timestamp()))


def row_of_run(run: str) -> Key:
    """Return the key of a run's row; members' permissions are limited to such partitions."""
    return (f"rdzv#{run}", "state")
