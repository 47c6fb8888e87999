"""Reads lanes: the waiting jobs at their heads, and on from any place in them.

All lanes are in one partition, one after another, each in queue order. A pass reads rows in proportion to lanes and
capacity, not to the number of waiting jobs, except to find jobs behind those of full users. Where many lanes are known,
parts of the partition are read at the same time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import Any, TypeAlias

from trainmaster.adapters.dynamodb.reading import ReadJobs, readable_jobs
from trainmaster.adapters.dynamodb.rows import WAIT, Row, lane_end, lane_of, waiting_key
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.capacity.read_limits import MAX_JOBS_READ
from trainmaster.domain.jobs.job import Job

_MAX_PAGE_SIZE = 250
"""Rows of one query in a listing, at most."""
PARTS = 4
"""Parts of the partition that are read at the same time, at most."""
_MIN_LANES = 4
"""Lanes of such a part, at least: a query for each."""
ForEach: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Calls a function with each value and returns the answers in order, as `map` does, or threads do."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The head of a lane.

    Attributes:
        key: first part of its rows' sort keys.
        jobs: its first jobs that can be read, at least one.
        cut: whether it has more.
    """

    key: str
    jobs: list[Job]
    cut: bool

    @property
    def last(self) -> str:
        """Sort key of the last one."""
        return waiting_key(self.key, self.jobs[-1].order)


@dataclass(frozen=True, slots=True)
class KnownLanes:
    """The lanes of the last read: the next one reads most lanes with one query each, because it knows their names.

    Attributes:
        keys: first parts of their rows' sort keys, in order.
        sizes: their numbers of jobs; only of lanes that were read to their ends.
    """

    keys: Sequence[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, lanes: Sequence[Lane]) -> KnownLanes:
        """Return the names and sizes of these lanes."""
        return cls([lane.key for lane in lanes], {lane.key: len(lane.jobs) for lane in lanes if not lane.cut})

    def parts(self) -> list[tuple[str, str]]:
        """Return the ends of parts of the partition with about as many lanes each; "" for those of the partition."""
        count = max(min(PARTS, len(self.keys) // _MIN_LANES), 1)
        starts = [self.keys[place * len(self.keys) // count] for place in range(1, count)]
        return list(pairwise(["", *starts, ""]))

    def page_size(self, after: str, first: Callable[[str], int], before: str = "") -> int:
        """Return how many rows to read after a sort key.

        Args:
            after: the sort key.
            first: returns the number of jobs to read of a lane.
            before: the lane before, which an unknown one probably resembles.
        """
        place, usual = bisect_left(self.keys, after), first("")
        if place == len(self.keys):
            return min(first(before), usual) + 1
        # A larger page than the lane would contain rows of the next one.
        lane = self.keys[place]
        return min(first(lane), max(self.sizes.get(lane, MAX_JOBS_READ), usual)) + 1


def read_heads(  # noqa: PLR0913 -- how to read, and what
    table: Table,
    first: Callable[[str], int],
    known: KnownLanes = KnownLanes(),
    *,
    consistent: bool = True,
    jobs_of: ReadJobs = readable_jobs,
    for_each: ForEach = map,
) -> list[Lane]:
    """Return the first jobs of every lane. Rows that cannot be read are left out.

    Args:
        table: the table.
        first: returns the number of jobs for a lane's name.
        known: the lanes of an earlier read.
        consistent: True for a strongly consistent read.
        jobs_of: returns the jobs of rows.
        for_each: reads the parts.
    """

    def read_part(ends: tuple[str, str]) -> list[tuple[str, list[Job]]]:
        return _read_first(table, first, known, jobs_of, ends, consistent=consistent)

    lanes = chain.from_iterable(for_each(read_part, known.parts()))
    return [Lane(key, jobs[: first(key) or 1], len(jobs) > first(key)) for key, jobs in lanes if jobs]


def resize_heads(  # noqa: PLR0913 -- how to read, and how much
    table: Table,
    lanes: Sequence[Lane],
    min_rows: Callable[[str], int],
    wanted: Callable[[Lane], int],
    *,
    consistent: bool,
    jobs_of: ReadJobs,
) -> list[Lane]:
    """Return the lanes with `wanted` jobs each, reading more or cutting, but never below `min_rows`."""
    return [
        _resize_head(table, lane, wanted(lane), jobs_of, consistent=consistent)
        if lane.cut or len(lane.jobs) > min_rows(lane.key)
        else lane
        for lane in lanes
    ]


def rest_of_lane(  # noqa: PLR0913 -- what to read, and how
    table: Table, after: str, until: str, size: int, *, consistent: bool = True, jobs_of: ReadJobs = readable_jobs
) -> Iterator[Job]:
    """Yield a lane's jobs after a sort key and up to another, page by page; the first page has `size` rows."""
    rows = growing_pages(
        lambda after, room: table.query(WAIT, after=after, until=until, limit=room, consistent=consistent),
        "sk",
        after,
        size,
    )
    return jobs_of(rows)


def growing_pages(
    read: Callable[[str, int], tuple[list[Row], bool]], place: str, after: str, size: int
) -> Iterator[Row]:
    """Yield rows page by page, each page twice the size of the one before, because long searches look for rare rows.

    Args:
        read: returns one page after a place, of at most so many rows, and whether there may be more.
        place: the attribute with a row's place.
        after: the place before the first row.
        size: rows of the first page.
    """
    more = True
    while more:
        rows, more = read(after, size)
        yield from rows
        after, size = rows[-1][place]["S"] if rows else after, min(2 * size, _MAX_PAGE_SIZE)


def _read_first(  # noqa: PLR0913 -- how to read, and what
    table: Table,
    first: Callable[[str], int],
    known: KnownLanes,
    jobs_of: ReadJobs,
    ends: tuple[str, str],
    *,
    consistent: bool,
) -> list[tuple[str, list[Job]]]:
    """Read at least one job more than `first` of every longer lane between two keys, and skip the rest of each.

    The next lane's name is unknown until it is read, so the page size is that for the next known one.
    """
    lanes: dict[str, list[Job]] = {}
    (after, end), more = ends, True
    room = known.page_size(after, first)
    while more and not (end and after >= end):
        rows, more = table.query(WAIT, after=after, limit=room, consistent=consistent)
        if end and rows and rows[-1]["sk"]["S"] >= end:
            rows, more = [row for row in rows if row["sk"]["S"] < end], False
        for lane, together in groupby(rows, key=lane_of):
            lanes.setdefault(lane, []).extend(jobs_of(together))
        if rows:
            lane = lane_of(rows[-1])
            room = first(lane) + 1 - len(lanes[lane])
            after = rows[-1]["sk"]["S"] if room > 0 else lane_end(lane)
            room = room if room > 0 else known.page_size(after, first, lane)
    return list(lanes.items())


def _resize_head(table: Table, lane: Lane, wanted: int, jobs_of: ReadJobs, *, consistent: bool) -> Lane:
    if wanted <= len(lane.jobs):
        return Lane(lane.key, lane.jobs[:wanted], lane.cut or wanted < len(lane.jobs))
    jobs, more, after = list(lane.jobs), lane.cut, lane.last
    while more and len(jobs) <= wanted:
        page, more = table.query(
            WAIT,
            after=after,
            until=lane_end(lane.key),
            limit=wanted + 1 - len(jobs),
            consistent=consistent,
        )
        jobs += jobs_of(page)
        after = page[-1]["sk"]["S"] if page else after
    return Lane(lane.key, jobs[:wanted], len(jobs) > wanted)
