"""Apply SageMaker's reports, from events and polls, to the attempts that they name.

Events are hints: they may be duplicated, reordered or lost. Each report becomes one guarded transition. The reports of
one batch of messages share one read and few transactions; a report that is not plain, loses a race or fails is then
applied alone, so that the jobs end up the same.

That one read may be behind (docs/adr/0034-reads-that-may-lag.md). A change made from an old state loses, since its
guard is the job's version. A report that tells an old state of its attempt nothing new tells a later one nothing
either. A report of an attempt that the read does not have is left, and then the job is read with strong consistency.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TypeVar

from trainmaster.domain.errors import ServiceError, UnreadableRendezvous
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, WAITING, Job, JobState
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.shares.charging import books
from trainmaster.ports.sagemaker import Creator
from trainmaster.service import dependencies
from trainmaster.service.attempt_request import run_of
from trainmaster.service.capacity import orphans
from trainmaster.service.capacity.ownership import find_creator
from trainmaster.service.context import ManagerContext, commit, commit_together, follow_up
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

_T = TypeVar("_T")
MAX_TRIES = 5
MAX_CHANGES = 10
"""Jobs in one transaction: as many as a batch of a FIFO queue has messages. A conflict costs all of them a try."""
MAX_JOBS = 100
"""Jobs that one read finds."""


def observe(context: ManagerContext, seen: Observation) -> bool:
    """Apply an event's report; return whether a pass is worthwhile: capacity is free, or a resize can go on.

    A report that loses a race is applied again to the job as stored then, so that no terminal event is dropped. Reports
    are ignored while the manager is paused.
    """
    if context.store.is_paused():
        log.info("ignored an event: the manager is paused", extra={"trainingJob": seen.training_job_name})
        return False
    for _ in range(MAX_TRIES):
        job = context.store.find(_named_job(seen))
        if job is not None and _ended_with(job, seen):
            # A duplicate: the first delivery may have died before it released the dependent jobs.
            return dependencies.release_dependents(context.store, job, context.clock.now(), context.faults)
        if _may_be_orphan(job, seen):
            orphans.stop_reported(context, seen.training_job_name)
            return False
        if job is None or not job.units or _may_be_external(job, seen):
            return False
        told, changed = _report_on(context, job, seen)
        after = job if changed is job else commit(context, job, changed)
        if told is None or after == job:
            return False
        if _is_applied(after, told):
            return _gives_work(job, after)
    return True


def _named_job(seen: Observation) -> str:
    """Return the name of the job that a report is about."""
    return seen.job_name or seen.training_job_name.split(STAMP)[0]


def _gives_work(before: Job, after: Job) -> bool:
    """Return whether a pass is worthwhile after a change of a job by a report."""
    return after.state in ENDED or after.state in WAITING or _holds_other_units(before, after)


def _concerns_active(job: Job, seen: Observation) -> bool:
    """Return whether a report is about what a job with an active attempt has at SageMaker, no orphan of it."""
    return bool(job.units) and not _may_be_orphan(job, seen) and not _may_be_external(job, seen)


def _has_attempt(job: Job, seen: Observation) -> bool:
    """Return whether the job's attempt has the training job of a report; a read that is behind may lack a member."""
    attempt = job.attempt
    return job.work is not None or (attempt is not None and seen.training_job_name in attempt.training_job_names)


def _report_on(context: ManagerContext, job: Job, seen: Observation) -> tuple[Observation | None, Job]:
    """Return what a report tells of an active job, as SageMaker confirms it, and the job after it, not yet committed.

    A report that SageMaker does not confirm tells nothing (None); then the job may note it.
    """
    if not _is_known(context, job, seen):
        return None, job
    told = _confirmed(context, job, seen)
    if told is None:
        return None, lifecycle.mark_end_reported(job, context.clock.now()) if _ends(seen) else job
    return told, _reported(context, job, told)


def _is_known(context: ManagerContext, job: Job, seen: Observation) -> bool:
    """Return whether the queue created the training job that a report is about; runs of other kinds are its own.

    A stranger's training job may have an attempt's name before the attempt is known to be created.
    """
    attempt, name = job.attempt, seen.training_job_name
    if attempt is None or job.work is not None or name not in attempt.training_job_names:
        return True
    return attempt.is_known(name) or _is_ours(context, job, name)


def _confirmed(context: ManagerContext, job: Job, seen: Observation) -> Observation | None:
    """Return SageMaker's own state of the training job if the report would release units, or end or stop the attempt.

    Anybody who may send to the queue can send such a report. Returns None if SageMaker does not confirm it, or cannot
    be asked: then the next ticks poll the job, since Describe may be behind.
    """
    attempt, name = job.attempt, seen.training_job_name
    if attempt is None or job.work is not None or name not in attempt.training_job_names:
        return seen
    if not _ends(seen) and seen.chosen_type is None:
        return seen
    try:
        found = context.launcher.describe(name)
    except ServiceError as error:
        log.warning("cannot confirm an event; the next tick polls", extra={"job": job.name, "cause": str(error)})
        found = None
    if _ends(seen) and (found is None or not (found.terminal or found.status is seen.status)):
        return None
    return found


def _ends(seen: Observation) -> bool:
    """Return whether a report ends an attempt's training job, now or soon."""
    return seen.terminal or seen.status is Status.STOPPING


def _is_ours(context: ManagerContext, job: Job, name: str) -> bool:
    """Return whether this start of the attempt created the training job; if unknown, the next pass settles it."""
    try:
        return find_creator(context, job, name) is Creator.ATTEMPT
    except ServiceError as error:
        log.warning("cannot confirm an event; the next pass does", extra={"job": job.name, "cause": str(error)})
        return False


def poll(context: ManagerContext, job: Job) -> Job:
    """Describe the attempt's base and apply its state; return the job as stored then."""
    return job if job.attempt is None else poll_training_job(context, job, job.attempt.base_name)


def poll_training_job(context: ManagerContext, job: Job, training_job_name: str) -> Job:
    """Describe one of the attempt's training jobs and apply its state; return the job as stored then."""
    if not job.units:
        return job
    seen = context.launcher.describe(training_job_name)
    if seen is None and _may_appear(job, training_job_name, context.clock.now()):
        return job
    return apply_observation(context, job, seen or deleted(training_job_name))


def _may_appear(job: Job, training_job_name: str, now: datetime) -> bool:
    """Return whether one of the attempt's training jobs may exist although SageMaker does not describe it."""
    attempt = lifecycle.current(job)
    if training_job_name == attempt.base_name:
        return attempt.may_appear(now)
    return any(member.may_appear(now) for member in attempt.members if member.training_job_name == training_job_name)


def deleted(training_job_name: str) -> Observation:
    """Return the observation of a training job that existed and that SageMaker no longer knows."""
    return Observation(training_job_name=training_job_name, status=Status.DELETING)


def apply_observation(context: ManagerContext, job: Job, seen: Observation) -> Job:
    """Apply a report about the job's newest attempt; return the job as stored then."""
    after = _reported(context, job, seen)
    return job if after is job else commit(context, job, after)


def _reported(context: ManagerContext, job: Job, seen: Observation) -> Job:
    """Return the job after a report about its newest attempt, not yet committed; the job itself if it tells nothing."""
    retries = context.retries if seen.ends_badly else None
    return lifecycle.observe(_with_restarts(context, job, seen), seen, context.clock.now(), retries) or job


def _with_restarts(context: ManagerContext, job: Job, seen: Observation) -> Job:
    """Return the job with the restarts that its nodes have counted, if the report ends an attempt with a budget.

    Raises `Throttled`, `Unavailable`: the next report or poll applies the end then.
    """
    counts = job.elastic is not None and job.elastic.budget.max_total_restarts is not None
    if context.rendezvous is None or not counts or not lifecycle.ends_attempt(job, seen):
        return job
    try:
        state = context.rendezvous.get(run_of(context, job))
    except UnreadableRendezvous as error:
        log.warning("cannot read a job's restarts", extra={"job": job.name, "cause": str(error)})
        return job
    return job if state is None else lifecycle.record_restarts(job, state.restarts)


def _is_applied(job: Job, seen: Observation) -> bool:
    """Return whether the job reflects the report."""
    attempt = job.attempt
    if not seen.terminal or not job.units or attempt is None:
        return True
    # The job's base has left its name behind while its members end.
    own = seen.training_job_name == attempt.base_name
    return attempt.base_ended_at is not None if own else seen.training_job_name not in attempt.training_job_names


def _holds_other_units(before: Job, after: Job) -> bool:
    """Return whether a training job ended and its job goes on: as another attempt, or without a member."""
    return before.units != after.units or before.attempts[-1].number != after.attempts[-1].number


def _ended_with(job: Job, seen: Observation) -> bool:
    """Return whether the job ended with the attempt whose end is reported."""
    newest = None if job.attempt is None else job.attempt.base_name
    return job.state in ENDED and seen.terminal and newest == seen.training_job_name


def _may_be_external(job: Job, seen: Observation) -> bool:
    """Return whether an untagged training job has the name of an attempt that is not yet known to be created."""
    return seen.job_name is None and job.attempt is not None and not job.attempt.launched


def _may_be_orphan(job: Job | None, seen: Observation) -> bool:
    """Return whether a report about an open training job names a job that has no such active attempt."""
    if seen.job_name is None or seen.terminal:
        return False
    return job is None or (job.work is None and not orphans.has_active(job, seen.training_job_name))


# ---------------------------------------------------------------- batches


@dataclass(slots=True)
class _Change:
    """The change that reports make to one job.

    Attributes:
        before: the job as read.
        after: the job after these reports.
        applied: the places of these reports in the batch.
        freed: whether a pass is worthwhile after it.
    """

    before: Job
    after: Job
    applied: list[int] = field(default_factory=list)
    freed: bool = False


def observe_batch(context: ManagerContext, reports: Sequence[Observation]) -> tuple[bool, list[int]]:
    """Apply the reports that can be applied together.

    Returns whether a pass is worthwhile, and the places of the reports that are left for `observe`, in their order.
    An error is not raised, since what it concerns is left; so is all while the manager is paused.
    """
    places: dict[str, list[int]] = {}
    for place, seen in enumerate(reports):
        places.setdefault(_named_job(seen), []).append(place)
    applied: set[int] = set()
    freed = False
    changes = _changes(context, reports, places) if len(places) <= MAX_JOBS else []
    for change in _each(context, changes) if _may_commit(context, changes) else ():
        applied.update(change.applied)
        freed = freed or change.freed
    return freed, [place for place in range(len(reports)) if place not in applied]


def _may_commit(context: ManagerContext, changes: Sequence[_Change]) -> bool:
    """Return False if there is something to commit and the manager is paused, or that cannot be read."""
    changing = any(change.after is not change.before for change in changes)
    return not changing or _attempted(context.store.is_paused, "a batch of events") is False


def _changes(
    context: ManagerContext, reports: Sequence[Observation], places: Mapping[str, Sequence[int]]
) -> list[_Change]:
    """Return the changes of all active jobs, in the order in which each job's last report came."""
    store = context.store
    found = _attempted(lambda: store.find_active(places), "a batch of events") or {}
    if any(reports[place].ends_badly for name in found for place in places[name]):
        settings = _attempted(lambda: store.settings(catalogue=False), "a batch of events")
        context = context if settings is None else replace(context, policy=settings.policy)
    changes = (
        _attempted(partial(_change, context, job, reports, places[job.name]), job.name) for job in found.values()
    )
    return sorted((one for one in changes if one is not None and one.applied), key=lambda one: one.applied[-1])


def _change(context: ManagerContext, job: Job, reports: Sequence[Observation], places: Iterable[int]) -> _Change:
    """Return what a job's reports make of it, up to the first one that has to be committed apart."""
    change = _Change(job, job)
    for place in places:
        before = change.after
        if not _concerns_active(before, reports[place]):
            break
        told, after = _report_on(context, before, reports[place])
        if after is before and (told is None or not _has_attempt(before, reports[place])):
            break
        if after is not before and before is not job and not _may_be_one(job, before, after):
            break
        change.freed |= told is not None and after is not before and _gives_work(before, after)
        change.after = after
        change.applied.append(place)
    return change


def _may_be_one(read: Job, between: Job, after: Job) -> bool:
    """Return whether one commit of both changes books, charges and publishes the same as two commits.

    The first must keep the attempt and its units, and each new version must be a line of history, which events count.
    """
    resizes = JobState.RESIZING in (read.state, between.state)
    keeps = read.units == between.units and not books(read, between)
    return not resizes and keeps and after.version - read.version == len(after.history) - len(read.history)


def _each(context: ManagerContext, changes: Sequence[_Change]) -> Iterator[_Change]:
    """Commit the changes, several together, and yield those whose reports are settled."""
    yield from (change for change in changes if change.after is change.before)
    rest = iter([change for change in changes if change.after is not change.before])
    while batch := list(islice(rest, MAX_CHANGES)):
        pairs = [(change.before, change.after) for change in batch]
        if _attempted(partial(commit_together, context, pairs), "a batch of events"):
            yield from _followed_up(context, batch)


def _followed_up(context: ManagerContext, committed: Sequence[_Change]) -> Iterator[_Change]:
    """Do what committed changes are followed by, and yield those for which nothing is left to do."""
    ended = [change.after.name for change in committed if change.after.state in ENDED]
    parents = _attempted(lambda: context.store.parents_among(ended), "a batch of events") if ended else None
    for change in committed:
        parent = parents is None or change.after.name in parents
        if _attempted(partial(_follow_up, context, change.after, parent=parent), change.after.name, context.faults):
            yield change


def _follow_up(context: ManagerContext, job: Job, *, parent: bool) -> bool:
    follow_up(context, job, parent=parent)
    return True


def _attempted(call: Callable[[], _T], name: str, faults: list[str] | None = None) -> _T | None:
    """Return the call's result; None if it failed, so that its reports are left."""
    try:
        with isolate_fault(name, faults):
            return call()
    except ServiceError as error:
        log.warning("events are left to be applied alone", extra={"job": name, "cause": str(error)})
    return None
