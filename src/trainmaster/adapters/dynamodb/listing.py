"""Listing jobs page by page: active, waiting over all lanes in queue order, held, and ended ones newest first.

Strongly consistent but for the ended ones, which an index lists. It must not write.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from trainmaster.adapters.dynamodb.lanes import Lane, heads, pages, rest
from trainmaster.adapters.dynamodb.rows import (
    ACTIVE_ROWS,
    AFTER,
    HELD,
    STATE,
    due_end,
    finished_at,
    held_key,
    job_of,
    span,
    waiting_key,
)
from trainmaster.adapters.dynamodb.table import MAX_GOT, Table
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.listing import (
    Cursor,
    Filter,
    HeldPlace,
    Part,
    QueuePlace,
    check_limit,
    page_of,
    parts_from,
)
from trainmaster.ports.store import Page


def list_jobs(table: Table, which: Filter, limit: int, cursor: str | None) -> Page:
    """One page. Raises `InvalidRequest`."""
    check_limit(limit)
    jobs = _jobs(table, which, limit, Cursor.read(cursor))
    return Page(*page_of(jobs, which.matches, limit))


def _jobs(table: Table, which: Filter, limit: int, start: Cursor) -> Iterator[Job]:
    """Jobs behind a place, in the order of the listing, read as they are asked for."""
    for part in parts_from(start.part, which.within):
        if part is Part.ACTIVE:
            yield from _active(table, start.queue)
        elif part is Part.WAITING:
            yield from _waiting(table, which, limit, start.queue if start.part is part else None)
        elif part is Part.HELD:
            yield from _held(table, which, limit + 1, start.held)
        else:
            yield from _ended(table, limit + 1, finished_at(start.ended) if start.ended else "")


def _active(table: Table, start: QueuePlace | None) -> list[Job]:
    """All of them are read for any page, to be in order; there are no more than capacity has room for."""
    jobs = (job_of(row) for row in table.every(STATE, **span(ACTIVE_ROWS)))
    return sorted((job for job in jobs if start is None or job.order > start), key=lambda job: job.order)


def _waiting(table: Table, which: Filter, limit: int, start: QueuePlace | None) -> Iterator[Job]:
    # Behind a place the heads say only which lanes there are.
    lanes = heads(table, lambda _: limit + 1 if start is None else 0)
    shown = [lane for lane in lanes if _may_match(lane, which)]
    streams = [_lane(table, lane, limit + 1, start) for lane in shown]
    return heapq.merge(*streams, key=lambda job: job.order)


def _may_match(lane: Lane, which: Filter) -> bool:
    """All jobs of a lane have one share and the same pools, so its first one tells for all."""
    return which.reaches(job_of(lane.rows[0]))


def _lane(table: Table, lane: Lane, size: int, start: QueuePlace | None) -> Iterator[Job]:
    if start is None:
        yield from map(job_of, lane.rows)
        after = lane.rows[-1]["sk"]["S"]
    else:
        after = waiting_key(lane.key, start)
    if lane.cut:
        yield from map(job_of, rest(table, lane.key, after, size))


def _held(table: Table, which: Filter, size: int, start: HeldPlace | None) -> Iterator[Job]:
    if which.parent is not None:
        return _children(table, which.parent, size, start[1] if start else "")
    after, until = held_key(start) if start else "", due_end(which.due) if which.due else ""
    if until and after >= until:
        return iter(())
    rows = pages(lambda after, room: table.query(HELD, after=after, until=until, limit=room), "sk", after, size)
    return map(job_of, rows)


def _children(table: Table, parent: str, size: int, after: str) -> Iterator[Job]:
    """Held jobs that run after this one, by name: whoever waits for another job is held under its bare name."""
    rows = pages(lambda after, room: table.query(AFTER + parent, after=after, limit=room), "sk", after, size)
    while names := [row["sk"]["S"] for row in islice(rows, min(size, MAX_GOT))]:
        children = table.get_all([(HELD, name) for name in names])
        yield from sorted(map(job_of, children), key=lambda job: job.name)


def _ended(table: Table, size: int, before: str) -> Iterator[Job]:
    return map(
        job_of, pages(lambda before, room: table.finished(before=before, limit=room), "finishedAt", before, size)
    )
