"""What a queued image job is to do, and how far a run of it has come.

A run is an attempt's work at its endpoint, as a training job is for other jobs: it has a name, and reports are about
it. It must not know where regions are kept, nor who works on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trainmaster.domain.jobs.names import STAMP
from trainmaster.images.domain.tiling import Cut, Region, Window

RUN_PREFIX = "image:"
"""What names of runs begin with; no SageMaker name can have a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageWork:
    """What the queue has to know of an image job.

    Attributes:
        endpoint: `Endpoint.key`.
        variant: chosen once, when the job entered; "" of an HTTP endpoint.
        part: what of the image is asked for, as its header told when the job entered.
        cut: how that is cut; with `part` it says what the regions are, whatever the deployment's settings are later.
        regions: how many there are.
        tiles: of all regions.
        workers: requests that each region makes at once.
        load: requests that all its regions make at once.
        left: the same of the regions that are not done: what its next attempt asks for.
        done, failed: regions that are.
    """

    endpoint: str
    variant: str
    part: Window
    cut: Cut
    regions: int
    tiles: int
    workers: int
    load: int
    left: int
    done: int = 0
    failed: int = 0


class RegionState(StrEnum):
    """Where a region is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRecord:
    """A region of a job, or, with `MERGE` as its number, the merging of all.

    Attributes:
        tries: how often a worker has begun with it.
        worker: who is at it; "" for nobody.
        beat_at: when that worker last said that it lives, UTC.
        tiles_done: of its tiles.
        features: found so far.
        reason: why it failed last; "" where it has not.
        pauses: how often in a row it was given back because somebody asked its workers to slow down, without a tile
            done between; each is followed by a longer pause.
    """

    region: Region
    state: RegionState = RegionState.PENDING
    tries: int = 0
    worker: str = ""
    beat_at: datetime | None = None
    tiles_done: int = 0
    features: int = 0
    reason: str = ""
    pauses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run has come.

    Attributes:
        done, failed: regions that are.
        left: requests that those which are neither make at once.
        tiles_done: of all regions.
    """

    done: int = 0
    failed: int = 0
    left: int = 0
    tiles_done: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A worker's right to one region, or to the merging, of one attempt."""

    job: str
    attempt: int
    number: int
    worker: str


MERGE = -1
"""The number of the last step: the regions' results become the image's."""
BEGUN = -2
"""In place of a region's number, where it is told how far a run has come: it is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job's regions as they stand.

    Attributes:
        job: the job's name.
        attempt: number of the attempt that works on them.
        stopped: whether its workers are to leave off.
        records: by number; the merging is the last.
        line: the regions that were not done when this attempt began, in the order in which they are dispatched.
        abreast: most of them that are at work at once; None for all.
        narrowed: the same while the endpoint takes less than when this attempt began; None while it does not.
    """

    job: str
    attempt: int
    stopped: bool = False
    records: Sequence[RegionRecord] = ()
    line: tuple[int, ...] = ()
    abreast: int | None = None
    narrowed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is left of a run when a region of it was ended or given back.

    Attributes:
        left: regions that are neither done nor failed.
        next: what is to be dispatched for that: those that were kept back until now; the merging, where no region is
            left.
    """

    left: int
    next: tuple[int, ...] = ()


def run_name(training_job_name: str) -> str:
    """The name of an image job's attempt, from what a training job would be called."""
    return RUN_PREFIX + training_job_name


def run_of(job: str, attempt: int) -> str:
    """The name of a job's attempt; never cut, as SageMaker's names are, so that it tells both."""
    return run_name(job if attempt == 1 else f"{job}{STAMP}{attempt}")


def run_parts(run: str) -> tuple[str, int]:
    """The job and the number of the attempt that a run's name tells; no job's name has the stamp in it."""
    job, _, number = run.removeprefix(RUN_PREFIX).partition(STAMP)
    return job, int(number) if number.isdecimal() else 1


def is_run(name: str) -> bool:
    """Whether a name is that of an image job's attempt."""
    return name.startswith(RUN_PREFIX)
