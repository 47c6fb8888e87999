"""Number of a run's regions at work at once, and the next region when one ends.

An image that needs more requests than its endpoint accepts gets the whole endpoint and must not exceed it. So only as
many of its regions are dispatched as may work at once, and each that ends dispatches the next in line. The number of
ended regions alone determines that next region: nothing is stored, two regions that end at once dispatch both
successors twice rather than none, and a worker that repeats the call after a crash dispatches the same regions.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainmaster.images.domain.leases import SETTLED
from trainmaster.images.domain.work import MERGE, ImageWork, RegionRecord, Rest, Run

Line = tuple[int, ...]
"""Numbers of regions in the order of their dispatch."""


def concurrency_of(work: ImageWork, held: int) -> int | None:
    """Return the maximum of regions at work under an attempt that holds so many requests; None if all fit.

    At least one: if an endpoint takes fewer requests than a region makes, its worker makes fewer (`requests_of`).
    """
    return None if held >= work.needed else max(1, held // work.workers)


def requests_of(work: ImageWork, held: int) -> int:
    """Return the requests that a region makes at once under an attempt that holds so many."""
    return max(1, min(work.workers, held))


def in_line(records: Iterable[RegionRecord]) -> Line:
    """Return the regions that an attempt has to work on as it begins."""
    numbers = (each.region.number for each in records if each.state not in SETTLED)
    return tuple(sorted(number for number in numbers if number != MERGE))


def effective_concurrency(concurrency: int | None, line: Line) -> int | None:
    """Return the limit on regions at work if it is below the length of the line; else None."""
    return None if concurrency is None or concurrency >= len(line) else concurrency


def widened_concurrency(work: ImageWork, concurrency: int, held: int) -> int | None:
    """Return the limit on an attempt's regions if it holds more requests than when it began; None if it does not.

    Args:
        work: the job's.
        concurrency: the attempt's limit so far.
        held: requests that it holds now.
    """
    fitting = held // work.workers
    return fitting if fitting > concurrency else None


def narrowed_concurrency(work: ImageWork, concurrency: int, cap: int) -> int | None:
    """Return the limit on an attempt's regions if its endpoint takes less than when it began; None if it does not.

    Args:
        work: the job's.
        concurrency: the attempt's first limit.
        cap: requests that image jobs may make of the endpoint now.
    """
    fitting = max(1, cap // work.workers)
    return fitting if fitting < concurrency else None


def window(concurrency: int | None, narrowed: int | None) -> int | None:
    """Return the current limit on regions at work; None for no limit."""
    return concurrency if narrowed is None else narrowed


def called(run: Run) -> Line:
    """Return the regions dispatched so far: the first of the line, and one more for each that has ended.

    A narrowed run returns fewer. Regions dispatched before stay at work, and each that ends dispatches one of them
    again, which is harmless, until the limit holds.
    """
    width = window(run.concurrency, run.narrowed)
    if width is None:
        return run.line
    members = set(run.line)
    ended = sum(each.region.number in members and each.state in SETTLED for each in run.records)
    return run.line[: width + ended]


def rest(line: Line, concurrency: int | None, before: int, after: int) -> Rest:
    """Return the regions that are left after one ends, and those to dispatch now.

    Args:
        line: of the attempt.
        concurrency: limit on regions at work.
        before: unsettled regions before this end, or earlier.
        after: unsettled regions after it, or later. Successors of regions that end in between are dispatched twice.
    """
    if after == 0:
        return Rest(left=0, next=(MERGE,))
    if concurrency is None:
        return Rest(left=after)
    first = concurrency + len(line) - before
    return Rest(left=after, next=line[first : first + before - after])
