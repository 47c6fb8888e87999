"""Finding one job by its name, whatever state it is in, with its whole history. It must not write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainmaster.adapters.dynamodb.rows import (
    ACTIVE_ROWS,
    HISTORY_ROWS,
    PLACE,
    REQUEST_ROWS,
    STATE,
    Row,
    apart_of,
    history_of,
    inactive_places,
    job_key,
    job_of,
)
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.errors import Throttled
from trainmaster.domain.jobs.job import Job

_ROUNDS = 10


def find(table: Table, name: str) -> Job | None:
    """The job as it stood at some moment of this call; None where there is none.

    Its places are read one after the other, the likeliest first, so it may move from one not read yet to one already
    read: then it is looked for again. Raises `Throttled` where it never stands still.
    """
    for _ in range(_ROUNDS):
        live = table.get((STATE, ACTIVE_ROWS + name))
        about: Mapping[str, Row] = {}
        if live is None or apart_of(live):
            about = {row["sk"]["S"]: row for row in table.every(job_key(name)[0], until=REQUEST_ROWS)}
            if "job" not in about:
                return None
        live = live or about.get("ended") or _waiting_or_held(table, about.get(PLACE, about["job"]))
        job = live and _with_history(live, about)
        if job:
            return job
    raise Throttled(f"job {name} keeps moving while it is read")


def _waiting_or_held(table: Table, told: Row) -> Row | None:
    rows = table.get_all(inactive_places(told))
    return max(rows, key=lambda row: int(row["version"]["N"]), default=None)


def _with_history(live: Row, about: Mapping[str, Row]) -> Job | None:
    """The job with the lines that are kept apart; None where they were read before the last of them was written."""
    job, apart = job_of(live), apart_of(live)
    if not apart:
        return job
    parts = [about[key] for key in sorted(about) if key.startswith(HISTORY_ROWS)]
    lines = [line for row in parts for line in history_of(row, job.entry_time)]
    return replace(job, history=(*lines[:apart], *job.history)) if len(lines) >= apart else None
