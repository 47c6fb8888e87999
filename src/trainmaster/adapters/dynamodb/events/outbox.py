"""The outbox as rows of a partition of its own: one row for each commit, in the order of time.

A pass does not read them, so that an event bus that refuses events does not slow passes down.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from trainmaster.adapters.dynamodb.encoding.compression import inflate
from trainmaster.adapters.dynamodb.reading import readable
from trainmaster.adapters.dynamodb.rows import MAX_TEXT_BYTES, Key, Row, keyed
from trainmaster.adapters.dynamodb.table import Action, Table
from trainmaster.domain.events.types import Entry, OutboxRow, row_order

OUTBOX = "OUTBOX"
_READABLE = 800
"""Bytes of a text that keep its row within one kilobyte, DynamoDB's unit of charge."""


def outbox_actions(table: Table, entries: Sequence[Entry]) -> list[Action]:
    """Return the write of a transaction that adds these entries as one row; empty without any."""
    if not entries:
        return []
    key = (OUTBOX, f"{row_order(entries)}#{table.new_token()}")
    return [table.put_action(_row(key, entries))]


def read_outbox(table: Table, limit: int, after: str) -> tuple[OutboxRow, ...]:
    """Return the next rows, strongly consistent; see `ports.Store`."""
    found: tuple[OutboxRow, ...] = ()
    more = True
    while more and not found:
        rows, more = table.query(OUTBOX, after=after, limit=limit)
        found, after = tuple(readable(rows, _row_of)), rows[-1]["sk"]["S"] if rows else after
    return found


def settle_outbox(table: Table, row: OutboxRow, left: Sequence[Entry]) -> None:
    """Keep the entries of a row that are left, and delete the row if none are; see `ports.Store`."""
    key = (OUTBOX, row.key)
    if left:
        table.put(_row(key, left))
    else:
        table.delete(key)


def _row(key: Key, entries: Sequence[Entry]) -> Row:
    text = json.dumps([[list(entry.to), entry.detail] for entry in entries], separators=(",", ":"))
    return keyed(key, entries=text if len(text) <= _READABLE else zlib.compress(text.encode(), level=9))


def _row_of(row: Row) -> OutboxRow:
    value = row["entries"]
    text = value["S"] if "S" in value else inflate(value["B"], MAX_TEXT_BYTES).decode()
    entries = tuple(Entry(tuple(to), detail) for to, detail, *_ in json.loads(text))
    if not all(isinstance(entry.detail, dict) and isinstance(entry.detail["type"], str) for entry in entries):
        raise TypeError("an entry has no type")
    return OutboxRow(row["sk"]["S"], entries)
