"""The rendezvous of elastic jobs as rows of the table; implements `ports.RendezvousControl`.

A run has one row. Its nodes write `st`, the state of the group, under `rev`; the queue writes `control`, what it asks
of them. So neither's writes meet the other's conditions, and one read shows a node both. Both write `expires`, after
which DynamoDB deletes the row. This must not write what is the nodes', nor run or unpickle anything that they wrote.
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

KEPT = timedelta(days=30)
"""How long a row stays after the queue's last word; a training job may take 28 days (MaxRuntimeInSeconds), and its
nodes put the end off while they live."""


@dataclass(frozen=True, slots=True)
class DynamoRendezvousControl:
    """Reads groups, and tells them what to do.

    Args:
        table: the queue's own.
        clock: says when a row expires.
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
        # Torch's own handler would keep other bytes here: text, or something that is no state of ours either.
        state = row["st"].get("B", b"")
        return group_of(bytes(state))

    def set(self, run: str, control: Control) -> None:
        """Ask this of its nodes; see `ports.RendezvousControl`. Raises `NotPermitted` too."""
        text = json.dumps(document(control), separators=(",", ":"))
        self.table.set(row_of_run(run), control=text, expires=int((self.clock.now() + KEPT).timestamp()))


def row_of_run(run: str) -> Key:
    """Where a run's row is; members' permissions are limited to such partitions."""
    return (f"rdzv#{run}", "state")
