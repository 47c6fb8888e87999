"""What an image job asks of its endpoint, and what becomes of that as its regions finish.

A unit is one concurrent request. Regions that are done give theirs back at once, and ask for nothing ever again. It
must not know jobs, nor where regions are kept.
"""

from __future__ import annotations

from dataclasses import replace

from trainmaster.domain.capacity.units import Demand, Units
from trainmaster.images.domain.endpoint import pool_name
from trainmaster.images.domain.tiling import Cut, Window, load, regions
from trainmaster.images.domain.work import ImageWork, Progress


def work_of(endpoint: str, variant: str, part: Window, cut: Cut, workers: int) -> ImageWork:
    """What an image job that enters is to do; the arguments are those of `ImageWork`.

    Raises `InvalidRequest` for a part that cannot be cut so.
    """
    found = regions(part, cut)
    at_once = load(found, workers)
    return ImageWork(
        endpoint=endpoint,
        variant=variant,
        part=part,
        cut=cut,
        regions=len(found),
        tiles=sum(region.tiles for region in found),
        workers=workers,
        load=at_once,
        left=at_once,
    )


def pool_of(work: ImageWork) -> str:
    """The pool that an image job takes its requests from."""
    return pool_name(work.endpoint, work.variant)


def wanted(work: ImageWork) -> int:
    """Requests that its next attempt asks for; at least one, also where only the merging is left."""
    return max(work.left, 1)


def demand_of(work: ImageWork, cap: int | None = None) -> Demand:
    """What its next attempt asks for; of an image that is larger than its endpoint the whole of it.

    So such an image starts once nothing else runs there: the guide's "single image exception".

    Args:
        work: the job's.
        cap: of its pool; None where that is not known.
    """
    count = wanted(work)
    return Demand(({pool_of(work): count if cap is None else max(min(count, cap), 1)},))


def advanced(work: ImageWork, seen: Progress) -> ImageWork:
    """The work after a report; the same where an earlier one has told more.

    What is left is what a later attempt asks for, so that regions that have failed count: as much as each may make.
    """
    if seen.done + seen.failed < work.done + work.failed:
        return work
    left = min(work.left, seen.left + seen.failed * work.workers)
    return replace(work, done=seen.done, failed=seen.failed, left=left)


def begun(work: ImageWork) -> ImageWork:
    """The work as a new attempt begins: regions that had failed are tried anew."""
    return replace(work, failed=0) if work.failed else work


def still_held(held: Units, seen: Progress) -> dict[str, int]:
    """What an attempt holds on after a report; never more than before it."""
    return {pool: min(count, seen.left) for pool, count in held.items()}
