"""Audit entries as rows: two partitions for each month, in the order of time. No row is ever written twice.

The manager may write only to the partitions of adoptions, and so cannot replace an entry of a caller.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from trainmaster.adapters.dynamodb.reading import read_or, readable
from trainmaster.adapters.dynamodb.rows import Row, keyed, moment
from trainmaster.adapters.dynamodb.table import ABSENT, Action, Table
from trainmaster.domain.access.audit import AuditAction, AuditEntry
from trainmaster.domain.access.audit_listing import (
    AuditFilter,
    AuditPage,
    AuditPlace,
    audit_page,
    check_listing,
    read_cursor,
)
from trainmaster.domain.compat import UTC
from trainmaster.domain.document import document, value_of
from trainmaster.domain.paging import MAX_EXAMINED, read_moment

AUDIT = "AUDIT#"
"""Prefix of the partitions; the functions' policies name it."""
ADOPTED = f"{AUDIT}adopted#"
"""Prefix of the partitions of what the manager adopts during a restore."""
_FIRST_PAGE = 100


def audit_actions(table: Table, entries: Sequence[AuditEntry]) -> list[Action]:
    """Return the writes of a transaction that add these entries."""
    return [table.put_action(audit_row(entry, table.new_token()), ABSENT) for entry in entries]


def audit_row(entry: AuditEntry, id_: str) -> Row:
    """Return the row of an entry; `id_` tells it from others of its microsecond."""
    values = document(entry, sparse=True)
    values.pop("expires", None)
    time = {} if entry.expires is None else {"expires": int(entry.expires.timestamp())}
    key = (partition(entry.at, ADOPTED if entry.action is AuditAction.ADOPT else AUDIT), _key((entry.at, id_)))
    return keyed(key, entry=json.dumps(values, separators=(",", ":")), **time)


def partition(at: datetime, prefix: str = AUDIT) -> str:
    """Return the partition of the entries of a month."""
    return f"{prefix}{at.astimezone(UTC):%Y-%m}"


def list_audit(table: Table, which: AuditFilter, limit: int, cursor: str | None) -> AuditPage:
    """Return one page; see `ports.Store`. Raises `InvalidRequest`."""
    check_listing(limit, which)
    return audit_page(_entries(table, which, limit, read_cursor(cursor)), which, limit)


def _entries(
    table: Table, which: AuditFilter, limit: int, start: AuditPlace | None
) -> Iterator[tuple[AuditPlace, AuditEntry | None]]:
    """Yield the entries before a place, newest first, month by month, reading lazily."""
    top = moment(which.until) if start is None else min(moment(which.until), _key(start))
    newest = which.until if start is None else min(which.until, start[0])
    if top <= moment(which.since):
        return
    size = limit + 1 if which.job == which.who == which.action else max(limit + 1, _FIRST_PAGE)
    for month in _months(newest, which.since):
        parts = (_rows(table, partition(month, each), moment(which.since), top, size) for each in (AUDIT, ADOPTED))
        rows = heapq.merge(*parts, key=lambda row: str(row["sk"]["S"]), reverse=True)
        for row, place in readable(rows, lambda row: (row, _place_of(row))):
            yield place, read_or(row, _entry_of, None)


def _rows(table: Table, part: str, since: str, until: str, size: int) -> Iterator[Row]:
    """Yield the rows of a partition between two keys, newest first; the key `until` may exist and is left out."""
    more = True
    while more:
        rows, more = table.query(part, after=since, until=until, limit=size, newest_first=True)
        yield from (row for row in rows if row["sk"]["S"] != until)
        until = rows[-1]["sk"]["S"] if rows else until
        size = min(size * 2, MAX_EXAMINED)


def _months(newest: datetime, oldest: datetime) -> Iterator[datetime]:
    """Yield the months from the newest time back to the oldest, each as a time in it."""
    month = newest.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    last = partition(oldest)
    while partition(month) >= last:
        yield month
        month = (month - timedelta(days=1)).replace(day=1)


def _key(place: AuditPlace) -> str:
    return f"{moment(place[0])}#{place[1]}"


def _place_of(row: Row) -> AuditPlace:
    time, _, id_ = row["sk"]["S"].partition("#")
    return read_moment(time), id_


def _entry_of(row: Row) -> AuditEntry | None:
    expires = {"expires": datetime.fromtimestamp(int(row["expires"]["N"]), UTC)} if "expires" in row else {}
    values = json.loads(row["entry"]["S"])
    changes = {side: dict(values.pop(side, {})) for side in ("before", "after")}
    return value_of(AuditEntry, values, **changes, **expires)
