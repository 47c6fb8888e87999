"""Lists jobs page by page: active, waiting over all lanes in queue order, held, and ended ones newest first.

Strongly consistent except for ended jobs, which come from an index.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from itertools import islice

from trainmaster.adapters.dynamodb.lanes.heads import Lane, growing_pages, read_heads, rest_of_lane
from trainmaster.adapters.dynamodb.reading import readable_jobs
from trainmaster.adapters.dynamodb.rows import (
    ACTIVE_ROWS,
    AFTER,
    HELD,
    STATE,
    due_end,
    finished_at,
    held_key,
    lane_end,
    moment,
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
    page_of,
    parts_from,
)
from trainmaster.domain.paging import check_limit
from trainmaster.ports.store import Page

_HELD_FOR_EACH = 4
"""Held jobs that are read for each parent; if there are more, each parent's children are looked for alone."""
_ALL_TIMES = "$"
"""A key after those of all jobs that only a time holds: they run after no job."""


def list_jobs(table: Table, which: Filter, limit: int, cursor: str | None) -> Page:
    """Return one page. Raises `InvalidRequest`."""
    check_limit(limit)
    jobs = _jobs(table, which, limit, Cursor.read(cursor))
    return Page(*page_of(jobs, which, limit))


def _jobs(table: Table, which: Filter, limit: int, start: Cursor) -> Iterator[Job]:
    """Yield jobs after a place, in the order of the listing, reading lazily."""
    for part in parts_from(start.part, which.within):
        if part is Part.ACTIVE:
            yield from _active(table, start.queue)
        elif part is Part.WAITING:
            yield from _waiting(table, which, limit, start.queue if start.part is part else None)
        elif part is Part.HELD:
            yield from _held(table, which, limit + 1, start.held)
        else:
            yield from _ended(table, which, limit + 1, finished_at(start.ended) if start.ended else "")


def _active(table: Table, start: QueuePlace | None) -> list[Job]:
    """Return the active jobs in order; every page reads them all, and capacity bounds their number."""
    jobs = readable_jobs(table.all_rows(STATE, **span(ACTIVE_ROWS)))
    return sorted((job for job in jobs if start is None or job.order > start), key=lambda job: job.order)


def _waiting(table: Table, which: Filter, limit: int, start: QueuePlace | None) -> Iterator[Job]:
    # After a cursor, the heads only serve to find the lanes.
    lanes = read_heads(table, lambda _: limit + 1 if start is None else 0)
    shown = [lane for lane in lanes if _may_match(lane, which)]
    streams = [_lane(table, lane, limit + 1, start) for lane in shown]
    return heapq.merge(*streams, key=lambda job: job.order)


def _may_match(lane: Lane, which: Filter) -> bool:
    """Return False if no job of the lane can match: all have one share and the same pools."""
    return which.reaches(lane.jobs[0])


def _lane(table: Table, lane: Lane, size: int, start: QueuePlace | None) -> Iterator[Job]:
    if start is None:
        yield from lane.jobs
        after = lane.last
    else:
        after = waiting_key(lane.key, start)
    if lane.cut:
        yield from rest_of_lane(table, after, lane_end(lane.key), size)


def _held(table: Table, which: Filter, size: int, start: HeldPlace | None) -> Iterator[Job]:
    if which.parent is not None:
        return _children(table, which.parent, size, start[1] if start else "")
    after, until = held_key(start) if start else "", due_end(which.due) if which.due else ""
    if until and after >= until:
        return iter(())
    rows = growing_pages(lambda after, room: table.query(HELD, after=after, until=until, limit=room), "sk", after, size)
    return readable_jobs(rows)


def _children(table: Table, parent: str, size: int, after: str) -> Iterator[Job]:
    """Yield held jobs that run after this one, by name; the sort key of a job held for parents is its bare name."""
    rows = growing_pages(lambda after, room: table.query(AFTER + parent, after=after, limit=room), "sk", after, size)
    while names := [row["sk"]["S"] for row in islice(rows, min(size, MAX_GOT))]:
        children = table.batch_get([(HELD, name) for name in names])
        yield from sorted(readable_jobs(children), key=lambda job: job.name)


def parents_among(table: Table, names: Collection[str]) -> frozenset[str]:
    """Return those of these jobs that held jobs run after, or may; see `ports.Store`.

    A query of one job's children costs a read unit, and so do four rows of held jobs, which are usually few.
    """
    all_of = frozenset(names)
    if len(all_of) < 2:
        return all_of
    rows, more = table.query(HELD, after=_ALL_TIMES, limit=_HELD_FOR_EACH * len(all_of))
    return all_of if more else all_of.intersection(parent for job in readable_jobs(rows) for parent in job.after)


def _ended(table: Table, which: Filter, size: int, before: str) -> Iterator[Job]:
    since = "" if which.ended_since is None else moment(which.ended_since)
    if since and before and before <= since:
        return iter(())
    return readable_jobs(
        growing_pages(
            lambda before, room: table.query_ended(since=since, before=before, limit=room), "finishedAt", before, size
        )
    )
