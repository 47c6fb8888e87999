"""Dependencies of the manager's actions, and their shared commit helper."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from trainmaster.domain.access.audit import AuditAction
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import Fenced, ServiceError, Throttled
from trainmaster.domain.events.publication import Publication
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Policy
from trainmaster.ports.kinds import Runs
from trainmaster.ports.resizing import RendezvousControl, ResizeRequester
from trainmaster.ports.runtime import Clock
from trainmaster.ports.sagemaker import Checkpoints, Launcher
from trainmaster.ports.store import Request, Store
from trainmaster.service import dependencies
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.auditing.audit import DEFAULT_RETENTION, Recorder
from trainmaster.service.auditing.retention import DEFAULT_JOB_RETENTION
from trainmaster.service.faults import record_fault
from trainmaster.service.throttling import VerbThrottled

log = logging.getLogger(__name__)

FUNCTION, EVENT = "function", "event"
"""Recipients of custom resize requests: a Lambda function's ARN, or the consumers of an event (`Elastic.target`)."""


@dataclass(frozen=True, slots=True)
class ManagerContext:
    """Dependencies of the manager's actions.

    Attributes:
        policy: the settings that the pass read; None outside of passes, where they are read when a job fails.
        pools: the pools that the pass read.
        checkpoints: None to leave checkpoints unread.
        rendezvous: the rendezvous of elastic jobs; None to stop members without draining them.
        resize_requesters: recipients of custom resize requests, by `FUNCTION` and `EVENT`.
        requests: requests of jobs that were read together, by name; others are read one by one.
        table: the DynamoDB table of the rendezvous, passed to the nodes; "" if there is none.
        kinds: the runs of other kinds of jobs, by kind.
        caller_rules: checked again at each launch of a training job; None to check nothing.
        faults: receives the names of jobs for which an action raised an unexpected exception.
        job_retention: how long ended jobs are kept.
        orphans: receives the names of orphaned training jobs that were stopped.
        audit_retention: how long audit entries are kept.
        publication: what the deployment publishes.
        adopter: makes the audit entries of commits while differences are adopted for an administrator; None otherwise.
    """

    store: Store
    launcher: Launcher
    clock: Clock
    policy: Policy | None = None
    pools: Mapping[str, Pool] = field(default_factory=dict)
    checkpoints: Checkpoints | None = None
    rendezvous: RendezvousControl | None = None
    resize_requesters: Mapping[str, ResizeRequester] = field(default_factory=dict)
    requests: Mapping[str, Request] = field(default_factory=dict)
    table: str = ""
    kinds: Mapping[str, Runs] = field(default_factory=dict)
    caller_rules: CallerRules | None = None
    faults: list[str] | None = None
    orphans: list[str] | None = None
    job_retention: timedelta = DEFAULT_JOB_RETENTION
    audit_retention: timedelta = DEFAULT_RETENTION
    publication: Publication = field(default_factory=Publication)
    adopter: Recorder | None = None

    @property
    def retries(self) -> lifecycle.Retries:
        """The retry limits for each class of failure."""
        return (self.policy or self.store.settings(catalogue=False).policy).retries


def pass_rng(snapshot: Snapshot) -> random.Random:
    """Return the source of randomness of the pass that decides on this snapshot, seeded by the pass number.

    Explanations of the next pass draw from an equal one.
    """
    return random.Random(snapshot.pass_number)  # noqa: S311 -- spreads choices, guards nothing


def commit(context: ManagerContext, before: Job, after: Job) -> Job:
    """Commit a change that needs no fence; return the job as stored then, which may be another caller's change.

    Raises `Throttled`, `Unavailable`: nothing has changed then, or the outcome is unknown.
    """
    if commit_together(context, [(before, after)]):
        follow_up(context, after)
        return after
    return context.store.find(before.name) or before


def commit_together(context: ManagerContext, changes: Sequence[tuple[Job, Job]]) -> bool:
    """Commit changes that need no fence in one transaction; return whether it was committed.

    `follow_up` is due for each of them then. Raises `Throttled`, `Unavailable`, as `commit` does.
    """
    for _, after in changes:
        if (runs := _runs_of_ended(context, after)) is not None:
            runs.ending(after)
    adopter = context.adopter
    audit = () if adopter is None else [e for change in changes for e in adopter.of_job(*change, AuditAction.ADOPT)]
    return context.store.transition(changes, audit=audit)


def follow_up(context: ManagerContext, after: Job, *, parent: bool = True) -> None:
    """Do what the committed end of a job is followed by: release its dependent jobs, and tell its kind.

    Args:
        context: the manager's dependencies.
        after: the job as committed.
        parent: False if no job runs after it.
    """
    if after.state in ENDED and parent:
        dependencies.release_dependents(context.store, after, context.clock.now(), context.faults)
    if (runs := _runs_of_ended(context, after)) is not None:
        runs.ended(after)


def _runs_of_ended(context: ManagerContext, job: Job) -> Runs | None:
    """Return the runs of an ended job's kind; None for a training job, and for a job that has not ended."""
    return context.kinds.get(job.work.kind) if job.work is not None and job.state in ENDED else None


def for_each_job(
    context: ManagerContext,
    jobs: tuple[Job, ...],
    step: Callable[[ManagerContext, Job], Job],
    *,
    which: Callable[[Job], bool] = lambda _: True,
) -> tuple[Job, ...]:
    """Take a step for each job and return the jobs as stored then; a failed step leaves its job to the next pass.

    Args:
        context: the manager's dependencies.
        jobs: the jobs.
        step: returns a job as stored then.
        which: returns False for a job that the step would leave as it is.

    Throttling by the store ends the round, since further calls would prolong it; a verb of SageMaker that is throttled
    fails without a call from then on (`service.throttling`). Raises `Fenced`.
    """
    result = list(jobs)
    for index, job in [(index, job) for index, job in enumerate(jobs) if which(job)]:
        try:
            result[index] = step(context, job)
        except VerbThrottled as error:
            log.warning("SageMaker throttles; the next pass goes on", extra={"job": job.name, "cause": str(error)})
        except Throttled as error:
            log.warning("AWS throttles requests; the next pass continues", extra={"job": job.name, "cause": str(error)})
            break
        except Fenced:
            raise
        except ServiceError as error:
            log.warning("an action failed; the next pass retries", extra={"job": job.name, "cause": str(error)})
        except Exception as error:  # noqa: BLE001 -- as in `isolate_fault`, without a context manager for each job
            record_fault(error, job.name, context.faults)
    return tuple(result)
