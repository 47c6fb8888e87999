"""Starts, preemptions and stops: what the manager decides for a job that holds capacity, or is to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from trainmaster.domain.capacity.units import Units, counted
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import ACTIVE, Job, JobState, Reservation
from trainmaster.domain.jobs.lifecycle.resizing import new_members, stops
from trainmaster.domain.jobs.lifecycle.transition import current, followed, move, note, touch
from trainmaster.domain.jobs.names import attempt_name
from trainmaster.domain.times import clock


def start(  # noqa: PLR0913 - all that a start decides
    job: Job,
    units: Units,
    choices: tuple[str, ...],
    now: datetime,
    *,
    reclaimed_at: datetime | None = None,
    instance_type: str = "",
    instead_of: tuple[str, datetime] | None = None,
) -> Job:
    """The job takes capacity under a new attempt; its name is fixed before SageMaker is called.

    A start that SageMaker refused for its limits left no training job behind, so its number is used again.
    An attempt of another kind's job is a run, and its name says so.

    Args:
        job: a waiting job.
        units: what it takes, by pool name.
        choices: the instance types left to SageMaker to choose from, in the order of `units`.
        now: UTC.
        reclaimed_at: when SageMaker takes the units back (`capacity.reclaimed_at`).
        instance_type: that the queue has chosen for it; "" where the request says it.
        instead_of: the pool that it would have had, and when that turned out to lack instances; None: as far as its own
            last try tells.
    """
    last, reuse = job.attempt, _left_its_number(job)
    number, name = _next_attempt(job)
    attempt = Attempt(
        number=number,
        training_job_name=name,
        units=dict(units),
        choices=choices,
        created_at=now,
        reclaimed_at=reclaimed_at,
        instance_type=instance_type,
        given=0 if job.work is None else sum(units.values()),
        turned_down=last.lacking if last is not None and reuse else {},
    )
    if job.elastic is not None and job.elastic.hook is Hook.MEMBERS:
        attempt = new_members(job, attempt, attempt.size - job.elastic.least, now)
    past = {} if last is None or reuse else followed(job, last)
    reason = _places(units, instance_type) + _elsewhere(instead_of or _left(last, units))
    work = None if job.work is None else job.work.restarted()
    taken: dict[str, Any] = {"attempt": attempt, "work": work, **past}
    return move(job, JobState.STARTING, now, reason, reservation=None, retry_at=None, **taken)


def _left_its_number(job: Job) -> bool:
    """Whether the last start left no training job behind."""
    last = job.attempt
    return last is not None and last.outcome is Outcome.RETURNED and not last.launched


def _next_attempt(job: Job) -> tuple[int, str]:
    """Number and name of the attempt that a start makes."""
    number = 1 if job.attempt is None else job.attempt.number + (0 if _left_its_number(job) else 1)
    return number, attempt_name(job.name, number) if job.work is None else job.work.run_name(job.name, number)


def launched(job: Job) -> Job:
    """SageMaker is known to have the attempt."""
    return touch(job, attempt=replace(current(job), launched=True))


def preempt(job: Job, beneficiary: str, now: datetime) -> Job:
    """The job is to step aside; its capacity is freed for `beneficiary`."""
    attempt = stops(current(job), now)
    # Where it was to stop already, to go on with another size, SageMaker's stop must not seem to be its user's.
    attempt = replace(attempt, stop_asked_at=attempt.stop_asked_at or now, freed_for=beneficiary)
    return move(job, JobState.PREEMPTING, now, f"steps aside for {beneficiary}", attempt=attempt)


def reserve(job: Job, reservation: Reservation) -> Job:
    """A waiting job gets capacity that is being freed for it."""
    return touch(job, reservation=reservation)


def ask_stop(job: Job, now: datetime, who: str) -> Job:
    """Its user wants an active job stopped: it will end as stopped and not be resumed."""
    if job.state not in ACTIVE:
        raise IllegalTransition(f"job {job.name} is {job.state}: there is nothing to stop", field="jobState")
    attempt = current(job)
    attempt = replace(stops(attempt, now), stop_asked_at=attempt.stop_asked_at or now)
    return note(job, now, f"stop asked by {who}", attempt=attempt, stop_requested=True)


def set_reclaim_time(job: Job, at: datetime | None) -> Job:
    """The time has changed at which SageMaker takes the attempt's units back."""
    return touch(job, attempt=replace(current(job), reclaimed_at=at))


def record_checkpoint(job: Job, at: datetime) -> Job | None:
    """The job after its newest checkpoint was seen; None where that tells nothing new.

    Two checkpoints of one attempt tell how often it writes them: at least as often as the time between the two.
    """
    attempt = current(job)
    last = attempt.saved_at
    if last is not None and at <= last:
        return None
    began = attempt.started_at
    seen = at - last if last is not None and began is not None and last > began else None
    spans = [span for span in (attempt.saves_every, seen) if span is not None]
    return touch(job, attempt=replace(attempt, saved_at=at, saves_every=min(spans, default=None)))


def stop_sent(job: Job) -> Job:
    """SageMaker is known to have been asked to stop the attempt."""
    return touch(job, attempt=replace(current(job), stop_sent=True))


def _left(last: Attempt | None, units: Units) -> tuple[str, datetime] | None:
    """Where the try before met nothing, if this one goes elsewhere."""
    if last is None or not last.lacked or last.ended_at is None or units.keys() == last.units.keys():
        return None
    return " and ".join(sorted(last.units)), last.ended_at


def _elsewhere(lacking: tuple[str, datetime] | None) -> str:
    return "" if lacking is None else f": {lacking[0]} had no capacity at {clock(lacking[1])}"


def _places(units: Units, instance_type: str) -> str:
    places = ", ".join(counted(count, name) for name, count in sorted(units.items()))
    return f"takes {places}" + (f" ({instance_type})" if instance_type and instance_type not in units else "")
