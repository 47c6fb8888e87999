"""Pages of jobs with the plan's fields for waiting jobs; each page reads the queue once.

A job that the pass does not consider gets no estimate: the plan knows nothing of the jobs ahead of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.redaction import redacted_request, redacted_text
from trainmaster.domain.access.rules import Action
from trainmaster.domain.capacity.resolve import Offers, resolved
from trainmaster.domain.capacity.units import Kind
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.errors import InvalidRequest, JobNotFound, UnreadableRendezvous
from trainmaster.domain.jobs.deadline import outlook
from trainmaster.domain.jobs.infeasible import INFEASIBLE, NEVER_FIT
from trainmaster.domain.jobs.job import ACTIVE, ENDED, WAITING, Job, JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.records import Records
from trainmaster.handlers.api.kinds import ApiKind
from trainmaster.handlers.models import elastic as elastic_models
from trainmaster.handlers.models import jobs as job_models
from trainmaster.handlers.views import jobs as job_views
from trainmaster.handlers.views.elastic import rendezvous_view
from trainmaster.handlers.views.jobs import QueueStatus
from trainmaster.handlers.views.pools import use_of_pools
from trainmaster.ports.resizing import RendezvousControl
from trainmaster.service.change import ApiContext, find_job
from trainmaster.service.explain.explain import ends_of, explain, not_considered
from trainmaster.service.explain.scaling import believed_scaling
from trainmaster.service.explain.why import WaitDiagnosis, diagnose


def jobs_page(  # noqa: PLR0913, PLR0917 -- the parameters of the query
    context: ApiContext, caller: Caller, states: Collection[str], which: Filter, limit: int, cursor: str | None
) -> job_models.JobsPage:
    """Return matching jobs, each with its status in the queue.

    Raises `InvalidRequest` for a wrong cursor; `AccessDenied`.

    Infeasible ones are picked from those that wait, once the plan has told which they are: such a page may be short.
    """
    context.require(caller, Action.READ)
    stored = frozenset(JobState(state) for state in states if state != INFEASIBLE)
    which = replace(which, states=stored if INFEASIBLE not in states else stored | WAITING)
    page = context.store.list_jobs(_offering(context, which), limit=limit, cursor=cursor)
    statuses = queue_status_by_name(context, page.jobs)
    picked = [job for job in page.jobs if not states or job.state in stored or _is_infeasible(statuses.get(job.name))]
    jobs = [job_views.job_view(job, statuses.get(job.name)) for job in picked]
    return job_models.JobsPage(jobs=jobs, next_cursor=page.cursor)


def principal_of(caller: Caller) -> str:
    """Return the caller's principal. Raises `InvalidRequest` if it is unknown."""
    if not caller.principal:
        raise InvalidRequest(
            f"{caller.name} is no role or user, so the queue cannot tell which jobs are yours.",
            field="mine",
            hint="Sign the request with the credentials of a role or user.",
        )
    return caller.principal


def _is_infeasible(status: QueueStatus | None) -> bool:
    reason = None if status is None else status.reason
    return reason is not None and reason.type in NEVER_FIT


def queue_page(context: ApiContext, caller: Caller, limit: int, cursor: str | None) -> job_models.QueuePage:
    """Return waiting jobs in queue order, and the pools.

    Raises `InvalidRequest` for a wrong cursor; `AccessDenied`.
    """
    context.require(caller, Action.READ)
    page = context.store.list_jobs(Filter(states=WAITING), limit=limit, cursor=cursor)
    in_force, snapshot = context.store.settings(), context.store.read_snapshot()
    statuses = _statuses_in(snapshot, context, page.jobs)
    jobs = [job_views.job_view(job, statuses.get(job.name)) for job in page.jobs]
    return job_models.QueuePage(
        jobs=jobs, next_cursor=page.cursor, pools=use_of_pools(in_force, snapshot, context.clock.now())
    )


def job_detail(context: ApiContext, job: Job, *, why: bool, private: bool) -> job_models.JobDetail:
    """Return a job with its history, its request and its status in the queue.

    Reads a snapshot for a waiting job, and the records for one that is expected to end.

    Args:
        context: the dependencies.
        job: the job.
        why: whether to add why it waits.
        private: whether the caller may see what the request keeps for its owner.
    """
    request = redacted_request(context.store.request_of(job.name), private=private)
    if job.state not in WAITING:
        return job_views.detail_view(job, request, queue_status_by_name(context, [job]).get(job.name))
    snapshot = context.store.read_snapshot()
    diagnosis = _diagnosis(snapshot, context.clock.now(), job) if why else None
    return job_views.detail_view(job, request, _statuses_in(snapshot, context, [job])[job.name], diagnosis)


def _diagnosis(snapshot: Snapshot, now: datetime, job: Job) -> WaitDiagnosis | None:
    """Return why a job waits; None for one that lies deeper in its lane than a pass reads."""
    return None if not_considered(snapshot, [job]) else diagnose(snapshot, now, job)


def queue_status_by_name(context: ApiContext, jobs: Iterable[Job]) -> Mapping[str, QueueStatus]:
    """Return the queue status by name of the jobs that have one.

    Reads a snapshot if any of them waits, the records if one of the others has an expected end, and else nothing.
    """
    relevant = [job for job in jobs if _has_queue_status(job)]
    if any(job.state in WAITING for job in relevant):
        return _statuses_in(context.store.read_snapshot(), context, relevant)
    return _statuses_without_plan(context.store.records(), context.clock.now(), relevant) if relevant else {}


def _has_queue_status(job: Job) -> bool:
    """Return whether the job's answer needs the queue: it waits, holds units, or has a deadline ahead."""
    return job.state in WAITING or job.state in ACTIVE or (job.deadline is not None and job.state not in ENDED)


def rendezvous_of(
    context: ApiContext, caller: Caller, rendezvous: RendezvousControl, name: str
) -> elastic_models.Rendezvous:
    """Return the state of the nodes of the job's newest attempt. Raises `JobNotFound`, `AccessDenied`."""
    job = find_job(context, caller, Action.READ_JOB, name)
    if job.attempt is None:
        return rendezvous_view(None, None)
    run = Run(job.attempt.training_job_name, str(context.store.request_of(name).get("RoleArn", "")))
    try:
        return rendezvous_view(run.name, rendezvous.get(run))
    except UnreadableRendezvous as error:
        return rendezvous_view(run.name, None, str(error))


def found(context: ApiContext, caller: Caller, name: str, kinds: Iterable[ApiKind]) -> Job:
    """Return the job of that name, for a caller that may read it.

    Raises `JobNotFound`, with the refused request of that name if a kind knows one; `AccessDenied`.
    """
    try:
        return find_job(context, caller, Action.READ_JOB, name)
    except JobNotFound as error:
        refusals = [redacted_text(refusal) for kind in kinds if (refusal := kind.refusal(name)) is not None]
        raise JobNotFound(" ".join((error.message, *refusals)), field=error.field, hint=error.hint) from error


def _offering(context: ApiContext, which: Filter) -> Filter:
    """Return the filter with the resources of its pool's instances, for jobs that ask for resources."""
    if which.pool is None:
        return which
    in_force = context.store.settings()
    pool = in_force.pools.get(which.pool)
    if pool is None or pool.kind is not Kind.ON_DEMAND:
        return which
    return replace(which, offers=in_force.catalogue.of_pool(pool))


def _statuses_in(snapshot: Snapshot, context: ApiContext, jobs: Iterable[Job]) -> dict[str, QueueStatus]:
    now, jobs = context.clock.now(), list(jobs)
    waiting = [job for job in jobs if job.state in WAITING]
    explained = explain(context.store, now, waiting, snapshot) if waiting else {}
    offers = Offers(snapshot.pools, snapshot.catalogue)
    demands = {job.name: resolved(job.demand, offers) for job in waiting}
    statuses = {
        name: replace(job_views.queue_status_of(explanation), demand=demands[name])
        for name, explanation in explained.items()
    }
    others = [job for job in jobs if job.name not in statuses]
    return statuses | _statuses_without_plan(snapshot.records, now, others)


def _statuses_without_plan(records: Records, now: datetime, jobs: Collection[Job]) -> dict[str, QueueStatus]:
    ends = ends_of(records, now, jobs)
    return {
        job.name: job_views.status_without_plan(
            job,
            outlook(job, records.history, now),
            ends.get(job.name),
            believed_scaling(job, records.history, now) if job.state in ACTIVE else None,
        )
        for job in jobs
    }
