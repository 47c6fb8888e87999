"""Work of a queued image job, and the progress of its runs.

A run is an attempt's work at its endpoint, as a training job is for other jobs: it has a name, and observations refer
to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, ClassVar

from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.jobs.work import OTHER_KINDS, Progress, Work
from trainmaster.domain.requests.fields import shown
from trainmaster.images.domain import pace
from trainmaster.images.domain.endpoint import POOL_PREFIX, is_url, pool_name, pool_parts
from trainmaster.images.domain.tiling import Cut, Region, Window, load, regions

MAX_POOL_BYTES = 700
"""Length of the name of an endpoint's pool; no job waits for a longer one."""
RUN_PREFIX = "image:"
"""Prefix of the names of runs; no SageMaker name can have a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageWork(Work):
    """Work of an image job as the queue knows it.

    Attributes:
        endpoint: `Endpoint.key`.
        variant: chosen once, when the job entered; "" of an HTTP endpoint.
        part: requested part of the image, by its header when the job entered.
        cut: its division; with `part` it fixes the regions, even if the deployment's settings change later.
        regions: their number.
        tiles: of all regions.
        workers: requests that each region makes at once.
        load: requests that all its regions make at once.
        left: the same of the regions that are not done: the demand of the next attempt.
        done, failed: number of such regions.
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

    kind: ClassVar[str] = "image"
    pool_prefix: ClassVar[str] = POOL_PREFIX
    at_work_reason: ClassVar[str] = "its regions are being worked on"
    request_field: ClassVar[str] = "imageProcessor.name"

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> ImageWork:
        """Return the work of such a list; see `values`."""
        endpoint, variant, where, how, *counts = values
        regions, tiles, workers, load, left, done, failed, *_ = (*counts, 0, 0, 0, 0, 0, 0, 0)
        return cls(
            endpoint=endpoint,
            variant=variant,
            part=Window(*where),
            cut=Cut(region=(how[0], how[1]), tile=(how[2], how[3]), overlap=(how[4], how[5])),
            regions=regions,
            tiles=tiles,
            workers=workers,
            load=load,
            left=left,
            done=done,
            failed=failed,
        )

    def values(self) -> list[Any]:
        """Return endpoint and variant, the part of the image, its cut, then counts without zeros at the end."""
        part, cut = self.part, self.cut
        counts = [self.regions, self.tiles, self.workers, self.load, self.left, self.done, self.failed]
        while counts and not counts[-1]:
            counts.pop()
        where = [part.column, part.row, part.width, part.height]
        return [self.endpoint, self.variant, where, [*cut.region, *cut.tile, *cut.overlap], *counts]

    @classmethod
    def pool_problem(cls, pool: str) -> tuple[str, str] | None:
        """Return the problem of an endpoint pool's name; settings may name endpoints before jobs need them."""
        key, variant = pool_parts(pool)
        if key and (variant or is_url(key)) and pool.isprintable() and len(pool.encode()) <= MAX_POOL_BYTES:
            return None
        hint = "Name it endpoint/<name>/<variant>, or endpoint/<url> for a model behind a URL: see GET /pools."
        return f"{shown(pool)} is not the pool of an endpoint.", hint

    @property
    def pool(self) -> str:
        """The pool of its endpoint's variant."""
        return pool_name(self.endpoint, self.variant)

    @property
    def needed(self) -> int:
        """Requests that its next attempt asks for; at least one, also if only the merging is left."""
        return max(self.left, 1)

    @property
    def settled(self) -> int:
        """Regions that are done or failed."""
        return self.done + self.failed

    @property
    def completed(self) -> int:
        """Regions that are done."""
        return self.done

    @property
    def similarity(self) -> Hashable:
        """Its tiles, and the requests that it can make at once."""
        return self.tiles, self.load

    @property
    def run_time_classes(self) -> tuple[str, ...]:
        """By endpoint and load, by endpoint, and all image jobs."""
        return _run_time_classes(self.pool, self.load)

    def demand(self, cap: int | None = None) -> Demand:
        """Return the demand of the next attempt; an image larger than its endpoint demands the whole endpoint.

        Such an image starts once nothing else runs there: the guide's "single image exception".
        """
        return Demand(({self.pool: self.needed if cap is None else max(min(self.needed, cap), 1)},))

    def restarted(self) -> ImageWork:
        """Return the work with failed regions to be tried again."""
        return replace(self, failed=0) if self.failed else self

    def advanced(self, seen: Progress) -> ImageWork:
        """Return the work after a report; the same if an earlier report showed more progress.

        A later attempt demands the remaining requests, so failed regions count with all that each may make.
        """
        if seen.done + seen.failed < self.settled:
            return self
        left = min(self.left, seen.left + seen.failed * self.workers)
        return replace(self, done=seen.done, failed=seen.failed, left=left)

    def note_since(self, before: Work) -> str:
        """Return a line when the first region has failed, and when the last one is done or failed."""
        failed_before = before.settled - before.completed
        if self.settled == self.regions and before.settled < self.settled:
            failed = f", {self.failed} failed" if self.failed else ""
            return f"{self.done} of {self.regions} regions done{failed}; the results are being merged"
        if self.failed and not failed_before:
            return f"{self.failed} of {self.regions} regions failed so far"
        return ""

    @classmethod
    def run_name(cls, job: str, attempt: int) -> str:
        """Return `run_of` the job's attempt."""
        return run_of(job, attempt)

    def length(self, given: int) -> float:
        """Return its turns relative to the standard job."""
        return pace.turns(self, given) / pace.STANDARD

    def prior_run_time(self, given: int, elapsed: float, quantile: float) -> float:
        """Return the expected seconds by its turns alone."""
        return pace.unknown(pace.turns(self, given), elapsed, quantile)

    def seconds_left(self, given: int, so_far: float, quantile: float) -> float | None:
        """Return the seconds left by the regions that are done; None if none is."""
        return pace.seconds_left(self, given, so_far, quantile)

    def details(self, expected_end: datetime | None) -> dict[str, Any]:
        """Return the endpoint, the load and the progress; `images.handlers.views.ImageDetails` documents them."""
        return {
            "endpoint": self.endpoint,
            "variant": self.variant or None,
            "load": self.load,
            "loadLeft": self.left,
            "tiles": self.tiles,
            "regions": {"total": self.regions, "done": self.done, "failed": self.failed},
            "expectedEnd": expected_end,
        }


def work_of(endpoint: str, variant: str, part: Window, cut: Cut, workers: int) -> ImageWork:
    """Return the work of an image job that enters; the arguments are those of `ImageWork`.

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


def image_work(job: Job) -> ImageWork | None:
    """Return the work of an image job; None for a job of another kind."""
    return job.work if isinstance(job.work, ImageWork) else None


@lru_cache(maxsize=4096)
def _run_time_classes(pool: str, load: int) -> tuple[str, ...]:
    where = f"{OTHER_KINDS}{hashlib.sha256(pool.encode()).hexdigest()[:8]}"
    return f"{where}|{load.bit_length()}", where, OTHER_KINDS


class RegionState(StrEnum):
    """States of a region."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRecord:
    """A region of a job, or, with `MERGE` as its number, the merging of all.

    Attributes:
        tries: times that a worker has begun it.
        worker: the worker that has it; "" if none.
        beat_at: time of that worker's last heartbeat, UTC.
        tiles_done: of its tiles.
        features: found so far.
        reason: of the last failure; "" if there was none.
        pauses: times in a row that it was given back because its workers were throttled, without a tile done between;
            each is followed by a longer pause.
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
class RunProgress(Progress):
    """The progress of a run of regions.

    Attributes:
        tiles_done: of all regions.
    """

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
"""Takes the place of a region's number in a progress message: the run has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The regions of a job and their states.

    Attributes:
        job: the job's name.
        attempt: number of the attempt that works on them.
        stopped: whether its workers have to stop.
        records: by number; the merging is the last.
        line: the regions that were not done when this attempt began, in the order of their dispatch.
        concurrency: maximum of them at work at once, by the requests that the job holds; None for all.
        narrowed: the same while the endpoint takes less than that; None otherwise.
    """

    job: str
    attempt: int
    stopped: bool = False
    records: Sequence[RegionRecord] = ()
    line: tuple[int, ...] = ()
    concurrency: int | None = None
    narrowed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Remaining regions of a run after one of them was ended or given back.

    Attributes:
        left: regions that are neither done nor failed.
        next: regions to dispatch now that were held back; the merging if no region is left.
    """

    left: int
    next: tuple[int, ...] = ()


def run_name(training_job_name: str) -> str:
    """Return the name of an image job's attempt, from the name that a training job would have."""
    return RUN_PREFIX + training_job_name


def run_of(job: str, attempt: int) -> str:
    """Return the name of a job's attempt; it is never shortened, unlike SageMaker's names, so that it can be parsed."""
    return run_name(job if attempt == 1 else f"{job}{STAMP}{attempt}")


def run_parts(run: str) -> tuple[str, int]:
    """Return the job and the number of the attempt of a run's name; no job's name contains the stamp."""
    job, _, number = run.removeprefix(RUN_PREFIX).partition(STAMP)
    return job, int(number) if number.isdecimal() else 1


def is_run(name: str) -> bool:
    """Return whether a name is that of an image job's attempt."""
    return name.startswith(RUN_PREFIX)
