"""What resizing an elastic job costs and brings, which sizes it may have next, and from when on.

Growing is worth while where the instances that come do more work than the pause of those that are there costs; it
waits until a size has lasted for a while (HyperPod: scaling timeout, snooze after a restart). A lost member is
replaced at once, or the job goes down to a legal size. It must not know what is free, nor who else wants it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.run_times import History

IN_PLACE_SECONDS = 10.0
"""Seconds for which a job stands still when members join or leave: 5 were measured for torch elastic, and 5 of work."""
RETRY_WAIT = timedelta(minutes=10)
"""After a growth for which there were no instances, the next waits so long; doubled with every one in a row."""
MAX_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class ShrinkCandidate:
    """A job that may give some of its instances and run on.

    Attributes:
        job: the job.
        pool: where.
        size: instances that it has, or is to have by what the plan has decided.
        cost: accelerator-seconds that giving any costs; 0 where the plan has it give some already.
        equal: whether the newcomer does not outrank it, and has it give only by the policy's leave.
    """

    job: Job
    pool: str
    size: int
    cost: float
    equal: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Smaller sizes that it may have, the largest first."""
        elastic = self.job.elastic
        return () if elastic is None else tuple(size for size in reversed(elastic.sizes) if size < self.size)

    @property
    def max_freed(self) -> int:
        """Most instances that it can give."""
        return self.size - min(self.sizes, default=self.size)


def elastic_of(job: Job) -> tuple[Elastic, Attempt] | None:
    """Bounds and attempt of an elastic job that holds units of one pool; None for any other."""
    if job.elastic is None or job.attempt is None or len(job.units) != 1:
        return None
    return job.elastic, job.attempt


def can_shrink(job: Job) -> bool:
    """Whether the job could be told now to give instances.

    It is at work and nobody stops it; or it is growing, which can be turned round unless somebody else carries it out.
    """
    found = elastic_of(job)
    if found is None or found[1].stop_asked_at is not None or not found[1].launched:
        return False
    elastic, attempt = found
    if attempt.base_ended_at is not None or attempt.size <= elastic.least:
        return False
    turns = attempt.resizing is not None and attempt.resizing.grows and elastic.hook is not Hook.CUSTOM
    return turns if job.state is JobState.RESIZING else job.state is JobState.RUNNING


def can_grow(job: Job) -> bool:
    """Whether the job is at work, with nothing else going on."""
    found = elastic_of(job)
    if found is None or job.state is not JobState.RUNNING or job.stop_requested:
        return False
    attempt = found[1]
    at_work = attempt.launched and attempt.started_at is not None
    return at_work and attempt.stop_asked_at is None and attempt.base_ended_at is None


def ready_at(elastic: Elastic, job: Job, attempt: Attempt) -> datetime:
    """From when on a job at work may grow into idle capacity.

    Its size has to have lasted for the scaling timeout; after a restart or a resize the snooze has to be over.
    """
    began = attempt.started_at or attempt.created_at
    sized = attempt.sized_at or began
    ready = max(began, sized) + max(elastic.scaling_timeout, _after_failures(job))
    if attempt.sized_at is not None:
        ready = max(ready, attempt.sized_at + elastic.scale_up_snooze)
    return max(ready, began + elastic.scale_up_snooze) if job.past else ready


def larger_sizes(elastic: Elastic, size: int, most: int | None = None) -> tuple[int, ...]:
    """Sizes above this that the job may have, the largest first, up to `most`."""
    limit = elastic.most if most is None else min(most, elastic.most)
    return tuple(each for each in reversed(elastic.sizes) if size < each <= limit)


def repair_size(elastic: Elastic, attempt: Attempt, now: datetime) -> int | None:
    """The size to go down to, where what is left is no legal one and no replacement came in time; else None."""
    waits = attempt.faulty_since is not None and now < attempt.faulty_since + elastic.faulty_scale_down_timeout
    return None if waits or attempt.size in elastic.sizes else elastic.at_most(attempt.size)


def cost_of(job: Job, history: History, pools: Mapping[str, Pool], now: datetime) -> float:
    """Accelerator-seconds that any resize of an elastic job costs: its pause, and work that is done again."""
    size = 0 if job.attempt is None else job.attempt.size
    return pause_of(job, history, now) * _accelerators(job, pools) * size


def pause_of(job: Job, history: History, now: datetime) -> float:
    """Seconds for which a resize sets the job back. Whoever does a custom one is taken to do it in place.

    A restart takes as long as restarts took before, or else as a start does. A script that can be resized saves its
    work when it is told to stop (docs/how-to/elastic-training.md); what one without checkpoints has done is done again.
    """
    if job.elastic is None or job.elastic.hook is not Hook.RESTART:
        return IN_PLACE_SECONDS
    measured = history.pause(job)
    began = None if job.attempt is None else job.attempt.started_at
    undone = 0.0 if job.checkpointed or began is None else max((now - began).total_seconds(), 0.0)
    return undone + (history.startup(job) if measured is None else measured)


def time_left(job: Job, end: datetime, now: datetime) -> timedelta:
    """How long a job at work is taken to run on: until its expected end, or for as long again as it has run.

    Half of all jobs that have run for a while run as long again (Harchol-Balter and Downey, "Exploiting process
    lifetime distributions for dynamic load balancing", 1997), so that one which outlives what was expected of it is
    not taken to be at its end in every pass. Its own time limit ends it.
    """
    attempt = job.attempt
    if attempt is None or attempt.started_at is None:
        return end - now
    ran = timedelta(seconds=job.worked_by(now))
    return min(max(end - now, ran), max(attempt.started_at + job.max_runtime - now, timedelta(0)))


def gain_of(job: Job, size: int, left: timedelta, pools: Mapping[str, Pool]) -> float:
    """Accelerator-seconds of work that the instances added would do until the job ends, all the sooner for them.

    Args:
        job: an elastic job.
        size: that it would have; it is taken to be as much faster as it is larger.
        left: how long it would run on as it is.
        pools: the pools in force.
    """
    present = job.attempt.size if job.attempt is not None else 0
    seconds = max(left.total_seconds(), 0.0) * present / size
    return (size - present) * seconds * _accelerators(job, pools)


def cause_of(attempt: Attempt) -> Cause:
    """Why a job that may grow would."""
    return Cause.GROW if attempt.faulty_since is None else Cause.REPLACE


def _after_failures(job: Job) -> timedelta:
    """How long it waits where the last growths met no capacity."""
    return RETRY_WAIT * 2 ** min(job.returns - 1, MAX_DOUBLINGS) if job.returns else timedelta(0)


def _accelerators(job: Job, pools: Mapping[str, Pool]) -> int:
    """Of one instance; one where the pool is gone."""
    pool = next(iter(job.units), "")
    return pools[pool].accelerators if pool in pools else 1
