"""Compare the jobs of a restored table with the training jobs that the queue has created."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.jobs.job import ACTIVE, ENDED, Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.names import STAMP, attempt_name
from trainmaster.domain.jobs.observation import Observation
from trainmaster.domain.restore import Difference, DifferenceKind
from trainmaster.ports.sagemaker import Inventory, StartedJob
from trainmaster.ports.store import Store
from trainmaster.service.context import ManagerContext

MARGIN = timedelta(hours=1)
"""Training jobs are compared from so long before the newest attempt in the table, for clocks that differ."""
MAX_AGE = timedelta(days=30)
"""They are compared for so long if the table has no jobs: no open one is older."""
_PAGE = 100
_PAUSE_SECONDS = 1.0
"""Pause between two list calls: ListTrainingJobs allows two a second in an account."""
_ACTIONS = {
    DifferenceKind.ENDED: "its end is applied; a stopped job waits again",
    DifferenceKind.NEWER: "the job takes the attempt as its own",
    DifferenceKind.LOST: "a job is made for it, which is not started again",
    DifferenceKind.SURPLUS: "it is stopped once the manager resumes",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A difference with its parts.

    Attributes:
        difference: for people.
        job: as stored; None if the table does not have it.
        started: the training job; None if SageMaker does not know it, or it is the job's own attempt.
        seen: its state; None if SageMaker does not know it.
    """

    difference: Difference
    job: Job | None = None
    started: StartedJob | None = None
    seen: Observation | None = None


def compare(context: ManagerContext, inventory: Inventory, since: datetime) -> list[Found]:
    """Return the differences, those of active attempts first. Raises `ServiceError`.

    Args:
        context: the dependencies.
        inventory: lists the training jobs.
        since: training jobs created from then on are compared; see `first_unknown`.
    """
    ended = [found for job in _active(context.store) for found in _ended(context, job)]
    created = _created(context, inventory, since)
    newest: dict[str, StartedJob] = {}
    for started in created:
        known = newest.get(started.job_name)
        if known is None or started.attempt > known.attempt:
            newest[started.job_name] = started
    others = [found for started in newest.values() for found in _unknown(context, started)]
    renewed = {each.difference.job for each in others}
    return [*(each for each in ended if each.difference.job not in renewed), *others]


def _jobs(store: Store, which: Filter) -> Iterator[Job]:
    cursor: str | None = None
    while True:
        page = store.list_jobs(which, limit=_PAGE, cursor=cursor)
        yield from page.jobs
        cursor = page.cursor
        if cursor is None:
            return


def first_unknown(store: Store, now: datetime) -> datetime:
    """Return a time before which no training job was created that the table does not know.

    The table has all attempts before its newest one. Changes of jobs do not tell: people may cancel jobs while the
    manager is paused.
    """
    ended = store.list_jobs(Filter(states=ENDED), limit=_PAGE).jobs
    attempts = (attempt.created_at for job in (*_active(store), *ended) for attempt in job.attempts[-1:])
    return max(now - MAX_AGE, max(attempts, default=now - MAX_AGE) - MARGIN)


def _active(store: Store) -> list[Job]:
    return [job for job in _jobs(store, Filter(states=ACTIVE)) if job.work is None]


def _ended(context: ManagerContext, job: Job) -> Iterator[Found]:
    """Yield the difference of an active job whose training job has ended."""
    if job.attempt is None or not job.attempt.launched:
        return
    seen = context.launcher.describe(job.attempt.base_name)
    if seen is None or seen.terminal:
        status = "" if seen is None else seen.status.value
        yield Found(_difference(job.name, job, job.attempt.base_name, DifferenceKind.ENDED, status), job, None, seen)


def _created(context: ManagerContext, inventory: Inventory, since: datetime) -> Iterator[StartedJob]:
    """Yield the attempts that the queue has created since then; members of elastic attempts are none."""
    token: str | None = None
    while True:
        page = inventory.list_created(since, token)
        for name in page.names:
            if _is_known(context.store, name):
                continue
            started = inventory.find_created(name)
            if started is not None and name == attempt_name(started.job_name, started.attempt):
                yield started
        token = page.token
        if token is None:
            return
        context.clock.sleep(_PAUSE_SECONDS)


def _is_known(store: Store, training_job_name: str) -> bool:
    """Return whether a stored job that has not ended has the training job; its name tells which job to read."""
    job = store.find(training_job_name.partition(STAMP)[0])
    return job is not None and job.state not in ENDED and _has(job, training_job_name)


def _has(job: Job, training_job_name: str) -> bool:
    return any(training_job_name in attempt.training_job_names for attempt in job.attempts)


def _unknown(context: ManagerContext, started: StartedJob) -> Iterator[Found]:
    """Yield the difference that a created training job makes, if any."""
    job, name = context.store.find(started.job_name), started.seen.training_job_name
    if job is None:
        kind = DifferenceKind.LOST
    elif job.state in ENDED:
        kind = DifferenceKind.SURPLUS
        if started.seen.terminal:
            return
    elif job.work is not None or _has(job, name):
        return
    else:
        kind = DifferenceKind.NEWER
    difference = _difference(started.job_name, job, name, kind, started.seen.status.value)
    yield Found(difference, job, started, started.seen)


def _difference(name: str, job: Job | None, training_job: str, kind: DifferenceKind, status: str) -> Difference:
    return Difference(
        job=name,
        training_job=training_job,
        kind=kind,
        stored="" if job is None else job.state.value,
        status=status,
        action=_ACTIONS[kind],
    )
