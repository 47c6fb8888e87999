"""Routes of the API: each parses a request, calls one use case, and renders its response.

A model that only one route uses stands beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Protocol

from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from pydantic import BaseModel

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.jobs.job import ACTIVE, Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.requests.elastic.size_change import SizeBounds
from trainmaster.handlers.api import kinds, pages, plans
from trainmaster.handlers.api.conditional import UNCHANGED, unless_unchanged
from trainmaster.handlers.api.kinds import ApiKind
from trainmaster.handlers.api.openapi import document
from trainmaster.handlers.api.operations import SUBMIT_ERRORS, operation
from trainmaster.handlers.api.parameters import (
    BARS,
    LISTED,
    CancelReason,
    Cursor,
    EnteredSince,
    EntryLimit,
    Force,
    GroupedBy,
    History,
    IntervalLimit,
    JobKind,
    JobName,
    JobsRead,
    Limit,
    Mine,
    OfAction,
    OfJob,
    OnlyPool,
    PeriodEnd,
    PeriodStart,
    Pool,
    PoolName,
    Prefix,
    Purge,
    SettingsVersion,
    Share,
    Since,
    States,
    Until,
    UsageEnd,
    UsageStart,
    Who,
    Why,
)
from trainmaster.handlers.api.resolver import Resolver, caller_of, json_response
from trainmaster.handlers.models import elastic as elastic_models
from trainmaster.handlers.models import forecast as forecast_models
from trainmaster.handlers.models import jobs as job_models
from trainmaster.handlers.models import pools as pool_models
from trainmaster.handlers.models.audit import AuditPage
from trainmaster.handlers.models.export import ExportPage, ImportReport, ImportRequest
from trainmaster.handlers.models.manager import ManagerState, PauseRequest, RestoreRequest
from trainmaster.handlers.models.schedule import Schedule
from trainmaster.handlers.models.settings import Settings, SettingsInForce, in_force
from trainmaster.handlers.models.shares import Shares
from trainmaster.handlers.models.usage import Usage
from trainmaster.handlers.views import jobs as job_views
from trainmaster.handlers.views import pools as pool_views
from trainmaster.handlers.views.audit import audit_page_view
from trainmaster.handlers.views.export import export_view, import_asked, import_view
from trainmaster.handlers.views.manager import manager_view
from trainmaster.handlers.views.schedule import schedule_view
from trainmaster.handlers.views.shares import shares_view
from trainmaster.handlers.views.usage import usage_view
from trainmaster.ports.resizing import RendezvousControl
from trainmaster.service.auditing.listing import AuditQuery, list_audit
from trainmaster.service.capacity.pools import change_pool, put_pool, remove_pool, set_pools
from trainmaster.service.change import cancel, change, purge, set_policy, settings_in_force
from trainmaster.service.explain.shares import read_shares
from trainmaster.service.explain.timeline import read_timeline
from trainmaster.service.explain.usage import MAX_JOBS, By, read_usage
from trainmaster.service.resizing.contract import HookAnswer, Outcome
from trainmaster.service.resizing.custom import answer_resize
from trainmaster.service.resizing.speed import report_speed
from trainmaster.service.restoring.export import export_page, import_part
from trainmaster.service.restoring.maintenance import ask_restore, manager_status, pause, resume
from trainmaster.service.submit import submit

Request = Annotated[job_models.TrainingJobRequest, Body(description="The CreateTrainingJob request.")]


class Parts(plans.Parts, kinds.Parts, Protocol):
    """Parts of the application that the API uses."""

    @property
    def queue(self) -> str:
        """The queue's name."""

    @property
    def rendezvous(self) -> RendezvousControl:
        """The rendezvous of elastic jobs."""


class Routes:
    """The routes; their docstrings are the descriptions in the OpenAPI document."""

    def __init__(self, app: Resolver, parts: Parts, kinds_: Sequence[ApiKind]) -> None:
        """Keep the dependencies of the routes."""
        self._app, self._parts, self._kinds = app, parts, kinds_

    @operation(
        "POST",
        "/add-job",
        Action.SUBMIT,
        "Submit a training job",
        {
            202: ("The job waits in the queue.", job_models.Submission),
            200: ("The same request was submitted before; this is its job.", job_models.Submission),
        },
        SUBMIT_ERRORS,
    )
    def add_job(self, request: Request) -> Response[str]:
        """Check the request, store it and wake the manager.

        The same name and body again get the same response (200); the same name with another body is refused (409).
        """
        made = submit(self._parts.api_context, self._caller, self._parts.admission, request.root)
        return json_response(job_views.submission_view(made), HTTPStatus.ACCEPTED if made.new else HTTPStatus.OK)

    @operation("GET", "/jobs", Action.READ, "List jobs", {200: ("One page.", job_models.JobsPage), 304: UNCHANGED})
    def list_jobs(  # noqa: PLR0913, PLR0917 -- the parameters of the query
        self,
        state: States = [],  # noqa: B006 -- Powertools takes its default from here
        share: Share = None,
        pool: PoolName = None,
        mine: Mine = False,  # noqa: FBT002 -- a parameter of the query
        since: EnteredSince = None,
        prefix: Prefix = "",
        kind: JobKind = None,
        limit: Limit = LISTED,
        cursor: Cursor = None,
    ) -> Response[str]:
        """Return jobs that hold capacity, waiting jobs in queue order, held jobs, then the newest ended ones."""
        submitter = pages.principal_of(self._caller) if mine else None
        which = Filter(share=share, pool=pool, submitted_by=submitter, since=since, prefix=prefix, kind=kind)
        context = self._parts.api_context
        return self._unless_unchanged(lambda: pages.jobs_page(context, self._caller, state, which, limit, cursor))

    @operation("GET", "/jobs/<name>", Action.READ_JOB, "Show a job", {200: ("The job.", job_models.JobDetail)}, (404,))
    def get_job(self, name: JobName, why: Why = False) -> Response[str]:  # noqa: FBT002 -- a parameter of the query
        """Return a job with its attempts, its history and the submitted request.

        Secrets of the request are redacted: values whose names say so for every caller, and for callers other than its
        owner and admins also its environment, hyperparameters and arguments, and the signatures of URLs.
        """
        parts = self._parts
        job = pages.found(parts.api_context, self._caller, name, self._kinds)
        private = parts.api_context.may(self._caller, Action.READ_REQUEST, job=job)
        return json_response(pages.job_detail(parts.api_context, job, why=why, private=private))

    @operation(
        "GET",
        "/jobs/<name>/rendezvous",
        Action.READ_JOB,
        "Show the rendezvous of a job",
        {200: ("State as the nodes report it.", elastic_models.Rendezvous)},
        (404,),
    )
    def get_rendezvous(self, name: JobName) -> Response[str]:
        """Return the nodes of the newest attempt: members of the world with their ranks, waiting and spare ones.

        The nodes report this themselves; there are none before the first, or if the job uses another rendezvous.
        """
        return json_response(pages.rendezvous_of(self._parts.api_context, self._caller, self._parts.rendezvous, name))

    @operation(
        "POST",
        "/jobs/<name>/resize",
        Action.ANSWER_RESIZE,
        "Report the outcome of a custom resize",
        {200: ("The job as it is now.", job_models.Job)},
        (404, 409, 415),
    )
    def answer_resize(self, name: JobName, answer_: Annotated[elastic_models.ResizeAnswer, Body()]) -> Response[str]:
        """Record the outcome of a custom resize. The same outcome again changes nothing.

        Refused if the resize of this token has another outcome already, for example because its time is over.
        """
        answer = HookAnswer(**{**answer_.model_dump(), "outcome": Outcome(answer_.outcome)})
        job = answer_resize(self._parts.api_context, self._caller, name, answer)
        return json_response(job_views.job_view(job, self._remarks(job)))

    @operation(
        "POST",
        "/jobs/<name>/speed",
        Action.ANSWER_RESIZE,
        "Report the speed of an elastic job",
        {200: ("The job as it is now.", job_models.Job)},
        (404, 409, 415),
    )
    def report_speed(self, name: JobName, report_: Annotated[elastic_models.SpeedReport, Body()]) -> Response[str]:
        """Record how fast an elastic job works, from which the queue learns how its speed depends on its size.

        Report a few minutes after each change of its size, and then every few minutes at most. A report that tells
        nothing new, or that comes while the job is resized, changes nothing.
        """
        job = report_speed(self._parts.api_context, self._caller, name, report_.instances, report_.per_second)
        return json_response(job_views.job_view(job, self._remarks(job)))

    @operation(
        "DELETE",
        "/jobs/<name>",
        Action.CHANGE_JOB,
        "Cancel, stop or purge a job",
        {
            200: ("It was waiting and is cancelled, or it is purged: the job as it was.", job_models.Job),
            202: ("It holds capacity and is being stopped; it will not be resumed.", job_models.Job),
        },
        (404, 409),
    )
    def cancel_job(
        self,
        name: JobName,
        purge_: Purge = False,  # noqa: FBT002 -- of the query
        reason: CancelReason = None,
    ) -> Response[str]:
        """Cancel a waiting job at once, or stop one that holds capacity for good.

        With `purge=true`, delete a job that has ended, with its request and its history; its name stays reserved.
        """
        if purge_:
            return json_response(job_views.job_view(purge(self._parts.api_context, self._caller, name)))
        job = cancel(self._parts.api_context, self._caller, name, reason or "")
        return json_response(job_views.job_view(job), HTTPStatus.ACCEPTED if job.state in ACTIVE else HTTPStatus.OK)

    @operation(
        "PATCH",
        "/jobs/<name>",
        Action.CHANGE_JOB,
        "Change a job's priority or size bounds, hold it, or release it",
        {200: ("The job as changed.", job_models.Job)},
        (404, 409, 415, 422),
    )
    def change_job(self, name: JobName, change_: Annotated[job_models.JobChange, Body()]) -> Response[str]:
        """Apply all members as one change. A job that is held or released keeps its entry time.

        Bounds are sizes that the elastic job's step, or its listed values, lead to. The next pass resizes a running
        job that is larger than its maximum; one that is smaller than its minimum grows once instances are idle.
        """
        bounds = SizeBounds(change_.min_instances, change_.max_instances)
        context, caller = self._parts.api_context, self._caller
        job = change(context, caller, name, priority=change_.priority, hold=change_.hold, bounds=bounds)
        return json_response(job_views.job_view(job, self._remarks(job)))

    @operation(
        "GET",
        "/queue",
        Action.READ,
        "Show the queue in order",
        {200: ("One page of waiting jobs.", job_models.QueuePage), 304: UNCHANGED},
    )
    def get_queue(self, limit: Limit = LISTED, cursor: Cursor = None) -> Response[str]:
        """Return waiting jobs by falling priority, entry time and name; positions follow the order in force.

        Held jobs are not in the queue: see GET /jobs?state=held.
        """
        return self._unless_unchanged(lambda: pages.queue_page(self._parts.api_context, self._caller, limit, cursor))

    @operation(
        "GET",
        "/schedule",
        Action.READ,
        "Show the schedule",
        {200: ("The schedule of a period.", Schedule), 304: UNCHANGED},
    )
    def get_schedule(
        self,
        start: PeriodStart = None,
        end: PeriodEnd = None,
        pool: OnlyPool = None,
        limit: IntervalLimit = BARS,
    ) -> Response[str]:
        """Return past attempts, running jobs until their expected ends, and planned starts, by pool.

        Planned starts are the estimated starts of GET /queue. The period has at most 31 days.
        """
        context, caller = self._parts.api_context, self._caller
        return self._unless_unchanged(
            lambda: schedule_view(read_timeline(context, caller, start, end, pool=pool, limit=limit))
        )

    @operation(
        "GET",
        "/shares",
        Action.READ,
        "Show the shares",
        {200: ("All shares.", Shares), 304: UNCHANGED},
    )
    def get_shares(self) -> Response[str]:
        """Return what each share owns, uses, lends and borrows in each pool, with its usage and its budget."""
        context, caller = self._parts.api_context, self._caller
        return self._unless_unchanged(lambda: shares_view(read_shares(context, caller)))

    @operation(
        "GET",
        "/usage",
        Action.READ,
        "Report usage",
        {200: ("A part of the usage in a period.", Usage)},
    )
    def get_usage(
        self,
        start: UsageStart = None,
        end: UsageEnd = None,
        by: GroupedBy = By.SHARE,
        limit: JobsRead = MAX_JOBS,
        cursor: Cursor = None,
    ) -> Response[str]:
        """Return hours, dollars, waits, preemptions and lost work of a period by share, pool, user or priority.

        A response covers as many jobs as it may read; the numbers of all parts add up. The period has at most 366 days.
        """
        context, caller = self._parts.api_context, self._caller
        return json_response(usage_view(read_usage(context, caller, start, end, by=by, limit=limit, cursor=cursor)))

    @operation("GET", "/pools", Action.READ, "Show the pools", {200: ("All pools.", pool_models.Pools), 304: UNCHANGED})
    def get_pools(self, history: History = False) -> Response[str]:  # noqa: FBT002 -- a parameter of the query
        """Return the pools with their caps and their use, in instances."""
        context, caller = self._parts.api_context, self._caller
        return self._unless_unchanged(
            lambda: pool_views.pools(context, settings_in_force(context, caller, history=history), history=history)
        )

    @operation(
        "PUT",
        "/pools",
        Action.ADMINISTER,
        "Replace the pools",
        {200: ("All pools as they are now.", pool_models.Pools)},
        (409, 415),
    )
    def set_pools(self, settings: Annotated[pool_models.PoolSettings, Body()]) -> Response[str]:
        """Replace the pools. Jobs beyond a lowered cap and in removed pools keep running; no new jobs start there."""
        asked = [pool_views.pool_asked(each) for each in settings.pools]
        changed = set_pools(self._parts.api_context, self._caller, asked, version=settings.version)
        return json_response(pool_views.changed_pools(self._parts.api_context, changed))

    @operation(
        "PUT",
        "/pools/<name>",
        Action.ADMINISTER,
        "Create or replace a pool",
        {200: ("The pool as it is now.", pool_models.Pool)},
        (409, 415),
    )
    def set_pool(self, name: Pool, pool: Annotated[pool_models.NamedPool, Body()]) -> Response[str]:
        """Create or replace a pool. Omitted members have their defaults; other pools stay as they are."""
        done = put_pool(
            self._parts.api_context, self._caller, pool_views.named_pool_asked(name, pool), version=pool.version
        )
        return json_response(pool_views.changed_pool(self._parts.api_context, done, name))

    @operation(
        "PATCH",
        "/pools/<name>",
        Action.ADMINISTER,
        "Change a pool, or start or end its drain",
        {200: ("The pool as it is now.", pool_models.Pool)},
        (404, 409, 415),
    )
    def change_pool(self, name: Pool, change_: Annotated[pool_models.PoolChange, Body()]) -> Response[str]:
        """Change a pool; omitted members stay as they are. A draining pool starts no jobs and lets running ones end."""
        asked = pool_views.change_asked(change_)
        done = change_pool(self._parts.api_context, self._caller, name, asked, version=change_.version)
        return json_response(pool_views.changed_pool(self._parts.api_context, done, name))

    @operation(
        "DELETE",
        "/pools/<name>",
        Action.ADMINISTER,
        "Remove a pool",
        {200: ("The pool is removed.", pool_models.Removal)},
        (404, 409),
    )
    def remove_pool(
        self,
        name: Pool,
        force: Force = False,  # noqa: FBT002 -- a parameter of the query
        version: SettingsVersion = None,
    ) -> Response[str]:
        """Remove a pool. Waiting jobs that can run elsewhere do.

        Refused if jobs hold instances of it or can run nowhere else, unless forced; and if a share names it.
        """
        done = remove_pool(self._parts.api_context, self._caller, name, force=force, version=version)
        return json_response(pool_views.removal(self._parts.api_context, done))

    @operation("GET", "/settings", Action.READ, "Show the settings", {200: ("The settings in force.", SettingsInForce)})
    def get_settings(self) -> Response[str]:
        """Return all settings but the pools, default values included."""
        return _document(in_force(settings_in_force(self._parts.api_context, self._caller)))

    @operation(
        "PUT",
        "/settings",
        Action.ADMINISTER,
        "Replace the settings",
        {200: ("The settings as they are now.", SettingsInForce)},
        (409, 415),
    )
    def set_settings(self, settings: Annotated[Settings, Body()]) -> Response[str]:
        """Replace the settings; omitted ones have their defaults. If one is invalid, those in force stay."""
        done = set_policy(self._parts.api_context, self._caller, settings.document, version=settings.version)
        return _document(in_force(done))

    @operation(
        "POST",
        "/plan",
        Action.SUBMIT,
        "Forecast a submission",
        {200: ("Nothing was stored.", forecast_models.Plan)},
        SUBMIT_ERRORS,
    )
    def plan(self, request: Annotated[job_models.PlanRequest, Body()]) -> Response[str]:
        """Check the request as a submission would, and return its effects. Nothing is stored."""
        return json_response(plans.planned(self._parts, self._kinds, request.root, self._caller))

    @operation("GET", "/audit", Action.READ_AUDIT, "List changes and their callers", {200: ("One page.", AuditPage)})
    def list_audit(  # noqa: PLR0913, PLR0917 -- the parameters of the query
        self,
        since: Since = None,
        until: Until = None,
        job: OfJob = None,
        who: Who = None,
        action: OfAction = None,
        limit: EntryLimit = LISTED,
        cursor: Cursor = None,
    ) -> Response[str]:
        """Return the recorded changes of jobs, settings and pools, newest first.

        A page may have fewer entries than its limit, or none, and still name a next one.
        """
        query = AuditQuery(since=since, until=until, job=job, who=who, action=action, limit=limit, cursor=cursor)
        return json_response(audit_page_view(list_audit(self._parts.api_context, self._caller, query)))

    @operation("GET", "/manager", Action.READ, "Show the state of the manager", {200: ("Its state.", ManagerState)})
    def get_manager(self) -> Response[str]:
        """Return whether the manager is paused, and the newest comparison of the table with SageMaker."""
        return json_response(manager_view(manager_status(self._parts.api_context, self._caller)))

    @operation(
        "PUT", "/pause", Action.ADMINISTER, "Pause the manager", {200: ("The manager is paused.", ManagerState)}, (415,)
    )
    def pause(self, request: Annotated[PauseRequest, Body()]) -> Response[str]:
        """Pause the manager: no pass begins, and events are ignored. Running training jobs go on."""
        return json_response(manager_view(pause(self._parts.api_context, self._caller, request.reason)))

    @operation("DELETE", "/pause", Action.ADMINISTER, "Resume the manager", {200: ("It goes on.", ManagerState)})
    def resume(self) -> Response[str]:
        """Resume the manager; nothing changes if it is not paused."""
        return json_response(manager_view(resume(self._parts.api_context, self._caller)))

    @operation(
        "POST",
        "/restore",
        Action.ADMINISTER,
        "Compare a restored table with SageMaker",
        {202: ("The manager compares them within a minute: GET /manager.", ManagerState)},
        (409, 415),
    )
    def restore(self, request: Annotated[RestoreRequest, Body()]) -> Response[str]:
        """Ask the paused manager to list how the table differs from SageMaker, and to adopt the differences."""
        done = ask_restore(self._parts.api_context, self._caller, adopt=request.adopt)
        return json_response(manager_view(done), HTTPStatus.ACCEPTED)

    @operation("GET", "/export", Action.ADMINISTER, "Export the queue", {200: ("One page.", ExportPage)})
    def export_queue(self, limit: Limit = LISTED, cursor: Cursor = None) -> Response[str]:
        """Return settings, pools, and waiting and held jobs with their whole requests, secrets included.

        A page may have fewer jobs than its limit, or none, and still name a next one.
        """
        context = self._parts.api_context
        page = export_page(context, self._caller, limit, cursor)
        return json_response(export_view(page, self._parts.queue, context.clock.now()))

    @operation(
        "POST",
        "/import",
        Action.ADMINISTER,
        "Import an export",
        {200: ("The outcome of each job.", ImportReport)},
        (409, 413, 415),
    )
    def import_queue(self, request: Annotated[ImportRequest, Body()]) -> Response[str]:
        """Import settings, pools and jobs, which keep their priorities, entry times and submitters.

        Nothing is changed if a job cannot be imported. The same import again changes nothing.
        """
        context, asked = self._parts.api_context, import_asked(request)
        report = import_part(context, self._caller, self._parts.admission, asked, dry_run=request.dry_run)
        return json_response(import_view(report))

    @operation("GET", "/openapi.json", Action.DESCRIBE, "This document", {200: ("An OpenAPI 3.1 document.", None)})
    def openapi(self) -> Response[str]:
        """Return this document, in OpenAPI 3.1."""
        return Response(HTTPStatus.OK.value, "application/json", self._openapi)

    @property
    def _openapi(self) -> str:
        """The document; it takes a second to make, and is the same for all APIs with these kinds of jobs."""
        key = tuple(type(kind) for kind in self._kinds)
        if key not in _documents:
            _documents[key] = json.dumps(document(self._app, self._kinds))
        return _documents[key]

    def _unless_unchanged(self, answer: Callable[[], BaseModel]) -> Response[str]:
        return unless_unchanged(self._parts.api_context, self._app.current_event.raw_event, answer)

    @property
    def _caller(self) -> Caller:
        return caller_of(self._app.current_event.raw_event)

    def _remarks(self, job: Job) -> job_views.QueueStatus | None:
        return pages.queue_status_by_name(self._parts.api_context, [job]).get(job.name)


_documents: dict[tuple[type[ApiKind], ...], str] = {}
"""The documents that were made, by kinds of jobs."""


def _document(values: dict[str, Any]) -> Response[str]:
    return Response(HTTPStatus.OK.value, "application/json", json.dumps(values))
