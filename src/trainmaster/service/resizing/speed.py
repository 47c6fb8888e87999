"""Reports of how fast elastic jobs work: by programs through the API, by nodes in the table of the rendezvous.

A report changes what later plans expect and nothing else, so it wakes no manager, and has no line of history and no
audit entry. One that tells nothing new is not stored.
"""

from __future__ import annotations

import logging
from datetime import datetime, timezone

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.elastic.rendezvous import SpeedReport
from trainmaster.domain.errors import (
    InvalidRequest,
    NotPermitted,
    Throttled,
    Unavailable,
    UnreadableRendezvous,
    too_many_conflicts,
)
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.times import names_in_turn
from trainmaster.service.attempt_request import run_of
from trainmaster.service.change import MAX_TRIES, ApiContext, find_job
from trainmaster.service.context import ManagerContext
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

PERIOD = 5
"""Minutes between two reads of what the nodes of a job report."""
MAX_READS = 20
"""Jobs of which one tick reads the report: one and a half read units each."""


def report_speed(context: ApiContext, caller: Caller, name: str, instances: int, rate: float) -> Job:
    """Store a report of a job's speed; return the job as it is then. See `lifecycle.record_speed`.

    Raises `JobNotFound`; `AccessDenied` unless the caller may answer for the job's resizes; `IllegalTransition`;
    `InvalidRequest`; `Throttled` after `MAX_TRIES` conflicts.
    """
    for _ in range(MAX_TRIES):
        before = find_job(context, caller, Action.ANSWER_RESIZE, name)
        after = lifecycle.record_speed(before, instances, rate, context.clock.now())
        if after is None or context.store.transition([(before, after)]):
            return before if after is None else after
    raise too_many_conflicts(f"job {name}")


def record_speeds(context: ManagerContext, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Store what the nodes of elastic jobs that are due report; return the active jobs as stored then.

    With up to 100 of them, each is due every five minutes.
    """
    if context.rendezvous is None:
        return active
    names = [job.name for job in active if _works(job)]
    due, result = names_in_turn(names, context.clock.now(), PERIOD, MAX_READS), list(active)
    for index, job in enumerate(active):
        if job.name in due:
            try:
                with isolate_fault(job.name, context.faults):
                    result[index] = _with_speed(context, job)
            except (Throttled, Unavailable, NotPermitted) as error:
                log.warning("could not read the speeds of jobs", extra={"job": job.name, "cause": str(error)})
                break
    return tuple(result)


def _works(job: Job) -> bool:
    return job.elastic is not None and job.state is JobState.RUNNING and not job.stop_asked


def _after(job: Job, report: SpeedReport, now: datetime) -> Job | None:
    """Return the job after a report, which may have been read before; None if it tells nothing new.

    A report from the future, by a clock that is fast, counts as of now, so that it hides no later one; the same speed
    once more is then the same report.
    """
    moment = now.timestamp()
    if report.at is not None and report.at > moment:
        newest = ((speed.instances, speed.latest[-1:]) for speed in job.speeds_here.of_sizes[-1:])
        if (report.instances, (report.rate,)) in newest:
            return None
    at = moment if report.at is None else min(report.at, moment)
    return lifecycle.record_speed(job, report.instances, report.rate, datetime.fromtimestamp(at, timezone.utc))


def _with_speed(context: ManagerContext, job: Job) -> Job:
    try:
        report = None if context.rendezvous is None else context.rendezvous.speed(run_of(context, job))
        after = None if report is None else _after(job, report, context.clock.now())
    except (UnreadableRendezvous, InvalidRequest) as error:
        log.warning("a job's nodes report a speed that cannot be used", extra={"job": job.name, "cause": str(error)})
        return job
    if after is None:
        return job
    # After a conflict, a later tick finds the report again.
    return after if context.store.transition([(job, after)]) else context.store.find(job.name) or job
