"""Reading lanes: the waiting jobs at their heads, and on from any place in them.

All lanes lie in one partition, one behind the other, each in queue order. What a pass reads grows with the number of
lanes and with capacity, never with how many jobs wait. It must not write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trainmaster.adapters.dynamodb.rows import WAIT, Row, lane_end, lane_of
from trainmaster.adapters.dynamodb.table import Table

_LARGEST_PAGE = 250
"""Rows of one query in a listing."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The head of a lane.

    Attributes:
        key: first part of its rows' sort keys.
        rows: its first rows, at least one.
        cut: whether it has more.
    """

    key: str
    rows: list[Row]
    cut: bool


def heads(table: Table, first: Callable[[str], int], *, consistent: bool = True) -> list[Lane]:
    """The first rows of every lane, as many as are said of a lane of that name."""
    lanes = _skim(table, first, consistent=consistent)
    return [Lane(key, rows[: first(key) or 1], len(rows) > first(key)) for key, rows in lanes]


def fitted(
    table: Table, lanes: Sequence[Lane], least: Callable[[str], int], wanted: Callable[[Lane], int], *, consistent: bool
) -> list[Lane]:
    """The lanes with as many rows of each as are wanted of it, where it has more than the least that is read anyway."""
    return [
        _fitted(table, lane, wanted(lane), consistent=consistent)
        if lane.cut or len(lane.rows) > least(lane.key)
        else lane
        for lane in lanes
    ]


def rest(table: Table, lane: str, after: str, size: int) -> Iterator[Row]:
    """The lane's rows behind a sort key, strongly consistent, page by page; the first one has this size."""
    return pages(
        lambda after, room: table.query(WAIT, after=after, until=lane_end(lane), limit=room), "sk", after, size
    )


def pages(read: Callable[[str, int], tuple[list[Row], bool]], place: str, after: str, size: int) -> Iterator[Row]:
    """Rows page by page, each page twice the size of the one before: who comes this far is looking for something rare.

    Args:
        read: one page behind a place, of at most so many rows, and whether there may be more.
        place: the attribute that says where a row is.
        after: where to begin.
        size: rows of the first page.
    """
    more = True
    while more:
        rows, more = read(after, size)
        yield from rows
        after, size = rows[-1][place]["S"] if rows else after, min(2 * size, _LARGEST_PAGE)


def _skim(table: Table, first: Callable[[str], int], *, consistent: bool) -> list[tuple[str, list[Row]]]:
    """At least one row more than are wanted of every lane that has more, jumping over the rest of each.

    Which lane comes next shows only when it is read: it is taken to be like the one before.
    """
    lanes: dict[str, list[Row]] = {}
    after, room, more = "", first("") + 1, True
    while more:
        rows, more = table.query(WAIT, after=after, limit=room, consistent=consistent)
        for row in rows:
            lanes.setdefault(lane_of(row), []).append(row)
        if rows:
            lane = lane_of(rows[-1])
            room = first(lane) + 1 - len(lanes[lane])
            after = rows[-1]["sk"]["S"] if room > 0 else lane_end(lane)
            room = room if room > 0 else first(lane) + 1
    return list(lanes.items())


def _fitted(table: Table, lane: Lane, wanted: int, *, consistent: bool) -> Lane:
    if wanted <= len(lane.rows):
        return Lane(lane.key, lane.rows[:wanted], lane.cut or wanted < len(lane.rows))
    rows, more = list(lane.rows), lane.cut
    while more and len(rows) <= wanted:
        page, more = table.query(
            WAIT,
            after=rows[-1]["sk"]["S"],
            until=lane_end(lane.key),
            limit=wanted + 1 - len(rows),
            consistent=consistent,
        )
        rows += page
    return Lane(lane.key, rows[:wanted], len(rows) > wanted)
