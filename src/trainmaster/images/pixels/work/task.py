"""Parameters of a worker: its job, its claim, its time limits, and its access to the queue."""

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
    """An image job as stored at intake.

    Attributes:
        request: the job's request.
        endpoint: `Endpoint.key`.
        variant: the chosen one; "" of an HTTP endpoint.
        part: the requested part of the image.
        cut: its division.
        workers: requests that a region makes at once.
        submitter: the principal that submitted the job; "" if unknown.
        begin_unreported: whether the queue does not know yet that a worker has begun.
    """

    request: ImageRequest
    endpoint: str
    variant: str
    part: Window
    cut: Cut
    workers: int
    submitter: str = ""
    begin_unreported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Access to the queue for workers.

    Attributes:
        runs: the regions and their workers.
        regions: dispatches further regions.
        endpoints: the stored endpoints; None to leave throttling unreported.
        tell: reports that a run, by its name, has progressed by this region, or has begun (`BEGUN`); raises as
            `regions` does.
        clock: the time.
        attempts: maximum tries of a region.
    """

    runs: Runs
    regions: RegionQueue
    endpoints: KnownEndpoints | None
    tell: Callable[[str, int], None]
    clock: Clock
    attempts: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Time limits of a worker.

    Attributes:
        left: returns the seconds until the worker is stopped.
        beat_every: seconds between heartbeats.
        dead_after: seconds of silence after which another worker takes a region over.
        save_every: seconds between saves of progress.
        reserve: seconds before the end from which no tile is begun.
        spare: seconds before the end from which unfinished tiles are given up.
    """

    left: Callable[[], float]
    beat_every: float = 20.0
    dead_after: float = DEAD_AFTER.total_seconds()
    save_every: float = 60.0
    reserve: float = 90.0
    spare: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A region, or the merging, that this worker has claimed.

    Attributes:
        claim: the claim.
        record: as it was when the worker took it.
        queue: access to the queue.
        limits: the worker's time limits.
    """

    claim: Claim
    record: RegionRecord
    queue: Queue
    limits: TimeLimits
