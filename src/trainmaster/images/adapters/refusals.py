"""Refused requests for image jobs as rows of the table; implements `images.ports.Refusals`.

Each has a row in a partition of its own, so it does not reserve the name. DynamoDB deletes it some time after it
expires.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainmaster.adapters.dynamodb.rows import Key, keyed
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.compat import UTC
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.domain.refusal import RETENTION, Refusal
from trainmaster.ports.runtime import Clock


@dataclass(frozen=True, slots=True)
class DynamoRefusals:
    """Stores refusals for a while.

    Args:
        table: the queue's own.
        clock: decides when a row expires.
    """

    table: Table
    clock: Clock

    def note(self, refusal: Refusal) -> None:
        """Store it; see `images.ports.Refusals`."""
        told = {"reason": refusal.reason[:MAX_REASON_LENGTH], "field": refusal.field, "at": refusal.at.isoformat()}
        self.table.put(keyed(row_of(refusal.job), **told, expires=int((refusal.at + RETENTION).timestamp())))

    def of(self, job: str) -> Refusal | None:
        """Return the newest of that name; see `images.ports.Refusals`."""
        row = self.table.get(row_of(job))
        if row is None or datetime.fromtimestamp(int(row["expires"]["N"]), UTC) <= self.clock.now():
            return None
        at = datetime.fromisoformat(row["at"]["S"])
        return Refusal(job=job, at=at, reason=row["reason"]["S"], field=row["field"]["S"])


def row_of(job: str) -> Key:
    """Return the key of the row for a refusal of that name."""
    return (f"refused#{job}", "refusal")
