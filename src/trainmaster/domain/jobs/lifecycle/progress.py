"""Progress of jobs: the speed of elastic ones; finished work, released units and later pools of other kinds.

Finished parts of the work give their units back at once, so that other jobs start while the rest goes on.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from trainmaster.domain.capacity.units import Units, counted
from trainmaster.domain.elastic.scaling import MAX_RATE, MIN_RATE
from trainmaster.domain.errors import IllegalTransition, InvalidRequest
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.lifecycle.transition import current, note, touch
from trainmaster.domain.jobs.observation import Observation
from trainmaster.domain.jobs.work import Work, still_held


def with_progress(job: Job, seen: Observation, now: datetime) -> Job:
    """Return the job with a report's progress, of the same version; the job itself if nothing is new.

    A part that is done is never repeated, so its end is a checkpoint: what a preemption would lose counts from there.
    """
    work, progress = job.work, seen.progress
    if work is None or progress is None:
        return job
    known = work.advanced(progress)
    # A late report has fewer parts; other jobs already use the units that were given back since.
    late = progress.done + progress.failed < known.settled
    attempt = current(job)
    units = dict(attempt.units) if late else still_held(attempt.units, progress)
    if known == work and units == attempt.units:
        return job
    saved_at = now if known.completed > work.completed else attempt.saved_at
    return replace(job, work=known, attempt=replace(attempt.releasing(units, now), saved_at=saved_at))


def widen(job: Job, units: Units, now: datetime) -> Job:
    """Return the running job of another kind with more units of its pool than it holds."""
    attempt = current(job)
    if job.work is None or job.state is not JobState.RUNNING or attempt.stop_asked_at is not None:
        raise IllegalTransition(f"job {job.name} is {job.state}: it cannot use more", field="jobState")
    ((pool, count),) = units.items()
    reason = f"has {counted(count, pool)} now, since nothing else waits for them"
    return note(job, now, reason, attempt=attempt.widened(units, now))


def set_work(job: Job, work: Work, now: datetime, reason: str) -> Job:
    """Return the waiting job with work that could not be completed when the job entered."""
    return note(job, now, reason, container_image=work.pool, work=work, demand=work.demand())


def record_progress(before: Job, after: Job, now: datetime) -> Job:
    """Return the job after a report of progress alone, with a line of history if the work has one."""
    words = "" if before.work is None or after.work is None else after.work.note_since(before.work)
    return note(after, now, words) if words else touch(after)


def record_speed(job: Job, instances: int, rate: float, measured_at: datetime) -> Job | None:
    """Return an elastic job after a report of its speed; None if the report tells nothing new, or the job is resized.

    Args:
        job: the stored job.
        instances: the size at which the speed was measured; a report may be late, and is then still true of that size.
            A size that the job never had is refused.
        rate: steps or samples a second, in the same unit at every size.
        measured_at: when; the same report may be read several times.

    Raises `IllegalTransition` for a job that is not elastic or holds no capacity, `InvalidRequest` for other values.
    """
    if job.elastic is None:
        raise IllegalTransition(f"job {job.name} is not elastic: its speed has no effect", field="instances")
    if job.attempt is None or len(job.units) != 1:
        raise IllegalTransition(f"job {job.name} is {job.state}: it has no speed", field="instances")
    # After a change of its bounds it may work with more than its maximum for a while.
    largest = max(job.elastic.max_instances, job.attempt.size)
    if not 1 <= instances <= largest:
        message = f"instances is {instances}, not between 1 and {largest}"
        raise InvalidRequest(message, field="instances", hint="report the instances that the job works with now")
    if instances not in job.elastic.sizes and instances != job.attempt.size:
        sizes = ", ".join(map(str, job.elastic.sizes))
        raise InvalidRequest(f"instances is {instances}, not one of the job's sizes: {sizes}", field="instances")
    if not MIN_RATE <= rate <= MAX_RATE:
        raise InvalidRequest(f"perSecond is {rate:g}, not between {MIN_RATE:g} and {MAX_RATE:g}", field="perSecond")
    if job.state is not JobState.RUNNING:
        return None
    if instances not in (known := _sizes_so_far(job, job.attempt)):
        sizes = ", ".join(map(str, sorted(known)))
        message = f"instances is {instances}, which the job has never had; it has had {sizes}"
        raise InvalidRequest(message, field="instances", hint="report the instances that the job works with now")
    speeds = job.speeds.after(next(iter(job.units)), instances, rate, measured_at)
    return None if speeds is job.speeds else touch(job, speeds=speeds)


def _sizes_so_far(job: Job, attempt: Attempt) -> set[int]:
    """Return the sizes that a job has had in its present pool, as far as its stored history tells."""
    here = {each.number for each in job.attempts if each.units.keys() == attempt.units.keys()}
    past = {line.size for line in job.history if line.size is not None and line.attempt in here}
    return past | {attempt.size} | job.speeds_here.sizes
