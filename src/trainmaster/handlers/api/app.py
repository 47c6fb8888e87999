"""The API Lambda: each route parses, asks one use case, and renders its answer.

It must not decide anything, call SageMaker, or log what a request holds: hyperparameters and environment may be
secrets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from inspect import getdoc
from typing import Annotated, Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel

from trainmaster import bootstrap
from trainmaster.domain.jobs.job import ACTIVE, Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.handlers.api import pages, plans
from trainmaster.handlers.api.errors import unexpected
from trainmaster.handlers.api.openapi import OPERATIONS, document, methods_by_rule
from trainmaster.handlers.api.parameters import (
    LISTED,
    Cursor,
    Force,
    History,
    JobName,
    Limit,
    Pool,
    PoolName,
    SettingsVersion,
    Share,
    States,
    Why,
    known_parameters_only,
)
from trainmaster.handlers.api.resolver import Resolver, caller_of, request_id_of
from trainmaster.handlers.models import elastic as elastic_models
from trainmaster.handlers.models import jobs as job_models
from trainmaster.handlers.models import pools as pool_models
from trainmaster.handlers.models.settings import Settings, in_force
from trainmaster.handlers.views import jobs as job_views
from trainmaster.handlers.views import pools as pool_views
from trainmaster.images.handlers.api import received
from trainmaster.images.handlers.models import ImageJobRequest
from trainmaster.images.ports import Refusals
from trainmaster.ports.resizing import RendezvousControl
from trainmaster.service.capacity.pools import change_pool, put_pool, remove_pool, set_pools
from trainmaster.service.change import cancel, change, set_policy
from trainmaster.service.resizing.contract import Answer, Outcome
from trainmaster.service.resizing.custom import answer_resize
from trainmaster.service.submit import submit

# The package's name, so that the lines of all its modules come out structured and with the correlation id.
logger = Logger(service="trainmaster")
metrics = Metrics(namespace="Trainmaster", service="api")

# At DEBUG they write down what they are given: requests with their hyperparameters and environment.
for _talkative in ("aws_lambda_powertools", "botocore", "urllib3"):
    logging.getLogger(_talkative).setLevel(logging.INFO)

Request = Annotated[job_models.TrainingJobRequest, Body(description="The CreateTrainingJob request.")]


class Parts(plans.Parts, Protocol):
    """What the API needs of the application."""

    @property
    def rendezvous(self) -> RendezvousControl:
        """The rendezvous of elastic jobs."""

    @property
    def refusals(self) -> Refusals:
        """Requests for image jobs that were refused."""


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_REST, log_event=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Lambda entry point: a REST proxy event in, its answer out."""
    return answer(_app_of_this_environment, event, context)


def answer(app: Callable[[], Resolver], event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The answer of an app, whatever happens, and a line in the log about it."""
    try:
        made = app().resolve(event, context)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the caller gets the one shape
        made = unexpected(error, request_id_of(event)).proxy_response()
    _note(event, made["statusCode"])
    return made


@lru_cache(maxsize=1)
def _app_of_this_environment() -> Resolver:
    return build_app(bootstrap.application())


def build_app(application: Parts) -> Resolver:
    """The API over an application's parts: `resolve(event, context)` answers a REST proxy event."""
    app = Resolver(methods_by_rule())
    routes = Routes(app, application).by_operation()
    for name, operation in OPERATIONS.items():
        app.route(
            operation.rule,
            operation.method,
            summary=operation.summary,
            description=getdoc(routes[name]),
            responses=operation.responses(),
            operation_id=name,
            middlewares=[known_parameters_only],
        )(routes[name])
    return app


class Routes:
    """The routes; what their docstrings say is in the OpenAPI document."""

    def __init__(self, app: Resolver, parts: Parts) -> None:
        self._app, self._parts = app, parts

    def by_operation(self) -> dict[str, Callable[..., Response[str]]]:
        """The routes by the names of their operations."""
        return {
            "addJob": self.add_job,
            "addImageJob": self.add_image_job,
            "listJobs": self.list_jobs,
            "getJob": self.get_job,
            "getRendezvous": self.get_rendezvous,
            "answerResize": self.answer_resize,
            "cancelJob": self.cancel_job,
            "changeJob": self.change_job,
            "getQueue": self.get_queue,
            "getPools": self.get_pools,
            "setPools": self.set_pools,
            "setPool": self.set_pool,
            "changePool": self.change_pool,
            "removePool": self.remove_pool,
            "getSettings": self.get_settings,
            "setSettings": self.set_settings,
            "plan": self.plan,
            "openapi": self.openapi,
        }

    def add_job(self, request: Request) -> Response[str]:
        """Checks the request, stores it and wakes the manager.

        The same name and body again give the same answer (200); the same name with another body is refused (409).
        """
        made = submit(self._parts.api_context, self._parts.admission, request.root, self._caller)
        return _json(job_views.submission_view(made), HTTPStatus.ACCEPTED if made.new else HTTPStatus.OK)

    def add_image_job(self, request: Annotated[ImageJobRequest, Body()]) -> Response[str]:
        """Checks the request; its image's header is read next. A refusal then goes to the image dead-letter queue."""
        parts = self._parts
        return _json(
            *received(parts.api_context.store, parts.image_queue, parts.check_model, request.root, self._caller)
        )

    def plan(self, request: Annotated[job_models.PlanRequest, Body()]) -> Response[str]:
        """Checks the request as a submission would, and says what would come of it and for whom. Nothing is stored."""
        return _json(plans.planned(self._parts, request.root, self._caller))

    def list_jobs(
        self,
        state: States = [],  # noqa: B006 -- Powertools takes its default from here; nobody changes it
        share: Share = None,
        pool: PoolName = None,
        limit: Limit = LISTED,
        cursor: Cursor = None,
    ) -> Response[str]:
        """Jobs that hold capacity, waiting ones in queue order, held ones, then the newest that ended."""
        return _json(pages.jobs_page(self._parts.api_context, state, Filter(share=share, pool=pool), limit, cursor))

    def get_job(self, name: JobName, why: Why = False) -> Response[str]:  # noqa: FBT002 -- a parameter of the query
        """A job with its attempts, its history and the request that was submitted."""
        parts = self._parts
        job = pages.found(parts.api_context, name, None if parts.image_queue is None else parts.refusals)
        return _json(pages.job_detail(parts.api_context, job, why=why))

    def get_rendezvous(self, name: JobName) -> Response[str]:
        """The nodes of the newest attempt: members of the present world with their ranks, waiting and spare ones.

        What they say themselves; no node at all where none has come, or the job's program meets in another way.
        """
        return _json(pages.rendezvous_of(self._parts.api_context, self._parts.rendezvous, name))

    def answer_resize(self, name: JobName, answer_: Annotated[elastic_models.ResizeAnswer, Body()]) -> Response[str]:
        """The answer of whoever carries out a custom resize. The same answer again changes nothing.

        Refused where the resize of this token is over in another way than the answer says, as when its time has run
        out, or another answer came first: then what is recorded stands.
        """
        answer = Answer(**{**answer_.model_dump(), "outcome": Outcome(answer_.outcome)})
        job = answer_resize(self._parts.api_context, name, answer)
        return _json(job_views.job_view(job, self._remarks(job)))

    def cancel_job(self, name: JobName) -> Response[str]:
        """Takes a waiting job off the queue at once, or has one that holds capacity stopped for good."""
        job = cancel(self._parts.api_context, name, self._who)
        return _json(job_views.job_view(job), HTTPStatus.ACCEPTED if job.state in ACTIVE else HTTPStatus.OK)

    def change_job(self, name: JobName, change_: Annotated[job_models.JobChange, Body()]) -> Response[str]:
        """Both members at once are one change. A job that is held or released keeps its entry time."""
        job = change(self._parts.api_context, name, self._who, priority=change_.priority, hold=change_.hold)
        return _json(job_views.job_view(job, self._remarks(job)))

    def get_queue(self, limit: Limit = LISTED, cursor: Cursor = None) -> Response[str]:
        """Priority down, then entry time up, then name; positions are those of the order in force.

        Held jobs are not in the queue: see GET /jobs?state=held.
        """
        return _json(pages.queue_page(self._parts.api_context, limit, cursor))

    def get_pools(self, history: History = False) -> Response[str]:  # noqa: FBT002 -- a parameter of the query
        """Caps, and what becomes of them, in instances."""
        in_force = self._parts.api_context.store.settings(history=history)
        return _json(pool_views.pools(self._parts.api_context, in_force, history=history))

    def set_pools(self, settings: Annotated[pool_models.PoolSettings, Body()]) -> Response[str]:
        """Jobs that hold more than a lowered cap run on, and those of a pool that is gone; nothing new starts there."""
        asked = [pool_views.pool_asked(each) for each in settings.pools]
        return _json(
            pool_views.pools(
                self._parts.api_context, set_pools(self._parts.api_context, asked, version=settings.version)
            )
        )

    def set_pool(self, name: Pool, pool: Annotated[pool_models.NamedPool, Body()]) -> Response[str]:
        """What is absent is as by default; other pools stay as they are."""
        done = put_pool(self._parts.api_context, pool_views.named_pool_asked(name, pool), version=pool.version)
        return _json(pool_views.one_pool(self._parts.api_context, done, name))

    def change_pool(self, name: Pool, change_: Annotated[pool_models.PoolChange, Body()]) -> Response[str]:
        """What is absent stays as it is. A pool that drains starts nothing more, and lets end what runs there."""
        asked = pool_views.change_asked(change_)
        done = change_pool(self._parts.api_context, name, asked, version=change_.version)
        return _json(pool_views.one_pool(self._parts.api_context, done, name))

    def remove_pool(
        self,
        name: Pool,
        force: Force = False,  # noqa: FBT002 -- a parameter of the query
        version: SettingsVersion = None,
    ) -> Response[str]:
        """Jobs that wait for it and can run elsewhere do.

        Refused where jobs hold instances of it or can run nowhere else, unless forced; and where a share names it.
        """
        done = remove_pool(self._parts.api_context, name, force=force, version=version)
        return _json(pool_views.removal(self._parts.api_context, done))

    def get_settings(self) -> Response[str]:
        """All settings but the pools, the default ones too."""
        return _document(in_force(self._parts.api_context.store.settings()))

    def set_settings(self, settings: Annotated[Settings, Body()]) -> Response[str]:
        """What is absent is as by default. Where one setting is wrong, all those in force stay."""
        done = set_policy(self._parts.api_context, settings.document, version=settings.version)
        return _document(in_force(done))

    def openapi(self) -> Response[str]:
        """This document, in OpenAPI 3.1."""
        return _document(document(self._app))

    @property
    def _caller(self) -> str | None:
        return caller_of(self._app.current_event.raw_event)

    @property
    def _who(self) -> str:
        return self._caller or "an unknown caller"

    def _remarks(self, job: Job) -> job_views.QueueStatus | None:
        return pages.remarks_by_name(self._parts.api_context, [job]).get(job.name)


def _json(view: BaseModel, status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    # Unset are only the members that a reason of this type does not have.
    return Response(status.value, "application/json", view.model_dump_json(by_alias=True, exclude_unset=True))


def _document(values: dict[str, Any]) -> Response[str]:
    return Response(HTTPStatus.OK.value, "application/json", json.dumps(values))


def _note(event: dict[str, Any], status: int) -> None:
    """A line about the request, none of its contents, and metrics."""
    method, path = event.get("httpMethod"), event.get("path")
    logger.info("answered", extra={"method": method, "path": path, "status": status, "caller": caller_of(event)})
    if status == HTTPStatus.ACCEPTED and path == "/add-job":
        metrics.add_metric(name="Submitted", unit=MetricUnit.Count, value=1)
        metrics.flush_metrics()
