"""The callbacks of jobs as rows of a partition of their own: a tick reads those of all jobs with one query."""

from __future__ import annotations

from datetime import datetime

from trainmaster.adapters.dynamodb.reading import read, readable
from trainmaster.adapters.dynamodb.rows import Key, Row, keyed, moment
from trainmaster.adapters.dynamodb.table import Action, Guard, Table
from trainmaster.domain.events.callback import Callback, earliest_due

CALLBACKS = "CALLBACKS"


def callback_actions(table: Table, callback: Callback | None) -> list[Action]:
    """Return the write of a transaction that adds the callback of a new job; empty for None."""
    return [] if callback is None else [table.put_action(_row(callback))]


def read_callback(table: Table, name: str) -> Callback | None:
    """Return the callback of a job; see `ports.Store`."""
    row = table.get(_key(name))
    return None if row is None else read(row, _callback_of)


def read_due(table: Table, now: datetime) -> tuple[Callback, ...]:
    """Return the callbacks whose heartbeats are due; see `ports.Store`."""
    return earliest_due(readable(table.all_rows(CALLBACKS, consistent=False), _callback_of), now)


def replace_callback(table: Table, before: Callback, after: Callback | None) -> bool:
    """Replace a callback, or delete it; see `ports.Store`."""
    guard = Guard("version", before.version)
    if after is None:
        return not table.commit([table.delete_action(_key(before.job), guard)])
    return table.replace(_row(after), guard)


def _key(name: str) -> Key:
    return (CALLBACKS, name)


def _row(callback: Callback) -> Row:
    due = {} if callback.due is None else {"due": moment(callback.due)}
    return keyed(
        _key(callback.job),
        **due,
        recipient=callback.recipient,
        token=callback.token,
        interval=callback.interval,
        version=callback.version,
    )


def _callback_of(row: Row) -> Callback:
    return Callback(
        job=row["sk"]["S"],
        recipient=row["recipient"]["S"],
        token=row["token"]["S"],
        interval=int(row["interval"]["N"]),
        due=datetime.fromisoformat(row["due"]["S"]) if "due" in row else None,
        version=int(row["version"]["N"]),
    )
