"""Compare a restored table with SageMaker, and adopt the differences, while the manager is paused."""

from __future__ import annotations

import logging
from dataclasses import replace

from trainmaster.domain.capacity.external import units_by_pool
from trainmaster.domain.capacity.units import Demand, Units
from trainmaster.domain.errors import ServiceError
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Change, Job, JobState
from trainmaster.domain.jobs.lifecycle import adoption
from trainmaster.domain.policy.settings import FailureClass
from trainmaster.domain.restore import MAX_LISTED, DifferenceKind, Restore
from trainmaster.ports.sagemaker import Inventory, StartedJob
from trainmaster.service.auditing.audit import Recorder
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.faults import isolate_fault
from trainmaster.service.observe import poll
from trainmaster.service.restoring.compare import Found, compare, first_unknown

log = logging.getLogger(__name__)


def restore_if_asked(context: ManagerContext, inventory: Inventory) -> Restore | None:
    """Do the comparison that an administrator asked for, and store its result; None if there is none to do.

    Raises `ServiceError`: the next tick repeats it. What is adopted is no difference any more.
    """
    asked = context.store.restore()
    if asked is None or asked.compared_at is not None:
        return None
    since = asked.since
    if since is None:
        since = first_unknown(context.store, context.clock.now())
        asked = replace(asked, since=since)
        context.store.save_restore(asked)
    context = replace(context, adopter=Recorder(asked.asked_by, context.clock.now(), context.audit_retention))
    differences = compare(context, inventory, since)
    adopted: list[str] = []
    failed: list[str] = []
    for found in differences if asked.adopt else ():
        _adopt_or_note(context, found, adopted, failed)
    done = replace(
        asked,
        compared_at=context.clock.now(),
        differences=tuple(found.difference for found in differences[:MAX_LISTED]),
        left_out=len(differences[MAX_LISTED:]),
        adopted=tuple(adopted[:MAX_LISTED]),
        failed=tuple(failed[:MAX_LISTED]),
    )
    context.store.save_restore(done)
    return done


def _adopt_or_note(context: ManagerContext, found: Found, adopted: list[str], failed: list[str]) -> None:
    name = found.difference.job
    faults: list[str] = []
    try:
        with isolate_fault(name, faults):
            if _adopt(context, found):
                adopted.append(name)
    except ServiceError as error:
        failed.append(f"{name}: {error}")
        log.warning("could not adopt a difference", extra={"job": name, "cause": str(error)})
    failed.extend(f"{each}: an unexpected error; see the log" for each in faults)


def _adopt(context: ManagerContext, found: Found) -> bool:
    """Adopt one difference; return whether the job has changed."""
    kind, started, job = found.difference.kind, found.started, found.job
    if kind is DifferenceKind.SURPLUS:
        return False
    if kind is DifferenceKind.LOST and started is not None:
        job = _rebuilt(context, started)
    if job is None:
        return False
    if started is not None:
        job = commit(context, job, adoption.adopt(job, _attempt(context, job, started), context.clock.now()))
    return _apply_state(context, job, found)


def _apply_state(context: ManagerContext, job: Job, found: Found) -> bool:
    if found.seen is not None:
        expected = adoption.expect_stop(job, found.seen.status, context.clock.now())
        job = job if expected is job else commit(context, job, expected)
    poll(context, job)
    return True


def _attempt(context: ManagerContext, job: Job, started: StartedJob) -> Attempt:
    return Attempt(
        number=started.attempt,
        training_job_name=started.seen.training_job_name,
        units=_units(context, started) or dict(job.demand.alternatives[0]),
        created_at=started.decided_at,
        launched=True,
    )


def _units(context: ManagerContext, started: StartedJob) -> Units:
    return units_by_pool(started.units, context.store.settings().pools)


def _rebuilt(context: ManagerContext, started: StartedJob) -> Job:
    """Store a job for a training job whose job the table has lost; its request is lost, so it never starts again."""
    now = context.clock.now()
    job = Job(
        name=started.job_name,
        entry_time=started.decided_at,
        priority=0,
        demand=Demand((_units(context, started) or dict(started.units),)),
        digest=f"restored {now.isoformat()}",
        preemptible=False,
        retries=dict.fromkeys(FailureClass, 0),
        history=(Change(now, None, JobState.PENDING, "made for its training job: the table was restored"),),
    )
    entry = None if context.adopter is None else context.adopter.adopted(job)
    return context.store.submit(job, {"TrainingJobName": started.job_name, "restored": True}, audit=entry)
