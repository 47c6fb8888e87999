"""Finds one job by name, in any state, with its whole history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from trainmaster.adapters.dynamodb.access.purging import is_purged
from trainmaster.adapters.dynamodb.reading import read, read_job
from trainmaster.adapters.dynamodb.rows import (
    ACTIVE_ROWS,
    HISTORY_ROWS,
    PLACE,
    REQUEST_ROWS,
    STATE,
    Row,
    archived_count,
    history_of,
    inactive_keys,
    job_key,
)
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.errors import Throttled
from trainmaster.domain.jobs.job import Job

_ROUNDS = 10


def find(table: Table, name: str) -> Job | None:
    """Return the job as it stood at some moment of this call; None if it does not exist.

    The call reads the places of a job one after another, the likeliest first, so the job may move from an unread place
    to one already read; then the search starts again. Raises `Throttled` if it keeps moving, and `UnreadableRow` if
    its rows are damaged.
    """
    for _ in range(_ROUNDS):
        live = table.get((STATE, ACTIVE_ROWS + name))
        about: Mapping[str, Row] = {}
        if live is None or read(live, archived_count):
            about = {row["sk"]["S"]: row for row in table.all_rows(job_key(name)[0], until=REQUEST_ROWS)}
            if "job" not in about or is_purged(about["job"]):
                return None
        live = live or about.get("ended") or _waiting_or_held(table, about.get(PLACE, about["job"]))
        job = live and _with_history(live, about)
        if job:
            return job
    raise Throttled(f"job {name} changes state faster than it can be read")


def _waiting_or_held(table: Table, place: Row) -> Row | None:
    rows = table.batch_get(read(place, inactive_keys))
    return max(rows, key=lambda row: read(row, _version), default=None)


def _version(row: Row) -> int:
    return int(row["version"]["N"])


def _with_history(live: Row, about: Mapping[str, Row]) -> Job | None:
    """Return the job with its archived lines; None if they were read before the last one was written."""
    job, archived = read_job(live), read(live, archived_count)
    if not archived:
        return job
    parts = [about[key] for key in sorted(about) if key.startswith(HISTORY_ROWS)]
    lines = [line for row in parts for line in read(row, partial(history_of, entry=job.entry_time))]
    return replace(job, history=(*lines[:archived], *job.history)) if len(lines) >= archived else None
