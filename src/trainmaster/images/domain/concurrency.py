"""How many regions of a run are at work at once, and which is next when one ends.

An image that asks for more than its endpoint takes has the whole endpoint, but must not ask more of it than that. So
only as many of its regions are dispatched as may be at work, and each that ends calls the next in line. Which those are
follows from how many have ended: nothing is written down, two that end at once call each other's rather than none, and
whoever calls again after a crash calls the same ones. It must not know where regions are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainmaster.images.domain.leases import SETTLED
from trainmaster.images.domain.work import MERGE, ImageWork, RegionRecord, Rest, Run

Line = tuple[int, ...]
"""Numbers of regions in the order in which they are called."""


def abreast_of(work: ImageWork, held: int) -> int | None:
    """Most regions at work at once under an attempt that holds so many requests; None where all fit.

    At least one: where an endpoint takes less than a region makes, its worker makes fewer (`requests_of`).
    """
    return None if held >= work.needed else max(1, held // work.workers)


def requests_of(work: ImageWork, held: int) -> int:
    """Requests that a region makes at once under an attempt that holds so many."""
    return max(1, min(work.workers, held))


def in_line(records: Iterable[RegionRecord]) -> Line:
    """The regions that an attempt is to work on, as it begins."""
    numbers = (each.region.number for each in records if each.state not in SETTLED)
    return tuple(sorted(number for number in numbers if number != MERGE))


def limiting(abreast: int | None, line: Line) -> int | None:
    """How many are at work at once, where that keeps anybody back; else None."""
    return None if abreast is None or abreast >= len(line) else abreast


def narrowed_to(work: ImageWork, abreast: int, cap: int) -> int | None:
    """How many of an attempt's regions an endpoint takes at once that takes less than when it began; None for as many.

    Args:
        work: the job's.
        abreast: how many it began with.
        cap: requests that image jobs may make of the endpoint now.
    """
    fitting = max(1, cap // work.workers)
    return fitting if fitting < abreast else None


def window(abreast: int | None, narrowed: int | None) -> int | None:
    """How many are at work at once now; None for all."""
    return abreast if narrowed is None else narrowed


def called(run: Run) -> Line:
    """The regions that may be at work or have been: the first of the line, and one more for each that has ended.

    While the run is narrowed they are fewer. Those that were called before stay at work, and each that ends calls one
    of them again, which is harmless, until as few are at work as may be.
    """
    width = window(run.abreast, run.narrowed)
    if width is None:
        return run.line
    members = set(run.line)
    ended = sum(each.region.number in members and each.state in SETTLED for each in run.records)
    return run.line[: width + ended]


def rest(line: Line, abreast: int | None, before: int, after: int) -> Rest:
    """What a region's end leaves to do.

    Args:
        line: of the attempt.
        abreast: most of them at work at once.
        before: regions that were neither done nor failed, before the end or earlier.
        after: how many are, after it or later. What others have ended between the two is called twice.
    """
    if after == 0:
        return Rest(left=0, next=(MERGE,))
    if abreast is None:
        return Rest(left=after)
    first = abreast + len(line) - before
    return Rest(left=after, next=line[first : first + before - after])
