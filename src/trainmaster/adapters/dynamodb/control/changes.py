"""The token of the queue's state, derived from rows that are written anyway.

Commits of a pass check the fence, a write of its row that costs no more if it also counts them. Changes of callers have
audit entries, whose keys identify them. The manager's other changes are counted as the next pass begins, and so is the
time that has passed while there are jobs, as estimates change with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from trainmaster.adapters.dynamodb.access.audit import partition
from trainmaster.adapters.dynamodb.rows import CONTROL, Row, keyed, moment
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.paging import read_moment
from trainmaster.ports.store import Changes

CHANGES, CHANGED_AT = "changes", "changedAt"
_NEWEST = 10
"""Audit entries whose keys the token has: an entry may be committed just after one with a later time."""


def read_changes(table: Table, parameter: str, now: datetime) -> Changes:
    """Return the token; see `ports.Store`. Costs one read unit."""
    control = table.get(CONTROL, consistent=False) or {}
    month = partition(now)
    entries, _ = table.query(month, limit=_NEWEST, newest_first=True, consistent=False)
    keys = [row["sk"]["S"] for row in entries]
    number, at = control.get(CHANGES, {}).get("N", ""), control.get(CHANGED_AT, {}).get("S", "")
    text = "\n".join([parameter, month, number, *keys])
    times = [at, *(key.partition("#")[0] for key in keys[:1])]
    newest = max(_moments(times), default=None)
    return Changes(hashlib.sha256(text.encode()).hexdigest()[:24], newest)


def _moments(texts: Iterable[str]) -> Iterator[datetime]:
    """Yield the times of those texts that are times; others are of rows that the queue did not write."""
    for text in texts:
        with suppress(ValueError):
            yield read_moment(text)


def marks(now: datetime) -> Row:
    """Return the attributes of the control row that a change sets, beside its count."""
    return keyed(CONTROL, **{CHANGED_AT: moment(now)})
