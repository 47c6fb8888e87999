"""Starts, preemptions and stops of jobs that hold capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from trainmaster.domain.capacity.units import Kind, Pool, Units, counted
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt import NAME_TAKEN, NO_CAPACITY_IN_TIME, Attempt, Outcome
from trainmaster.domain.jobs.job import ACTIVE, Job, JobState, Reservation
from trainmaster.domain.jobs.lifecycle.resizing import add_members, stop_attempt
from trainmaster.domain.jobs.lifecycle.transition import archive_attempt, close_attempt, current, move, note, touch
from trainmaster.domain.jobs.names import attempt_name
from trainmaster.domain.times import SAME_TIME, clock


def start(  # noqa: PLR0913 - the parts of a start
    job: Job,
    units: Units,
    choices: tuple[str, ...],
    now: datetime,
    *,
    reclaimed_at: datetime | None = None,
    instance_type: str = "",
    instead_of: tuple[str, datetime] | None = None,
) -> Job:
    """Return the job with a new attempt on these units; its name is fixed before SageMaker is called.

    A start that SageMaker refused for its limits left no training job behind, so its number is used again. An attempt
    of another kind's job is a run, and its name says so.

    Args:
        job: a waiting job.
        units: units by pool name.
        choices: the instance types left to SageMaker to choose from, in the order of `units`.
        now: UTC.
        reclaimed_at: when SageMaker takes the units back (`capacity.reclaimed_at`).
        instance_type: chosen by the queue; "" if the request names it.
        instead_of: the pool that it would have used, and when that was found to lack instances; None to derive it from
            the last attempt.
    """
    last, reuse = job.attempt, _reuses_number(job)
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
        turned_down=last.shortages if last is not None and reuse else {},
    )
    if job.elastic is not None and job.elastic.hook is Hook.MEMBERS:
        attempt = add_members(job, attempt, attempt.size - job.elastic.min_instances, now)
    past = {} if last is None or reuse else archive_attempt(job, last)
    reason = _units_text(units, instance_type) + _shortage_text(instead_of or _capacity_lacked(last, units))
    work = None if job.work is None else job.work.restarted()
    taken: dict[str, Any] = {"attempt": attempt, "work": work, **past}
    return move(job, JobState.STARTING, now, reason, reservation=None, retry_at=None, **taken)


def _reuses_number(job: Job) -> bool:
    """Return whether the last start created no training job."""
    last = job.attempt
    return last is not None and last.outcome is Outcome.RETURNED and not last.launched


def _next_attempt(job: Job) -> tuple[int, str]:
    """Return number and name of the next attempt."""
    number = 1 if job.attempt is None else job.attempt.number + (0 if _reuses_number(job) else 1)
    return number, attempt_name(job.name, number) if job.work is None else job.work.run_name(job.name, number)


def take_next_number(job: Job, now: datetime, reason: str) -> Job:
    """Return the job with the next attempt on the same units, since another's training job has this one's name.

    Raises `IllegalTransition` if its training job is known to be created.
    """
    attempt, number = current(job), current(job).number + 1
    if job.state not in ACTIVE or attempt.launched:
        raise IllegalTransition(f"job {job.name} is {job.state}: it cannot take another name", field="jobState")
    reason = f"{NAME_TAKEN}{reason}"
    ended = close_attempt(job, Outcome.RETURNED, now, reason)
    fresh = replace(
        attempt,
        number=number,
        training_job_name=attempt_name(job.name, number),
        created_at=now,
        called_at=None,
        refused="",
        members=(),
        joined=0,
    )
    fresh = add_members(job, fresh, len(attempt.members), now)
    return note(job, now, reason, attempt=fresh, **archive_attempt(job, ended))


def taken_names(job: Job) -> int:
    """Return how many attempts in a row, up to the newest one's predecessor, ended since their names were taken."""
    return sum(1 for _ in takewhile(lambda each: (each.reason or "").startswith(NAME_TAKEN), reversed(job.past)))


def mark_launched(job: Job, now: datetime | None = None) -> Job:
    """Note that the attempt's training job is created: now, or just after its start was decided."""
    attempt = current(job)
    called = attempt if now is None else _called(attempt, now)
    return touch(job, attempt=replace(called, launched=True, launched_at=now))


def mark_create_called(job: Job, now: datetime) -> Job:
    """Note a call of CreateTrainingJob that got no answer; returns the job itself if its start was just now."""
    attempt = _called(current(job), now)
    return job if attempt is job.attempt else touch(job, attempt=attempt)


def _called(attempt: Attempt, now: datetime) -> Attempt:
    """Return the attempt with the time of a call; a time close to the last one is not worth storing."""
    last = attempt.called_at or attempt.created_at
    return replace(attempt, called_at=now) if now > last + SAME_TIME else attempt


def preempt(job: Job, beneficiary: str, now: datetime) -> Job:
    """Preempt the job; its units are freed for `beneficiary`."""
    attempt = stop_attempt(current(job), now)
    # If it was already stopping for a resize, that stop must not be taken for its user's.
    attempt = replace(attempt, stop_asked_at=attempt.stop_asked_at or now, freed_for=beneficiary)
    return move(job, JobState.PREEMPTING, now, f"is preempted for {beneficiary}", attempt=attempt)


def reserve(job: Job, reservation: Reservation) -> Job:
    """Reserve units that are being freed for a waiting job, which ends its back-off."""
    return touch(job, reservation=reservation, retry_at=None)


def request_stop(job: Job, now: datetime, who: str) -> Job:
    """Request that an active job is stopped for good; it ends as stopped and is not resumed."""
    if job.state not in ACTIVE:
        raise IllegalTransition(f"job {job.name} is {job.state}: there is nothing to stop", field="jobState")
    attempt = current(job)
    attempt = replace(stop_attempt(attempt, now), stop_asked_at=attempt.stop_asked_at or now)
    return note(job, now, f"stop requested by {who}", attempt=attempt, stop_requested=True)


def pends_too_long(job: Job, pools: Mapping[str, Pool], now: datetime) -> bool:
    """Return whether a start has waited for spot instances longer than the job allows, and names a pool besides.

    SageMaker stops other starts itself after `MaxPendingTimeInSeconds`. A spot job waits until `MaxWaitTimeInSeconds`,
    which is at least as long as it may run.
    """
    attempt = job.attempt
    if job.max_pending is None or job.state is not JobState.STARTING or attempt is None or not attempt.launched:
        return False
    if attempt.stop_asked_at is not None or now < attempt.created_at + job.max_pending:
        return False
    spot = all(name in pools and pools[name].kind is Kind.SPOT for name in attempt.units)
    return spot and any(
        units.keys() != attempt.units.keys() and all(name in pools and not pools[name].draining for name in units)
        for units in job.demand.alternatives
    )


def give_up_start(job: Job, now: datetime) -> Job:
    """Stop a start that has no instances; then the job waits again, and its other pools come first."""
    stopped = replace(stop_attempt(current(job), now), stop_asked_at=now, given_up=True)
    return note(job, now, f"is stopped to start elsewhere: {NO_CAPACITY_IN_TIME}", attempt=stopped)


def set_reclaim_time(job: Job, at: datetime | None) -> Job:
    """Set when SageMaker takes the attempt's units back."""
    return touch(job, attempt=replace(current(job), reclaimed_at=at))


def record_checkpoint(job: Job, at: datetime) -> Job | None:
    """Return the job with its newest checkpoint; None if that is already known.

    Two checkpoints of one attempt show an upper limit of the time between its checkpoints.
    """
    attempt = current(job)
    last = attempt.saved_at
    if last is not None and at <= last:
        return None
    began = attempt.started_at
    seen = at - last if last is not None and began is not None and last > began else None
    spans = [span for span in (attempt.saves_every, seen) if span is not None]
    return touch(job, attempt=replace(attempt, saved_at=at, saves_every=min(spans, default=None)))


def mark_refused(job: Job, reason: str) -> Job:
    """Note that a repeated call of CreateTrainingJob was refused, while an earlier one may have been accepted."""
    return touch(job, attempt=replace(current(job), refused=reason))


def mark_stop_sent(job: Job) -> Job:
    """Note that SageMaker stops the attempt on the queue's request."""
    return touch(job, attempt=replace(current(job), stop_sent=True))


def mark_stop_called(job: Job, now: datetime) -> Job:
    """Note that StopTrainingJob is called now, so that SageMaker may accept it."""
    return touch(job, attempt=replace(current(job), stop_called_at=now))


def mark_stopped_outside(job: Job) -> Job:
    """Note that SageMaker was stopping the attempt before it could accept the queue's request."""
    return touch(job, attempt=replace(current(job), stop_sent=True, stopped_outside=True))


def mark_end_reported(job: Job, now: datetime) -> Job:
    """Note that an event reported the attempt's end, which Describe does not confirm yet."""
    return touch(job, attempt=replace(current(job), end_reported_at=now))


def _capacity_lacked(last: Attempt | None, units: Units) -> tuple[str, datetime] | None:
    """Return the pool in which the previous attempt found no capacity, if this one uses another."""
    if last is None or not last.found_no_capacity or last.ended_at is None or units.keys() == last.units.keys():
        return None
    return " and ".join(sorted(last.units)), last.ended_at


def _shortage_text(shortage: tuple[str, datetime] | None) -> str:
    return "" if shortage is None else f": {shortage[0]} had no capacity at {clock(shortage[1])}"


def _units_text(units: Units, instance_type: str) -> str:
    places = ", ".join(counted(count, name) for name, count in sorted(units.items()))
    return f"takes {places}" + (f" ({instance_type})" if instance_type and instance_type not in units else "")
