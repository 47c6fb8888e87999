"""A job's change as writes, each guarded by the version that the job had before.

`TRANSITIONS` in `domain.jobs` decides whether the change is legal.
"""

from __future__ import annotations

from trainmaster.adapters.dynamodb.reading import read_job
from trainmaster.adapters.dynamodb.rows import (
    Row,
    after_rows,
    archived_count,
    history_row,
    keyed,
    place,
    row_of,
    waiting_place,
    waiting_place_row,
    warm_row,
)
from trainmaster.adapters.dynamodb.table import Action, Guard, Table
from trainmaster.domain.capacity.warm_pools import left_by
from trainmaster.domain.jobs.job import ENDED, Change, Job

MAX_LINES = 40
"""Lines of history in a live row, at most; a longer row makes each write dearer."""
KEPT_LINES = 20
"""Lines that stay in the row when older ones are archived."""


def transition_actions(table: Table, before: Job, after: Job, *, may_spill: bool = True) -> list[Action]:
    """Return the writes that turn one job into the other; a change in place is exactly one.

    Args:
        table: the table to write to.
        before: the job as it was read.
        after: the job as it shall be.
        may_spill: whether there is room for one write more, which archives old history.
    """
    live, spilled = _rows(table, before, after, may_spill=may_spill)
    guard = Guard("version", before.version)
    origin, target = place(before), place(after)
    # The new place needs no guard: a job has one live row, which is guarded at its present place.
    actions = (
        [table.put_action(live, guard)]
        if origin == target
        else [table.delete_action(origin, guard), table.put_action(live)]
    )
    # An ended job never waits again.
    if after.state not in ENDED and waiting_place(after) != waiting_place(before):
        removed = () if after.not_before is not None else ("notBefore",)
        actions.append(table.update_action(waiting_place_row(after), remove=removed))
    if spilled is not None:
        actions.append(table.put_action(spilled))
    if (left := left_by(before, after)) is not None:
        actions.append(table.update_action(warm_row(left)))
    was, now = after_rows(before), after_rows(after)
    actions += [table.delete_action(key) for key in sorted(was - now)]
    return actions + [table.put_action(keyed(key)) for key in sorted(now - was)]


def _rows(table: Table, before: Job, after: Job, *, may_spill: bool) -> tuple[Row, Row | None]:
    """Return the live row, and the row of the lines archived with this change."""
    kept, archived = _kept_lines(table, before)
    lines = (*kept, *after.history[len(before.history) :])
    if len(lines) <= MAX_LINES or not may_spill:
        return row_of(after, lines, archived), None
    old, lines = lines[:-KEPT_LINES], lines[-KEPT_LINES:]
    return row_of(after, lines, archived + len(old)), history_row(after, archived, old)


def _kept_lines(table: Table, before: Job) -> tuple[tuple[Change, ...], int]:
    """Return the lines in the live row, and the number of archived lines.

    A job from `find` has its whole history, one from a snapshot only its row's lines, and neither has the number of
    archived lines. Only the row has it; if that changed meanwhile, the guard fails anyway.
    """
    if len(before.history) < KEPT_LINES:
        return before.history, 0
    live = table.get(place(before))
    return (before.history, 0) if live is None else (read_job(live).history, archived_count(live))
