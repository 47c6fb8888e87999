"""A job's change as the writes that carry it out, each guarded by the version that the job had before.

It must not decide whether the change is legal: that is `domain.job.TRANSITIONS`.
"""

from __future__ import annotations

from trainmaster.adapters.dynamodb.rows import (
    Row,
    after_rows,
    apart_of,
    history_row,
    job_of,
    keyed,
    place,
    row_of,
    warm_row,
    whereabouts,
    whereabouts_row,
)
from trainmaster.adapters.dynamodb.table import Action, Guard, Table
from trainmaster.domain.capacity.warm_pools import left_by
from trainmaster.domain.jobs.job import ENDED, Change, Job

MAX_LINES = 40
"""Lines of history in a live row; a longer one makes every write of it dearer."""
KEPT_LINES = 20
"""Lines that stay in the row when older ones are put apart."""


def moves(table: Table, before: Job, after: Job, *, may_spill: bool = True) -> list[Action]:
    """The writes that turn one into the other; a change in place is exactly one.

    Args:
        table: for which they are.
        before: the job as it was read.
        after: as it is to be.
        may_spill: whether there is room for one write more, which puts old history apart.
    """
    live, spilled = _rows(table, before, after, may_spill=may_spill)
    guard = Guard("version", before.version)
    origin, target = place(before), place(after)
    # The new place needs no guard: a job has one live row, and that is guarded where it is now.
    actions = [table.putting(live, guard)] if origin == target else [table.deleting(origin, guard), table.putting(live)]
    # An ended job never waits again.
    if after.state not in ENDED and whereabouts(after) != whereabouts(before):
        actions.append(table.putting(whereabouts_row(after)))
    if spilled is not None:
        actions.append(table.putting(spilled))
    if (left := left_by(before, after)) is not None:
        actions.append(table.putting(warm_row(left)))
    was, now = after_rows(before), after_rows(after)
    actions += [table.deleting(key) for key in sorted(was - now)]
    return actions + [table.putting(keyed(key)) for key in sorted(now - was)]


def _rows(table: Table, before: Job, after: Job, *, may_spill: bool) -> tuple[Row, Row | None]:
    """The live row, and the row of what is newly kept apart from it."""
    kept, apart = _kept(table, before)
    lines = (*kept, *after.history[len(before.history) :])
    if len(lines) <= MAX_LINES or not may_spill:
        return row_of(after, lines, apart), None
    old, lines = lines[:-KEPT_LINES], lines[-KEPT_LINES:]
    return row_of(after, lines, apart + len(old)), history_row(after, apart, old)


def _kept(table: Table, before: Job) -> tuple[tuple[Change, ...], int]:
    """Which lines the live row has, and how many are apart.

    A job that was found has its whole history, one of a snapshot only what its row has, and neither tells how many
    lines are apart. Only the row does; where that has moved on meanwhile, the guard fails anyway.
    """
    if len(before.history) < KEPT_LINES:
        return before.history, 0
    live = table.get(place(before))
    return (before.history, 0) if live is None else (job_of(live).history, apart_of(live))
