"""Routes a boto3 session's training jobs to the queue, through botocore's `before-call` and `after-call` events.

CreateTrainingJob goes to the queue. Describe, Stop, Update and ListTags of a job of the queue apply to the job instead
of one of its attempts. All other calls, and those for jobs that the queue does not have, pass through unchanged.
botocore provides these events for this use, so nothing is patched.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import ApiError, Conflict, NotFound
from trainmaster.client.kinds import is_training_job
from trainmaster.client.sdk.attempt_logs import AttemptLogs
from trainmaster.client.sdk.describe import arn_of, correct_description, description_of, is_unstarted, looks_ended
from trainmaster.client.sdk.job_cache import JobCache, TransitionLog
from trainmaster.client.sdk.request_defaults import with_session_defaults
from trainmaster.client.sdk.response_codec import (
    BotoResponse,
    make_error_response,
    make_response,
    overwrite_response,
    request_of,
    rewrite_request,
)
from trainmaster.client.views.wording import sentence_of
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSResponse
    from botocore.hooks import BaseEventHooks
    from botocore.model import OperationModel

    from trainmaster.client.sdk.elastic import ElasticOptions
    from trainmaster.client.views.types import JobDetailView, JobView, SubmissionView

logger = logging.getLogger("trainmaster")

_JOB = "trainmaster_job"
_TRAINING_JOB_ARN = ":training-job/"


class Route:
    """Handlers that route a session's training jobs to the queue, with a cache of these jobs.

    `session` reads logs. `on_describe` is called with the job at every DescribeTrainingJob of a job of the queue.
    `resources` replaces the instance type of all jobs, and `elastic` makes them elastic (`with_session_defaults`).
    """

    def __init__(self, session: boto3.session.Session, api: ApiClient) -> None:
        self.enabled = True
        self.resources: str | None = None
        self.elastic: ElasticOptions | None = None
        self.on_describe: Callable[[JobView], None] = _ignore
        self.cache = JobCache(api)
        self._transitions = TransitionLog()
        self._logs = AttemptLogs(self, weakref.ref(session))
        self._handlers_by_operation: dict[
            str, Callable[[OperationModel, dict[str, Any], dict[str, Any]], BotoResponse | None]
        ] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": self._describe,
            "StopTrainingJob": self._stop,
            "UpdateTrainingJob": self._update,
            "ListTags": self._tags,
        }

    @property
    def api(self) -> ApiClient:
        """The client of the queue's API."""
        return self.cache.api

    @api.setter
    def api(self, api: ApiClient) -> None:
        if api is not self.cache.api:
            self.cache = JobCache(api)

    def attach(self, events: BaseEventHooks) -> None:
        """Register on a session's or a client's events, replacing any other route; idempotent."""
        for event, handler in self._events():
            events.unregister(event, unique_id=_id_of(event))
            events.register(event, handler, unique_id=_id_of(event))
        self._logs.attach(events)

    def attach_logs(self, events: BaseEventHooks) -> None:
        """Register only the handlers that join logs, beside other routes; other jobs are not affected."""
        self._logs.attach(events)

    def detach(self, events: BaseEventHooks) -> None:
        """Unregister the handlers."""
        for event, _ in self._events():
            events.unregister(event, unique_id=_id_of(event))
        self._logs.detach(events)

    def submit(self, request: dict[str, Any]) -> SubmissionView:
        """Submit a CreateTrainingJob request to the queue and log the response. Raises ApiError."""
        job = self.api.submit(with_session_defaults(request, self.resources, self.elastic))
        logger.info("Training job %s is in the queue. %s", job["jobName"], sentence_of(job))
        if job["wouldPreempt"]:
            logger.info("Training job %s preempts %s", job["jobName"], one_line(", ".join(job["wouldPreempt"])))
        for warning in job["warnings"]:
            logger.warning("Training job %s: %s", job["jobName"], one_line(warning))
        return job

    # -- botocore handlers

    def _events(self) -> Iterable[tuple[str, Callable[..., Any]]]:
        for operation in self._handlers_by_operation:
            yield f"before-call.sagemaker.{operation}", self._before
        yield "after-call.sagemaker.DescribeTrainingJob", self._after_describe

    def _before(
        self, model: OperationModel, params: dict[str, Any], context: dict[str, Any], **_: object
    ) -> BotoResponse | None:
        if not self.enabled:
            return None
        try:
            return self._handlers_by_operation[model.name](model, params, context)
        except ApiError as error:
            return make_error_response(model, error)

    def _create(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        request = request_of(params)
        if not is_for_queue(request):
            return None
        self.submit(request)
        return make_response(model, {"TrainingJobArn": arn_of(request, context["client_region"])})

    def _describe(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        job = self._training_job(request_of(params)["TrainingJobName"])
        if job is None:
            return None
        self.on_describe(job)
        if is_unstarted(job):
            return self._description(model, job, context)
        context[_JOB] = job
        rewrite_request(params, TrainingJobName=_newest(job))
        return None

    def _training_job(self, name: str) -> JobDetailView | None:
        """Return the queue's training job of that name; None for other kinds, which SageMaker cannot describe."""
        job = self.cache.look_up(name)
        return job if job is not None and is_training_job(job) else None

    def _after_describe(
        self,
        http_response: AWSResponse,
        parsed: dict[str, Any],
        model: OperationModel,
        context: dict[str, Any],
        **_: object,
    ) -> None:
        job: JobDetailView | None = context.pop(_JOB, None)
        if job is None:
            return
        if http_response.status_code >= 300:
            # The queue commits the name before it calls SageMaker, and a job may end in between: describe it from the
            # queue.
            if _is_missing(parsed):
                overwrite_response(http_response, parsed, self._description(model, job, context))
            return
        job = self._refreshed(parsed, job)
        overwrite_response(
            http_response, parsed, self._with_transitions(job, (http_response, correct_description(parsed, job)))
        )

    def _description(self, model: OperationModel, job: JobDetailView, context: dict[str, Any]) -> BotoResponse:
        members = model.output_shape.members if model.output_shape else {}
        return self._with_transitions(job, make_response(model, description_of(job, context["client_region"], members)))

    def _with_transitions(self, job: JobDetailView, response: BotoResponse) -> BotoResponse:
        """Add the secondary-status transitions of earlier attempts."""
        transitions = response[1].get("SecondaryStatusTransitions", [])
        return response[0], response[1] | {"SecondaryStatusTransitions": self._transitions.extend(job, transitions)}

    def _refreshed(self, description: dict[str, Any], job: JobDetailView) -> JobDetailView:
        """Return the job as of after SageMaker's response: a preemption may have begun between the two calls."""
        if description["TrainingJobStatus"] not in ("Stopping", "Stopped") or looks_ended(description, job):
            return job
        try:
            return self.cache.look_up(job["jobName"]) or job
        except ApiError:
            return job

    def _stop(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> BotoResponse | None:
        name = request_of(params)["TrainingJobName"]
        if self._training_job(name) is None:
            return None
        try:
            self.api.cancel(name)
        except NotFound:
            return None
        except Conflict as error:
            # SageMaker returns the same error for a job that has ended.
            return make_response(model, {"__type": "ValidationException", "message": str(error)}, 400)
        return make_response(model, {})

    def _update(self, _: OperationModel, params: dict[str, Any], __: dict[str, Any]) -> BotoResponse | None:
        job = self._training_job(request_of(params)["TrainingJobName"])
        if job is not None and not is_unstarted(job):
            rewrite_request(params, TrainingJobName=_newest(job))
        return None

    def _tags(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> BotoResponse | None:
        arn: str = request_of(params)["ResourceArn"]
        prefix, is_training_job, name = arn.partition(_TRAINING_JOB_ARN)
        job = self._training_job(name) if is_training_job else None
        if job is None:
            return None
        if is_unstarted(job):
            return make_response(model, {"Tags": job["jobDetails"].get("Tags", [])})
        rewrite_request(params, ResourceArn=prefix + _TRAINING_JOB_ARN + _newest(job))
        return None


# The session's events keep its route alive; a strong reference here would leak both.
_routes: weakref.WeakKeyDictionary[boto3.session.Session, weakref.ref[Route]] = weakref.WeakKeyDictionary()


def route_to_queue(
    session: boto3.session.Session,
    api: ApiClient | str | None = None,
    *,
    clients: Iterable[Any] = (),
    resources: str | None = None,
    elastic: ElasticOptions | None = None,
) -> Route:
    """Send the session's training jobs to the queue instead of starting them at once.

    `api` is an ApiClient or the API's URL; None finds it as `ApiClient()` does, with the session's credentials.
    Pass clients that the session has already made in `clients`, else they are not routed. Routing again changes the API
    and is otherwise idempotent. Jobs of the queue keep their names for Describe, Stop and waiters. With `resources`,
    such as `accelerators=8,vcpus=96`, jobs request these instead of the instance type that they name. With `elastic`
    they are elastic; `ElasticOptions()` ends that.
    """
    existing = _routes.get(session, lambda: None)()
    client = client_for(api, session)
    route = existing or Route(session, client)
    if api is not None:
        route.api = client
    if resources is not None:
        route.resources = resources
    if elastic is not None:
        route.elastic = elastic
    route.enabled = True
    for events in (session.events, *(client.meta.events for client in clients)):
        route.attach(events)
    _routes[session] = weakref.ref(route)
    return route


def unroute(session: boto3.session.Session) -> None:
    """Undo `route_to_queue`, also for clients already made. Jobs in the queue stay there."""
    route = _routes.get(session, lambda: None)()
    if route is not None:
        route.enabled = False
        route.detach(session.events)


def client_for(api: ApiClient | str | None, session: boto3.session.Session) -> ApiClient:
    """Return the given client, or one for a URL (None: found) with the session's credentials."""
    return api if isinstance(api, ApiClient) else ApiClient(api, session=session)


def is_for_queue(request: dict[str, Any]) -> bool:
    """Return whether a CreateTrainingJob request is for the queue: a serverless customisation job uses no instances."""
    return "ResourceConfig" in request or "ServerlessJobConfig" not in request


def _newest(job: JobDetailView) -> str:
    """Return the newest attempt's name; the caller has checked that there is one."""
    return job["trainingJobName"] or job["jobName"]


def _ignore(_: JobView) -> None:
    """Ignore the job: plain boto3 prints nothing."""


def _is_missing(parsed: dict[str, Any]) -> bool:
    error = parsed.get("Error", {})
    return error.get("Code") == "ResourceNotFound" or "not found" in error.get("Message", "")


def _id_of(event: str) -> str:
    return f"trainmaster:{event}"
