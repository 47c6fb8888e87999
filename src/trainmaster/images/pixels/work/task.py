"""What a worker has to know of a job, and what it works with.

It must not do anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainmaster.images.domain.progress import DEAD_AFTER
from trainmaster.images.domain.request import ImageRequest
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.work import Claim, RegionRecord
from trainmaster.images.ports import KnownEndpoints, RegionQueue, Runs
from trainmaster.ports.runtime import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An image job as it was taken in.

    Attributes:
        request: what it asks for.
        endpoint: `Endpoint.key`.
        variant: the one that was chosen; "" of an HTTP endpoint.
        part: what of the image is asked for.
        cut: how that is cut.
        workers: requests that a region makes at once.
        unheard: whether the queue does not know yet that anybody is at work.
    """

    request: ImageRequest
    endpoint: str
    variant: str
    part: Window
    cut: Cut
    workers: int
    unheard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What workers share with the queue.

    Attributes:
        runs: who works on what.
        regions: how workers learn of more.
        endpoints: what is remembered of endpoints; None where nobody is to be told of throttling.
        tell: says that a run, by its name, has come further by this region, or is at work (`BEGUN`); raises as
            `regions` does.
        clock: the time.
        attempts: tries of a region before it has failed for good.
    """

    runs: Runs
    regions: RegionQueue
    endpoints: KnownEndpoints | None
    tell: Callable[[str, int], None]
    clock: Clock
    attempts: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """How long a worker may take.

    Attributes:
        left: seconds until it is stopped.
        beat_every: seconds between two signs of life.
        dead_after: seconds of silence after which another worker takes a region over.
        save_every: seconds after which what is done is saved, should the worker die.
        reserve: seconds before the end at which no tile is begun any more.
        spare: seconds before the end at which tiles that are not done are given up.
    """

    left: Callable[[], float]
    beat_every: float = 20.0
    dead_after: float = DEAD_AFTER.total_seconds()
    save_every: float = 60.0
    reserve: float = 90.0
    spare: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A region, or the merging, that is this worker's.

    Attributes:
        claim: whose it is.
        record: as it was when the worker took it.
        queue: shared with the queue.
        limits: how long the worker may take.
    """

    claim: Claim
    record: RegionRecord
    queue: Queue
    limits: TimeLimits
