"""Costs and gains of resizing an elastic job, the sizes that it may have next, and when.

Growing pays if the added instances do more work than the pause of the others costs; it waits until a size has lasted
for a while (HyperPod: scaling timeout, snooze after a restart). A lost member is replaced at once, or the job goes down
to a legal size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.elastic.scaling import LINEAR, ScalingCurve
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.run_times import History

IN_PLACE_SECONDS = 10.0
"""Seconds for which a job pauses when members join or leave: 5 were measured for torch elastic, and 5 of lost work."""
RETRY_WAIT = timedelta(minutes=10)
"""The wait after a growth without capacity; doubled with every further one in a row."""
MAX_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class ShrinkCandidate:
    """A job that can release some of its instances and run on.

    Attributes:
        job: the job.
        pool: the pool of its instances.
        size: instances that it has, or will have by this plan.
        cost: accelerator-seconds that any shrink costs; 0 if this plan shrinks the job already.
        equal: whether the job for which it shrinks does not outrank it, and only the policy allows it.
        curve: how its speed depends on its size.
        accelerators: of one instance.
    """

    job: Job
    pool: str
    size: int
    cost: float
    equal: bool = False
    curve: ScalingCurve = LINEAR
    accelerators: int = 1

    def spared(self, count: int) -> float:
        """Return how many of these instances it would not miss: 0 if it scales linearly."""
        return count - (self.curve.speedup(self.size) - self.curve.speedup(self.size - count))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Smaller legal sizes, the largest first."""
        return tuple(size for size in reversed(self.job.sizes) if size < self.size)

    @property
    def max_freed(self) -> int:
        """Instances that it can release at most."""
        return self.size - min(self.sizes, default=self.size)


def elastic_of(job: Job) -> tuple[Elastic, Attempt] | None:
    """Return sizes and attempt of an elastic job that holds units of one pool; None for any other job."""
    if job.elastic is None or job.attempt is None or len(job.units) != 1:
        return None
    return job.elastic, job.attempt


def can_shrink(job: Job) -> bool:
    """Return True if the job could start to shrink now.

    It runs and is not being stopped; or it is growing, which can be reversed unless the user's own hook carries it out.
    """
    found = elastic_of(job)
    if found is None or found[1].stop_asked_at is not None or not found[1].launched:
        return False
    elastic, attempt = found
    if attempt.base_ended_at is not None or attempt.size <= min(job.sizes, default=attempt.size):
        return False
    turns = attempt.resizing is not None and attempt.resizing.grows and elastic.hook is not Hook.CUSTOM
    return turns if job.state is JobState.RESIZING else job.state is JobState.RUNNING


def can_grow(job: Job) -> bool:
    """Return True if the job runs and is not being changed."""
    found = elastic_of(job)
    if found is None or job.state is not JobState.RUNNING or job.stop_requested:
        return False
    attempt = found[1]
    at_work = attempt.launched and attempt.started_at is not None
    return at_work and attempt.stop_asked_at is None and attempt.base_ended_at is None


def ready_at(elastic: Elastic, job: Job, attempt: Attempt) -> datetime:
    """Return when a running job may grow into idle capacity.

    Its size has to have lasted for the scaling timeout; after a restart or a resize, the snooze has to be over.
    """
    began = attempt.started_at or attempt.created_at
    sized = attempt.sized_at or began
    ready = max(began, sized) + max(elastic.scaling_timeout, _after_failures(job))
    if attempt.sized_at is not None:
        ready = max(ready, attempt.sized_at + elastic.scale_up_snooze)
    return max(ready, began + elastic.scale_up_snooze) if job.past else ready


def larger_sizes(job: Job, elastic: Elastic, size: int, now: datetime, max_size: int | None = None) -> tuple[int, ...]:
    """Return the legal sizes above this one that may be faster, the largest first, up to `max_size`."""
    limit = elastic.max_instances if max_size is None else min(max_size, elastic.max_instances)
    return job.speeds_here.without_slower([each for each in reversed(elastic.sizes) if size < each <= limit], now)


def repair_size(job: Job, elastic: Elastic, attempt: Attempt, now: datetime) -> int | None:
    """Return the size to go down to if the current one is not legal and no replacement came in time; else None."""
    waits = attempt.faulty_since is not None and now < attempt.faulty_since + elastic.faulty_scale_down_timeout
    if waits or attempt.size in job.sizes:
        return None
    return max((size for size in job.sizes if size < attempt.size), default=None)


def cost_of(
    job: Job, history: History, pools: Mapping[str, Pool], now: datetime, curve: ScalingCurve = LINEAR
) -> float:
    """Return the accelerator-seconds that any resize of an elastic job costs: its pause, and work to repeat.

    Those of a job that scales worse than linearly count as much as they work.
    """
    size = 0 if job.attempt is None else job.attempt.size
    return pause_of(job, history, now) * accelerators_of(job, pools) * curve.speedup(size)


def pause_of(job: Job, history: History, now: datetime) -> float:
    """Return the seconds by which a resize delays the job; a custom hook is assumed to resize in place.

    A restart takes as long as earlier restarts, or else as long as a start. A resizable script saves its work when it
    is asked to stop (docs/how-to/elastic-training.md); without checkpoints, its work since the start is done again.
    """
    if job.elastic is None or job.elastic.hook is not Hook.RESTART:
        return IN_PLACE_SECONDS
    measured = history.pause(job)
    began = None if job.attempt is None else job.attempt.started_at
    undone = 0.0 if job.checkpointed or began is None else max((now - began).total_seconds(), 0.0)
    return undone + (history.startup(job) if measured is None else measured)


def time_left(job: Job, end: datetime, now: datetime) -> timedelta:
    """Return how long a running job is assumed to run on: until its expected end, or for as long as it has run.

    That is for as long as its work so far would take at its present size. Half of all jobs that have run for a while
    run as long again (Harchol-Balter and Downey, "Exploiting process
    lifetime distributions for dynamic load balancing", 1997), so a job that runs longer than expected is not assumed to
    be at its end in every pass. Its own time limit ends it.
    """
    attempt = job.attempt
    if attempt is None or attempt.started_at is None:
        return end - now
    ran = timedelta(seconds=job.worked_by(now))
    if job.elastic is not None:
        ran *= job.elastic.min_instances / attempt.size
    return min(max(end - now, ran), max(attempt.started_at + job.max_runtime - now, timedelta(0)))


def gain_of(job: Job, size: int, left: timedelta, pools: Mapping[str, Pool], curve: ScalingCurve = LINEAR) -> float:
    """Return the accelerator-seconds of work that added instances would do until the job ends, sooner because of them.

    Args:
        job: an elastic job.
        size: its size after the growth.
        left: how long it would run on at its present size.
        pools: the pools in force.
        curve: how its speed depends on its size.
    """
    present, speed = curve.speedup(job.attempt.size if job.attempt is not None else 0), curve.speedup(size)
    seconds = max(left.total_seconds(), 0.0) * present / speed
    return (speed - present) * seconds * accelerators_of(job, pools)


def cause_of(attempt: Attempt) -> Cause:
    """Return the cause of a growth: to replace lost members, or to use idle units."""
    return Cause.GROW if attempt.faulty_since is None else Cause.REPLACE


def _after_failures(job: Job) -> timedelta:
    """Return how long the job waits after growths without capacity."""
    return RETRY_WAIT * 2 ** min(job.capacity_failures - 1, MAX_DOUBLINGS) if job.capacity_failures else timedelta(0)


def accelerators_of(job: Job, pools: Mapping[str, Pool]) -> int:
    """Return the accelerators of one instance; 1 if the pool is gone."""
    pool = next(iter(job.units), "")
    return pools[pool].accelerators if pool in pools else 1
