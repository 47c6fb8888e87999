"""Routes a boto3 session's training jobs to the queue, through botocore's `before-call` and `after-call` events.

CreateTrainingJob goes to the queue. Describe, Stop, Update, Delete and the operations on tags of a job of the queue
apply to the job instead of one of its attempts, and lists have one entry for it. All other calls, and those for jobs
that the queue does not have, pass through unchanged; calls that have SageMaker use instances without the queue give a
warning. botocore provides these events for this use, so nothing is patched.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import ApiError, Conflict, NotFound
from trainmaster.client.kinds import is_training_job
from trainmaster.client.lists.search import Search
from trainmaster.client.lists.training_jobs import Listing, QueueJobs
from trainmaster.client.sdk import bypass
from trainmaster.client.sdk.attempts.logs import AttemptLogs
from trainmaster.client.sdk.attempts.metrics import AttemptMetrics
from trainmaster.client.sdk.describe import (
    arn_of,
    correct_description,
    description_of,
    is_unstarted,
    looks_ended,
    status_of,
)
from trainmaster.client.sdk.job_cache import JobCache, TransitionLog, all_attempt_names
from trainmaster.client.sdk.once import Once
from trainmaster.client.sdk.request_defaults import with_session_defaults
from trainmaster.client.sdk.response_codec import (
    BotoResponse,
    make_error_response,
    make_response,
    overwrite_response,
    request_of,
    rewrite_request,
)
from trainmaster.client.sdk.tags import priority_in, tags_of
from trainmaster.client.views.states import ENDED, WAITING
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

_AFTER = "trainmaster_after"
_TRAINING_JOB_ARN = ":training-job/"
_SUBMIT_AGAIN = "Cancel it and submit it again under another name to change its request."

_given = Once()
"""The warnings that this process has logged."""

_Change = Callable[["AWSResponse", dict[str, Any]], BotoResponse | None]


class Route:
    """Handlers that route a session's training jobs to the queue, with a cache of these jobs.

    `session` reads logs. `on_describe` is called with the job at every DescribeTrainingJob of a job of the queue.
    `message_of` returns the status message of a job that waits.
    `resources` replaces the instance type of all jobs, `elastic` makes them elastic, and `tags` are tags of all jobs
    (`with_session_defaults`). `on_bypass` is called with the operation and a warning for calls that bypass the queue.
    """

    def __init__(self, session: boto3.session.Session, api: ApiClient) -> None:
        self.enabled = True
        self.resources: str | None = None
        self.elastic: ElasticOptions | None = None
        self.tags: Mapping[str, str] = {}
        self.on_bypass: Callable[[str, str], None] = bypass.warn
        self.on_describe: Callable[[JobView], None] = _ignore
        self.message_of: Callable[[JobView], str] = sentence_of
        self.cache = JobCache(api)
        self._session = weakref.ref(session)
        self._siblings = _siblings.setdefault(session, weakref.WeakSet())
        self._siblings.add(self)
        self._lists = _lists_of(api)
        self._transitions = TransitionLog()
        self._logs = AttemptLogs(self, weakref.ref(session))
        self._metrics = AttemptMetrics(self, weakref.ref(session))
        self._handlers_by_operation: dict[
            str, Callable[[OperationModel, dict[str, Any], dict[str, Any]], BotoResponse | None]
        ] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": self._describe,
            "StopTrainingJob": self._stop,
            "UpdateTrainingJob": self._update,
            "DeleteTrainingJob": self._delete,
            "ListTrainingJobs": self._list,
            "Search": self._list,
            "ListTags": self._list_tags,
            "AddTags": self._add_tags,
            "DeleteTags": self._delete_tags,
        }

    def newest_view(self, name: str) -> JobDetailView | None:
        """Return the newest view of the job of this name or with an attempt of this name, without an API call.

        Several sessions of the SDK may share one of boto3. Each then has a route, and the first route answers what the
        last one asks.
        """
        seen = [view for route in self._siblings if route.enabled and (view := route.cache.seen(name))]
        return max(seen, key=lambda view: view[1])[0] if seen else None

    @property
    def api(self) -> ApiClient:
        """The client of the queue's API."""
        return self.cache.api

    @api.setter
    def api(self, api: ApiClient) -> None:
        if api is not self.cache.api:
            self.cache = JobCache(api)
            self._lists = _lists_of(api)

    @property
    def operations(self) -> frozenset[str]:
        """The operations of SageMaker that the handlers look at."""
        return frozenset((*self._handlers_by_operation, *bypass.OPERATIONS))

    def attach(self, events: BaseEventHooks) -> None:
        """Register on a session's or a client's events, replacing any other route; idempotent."""
        register(events, self._events())
        self.attach_readers(events)

    def attach_readers(self, events: BaseEventHooks) -> None:
        """Register only the handlers that join logs and metrics, beside other routes; other jobs are not affected."""
        self._logs.attach(events)
        self._metrics.attach(events)

    def detach(self, events: BaseEventHooks) -> None:
        """Unregister the handlers."""
        unregister(events, self._events())
        self._logs.detach(events)
        self._metrics.detach(events)

    def submit(self, request: dict[str, Any]) -> SubmissionView:
        """Submit a CreateTrainingJob request to the queue and log the response. Raises ApiError."""
        job = self.api.submit(self.with_defaults(request))
        logger.info("Submitted training job %s to the queue", job["jobName"])
        if job["wouldPreempt"]:
            logger.info("Training job %s preempts %s", job["jobName"], one_line(", ".join(job["wouldPreempt"])))
        for warning in job["warnings"]:
            if _given.is_first((job["jobName"], warning)):
                logger.warning("Training job %s: %s", job["jobName"], one_line(warning))
        return job

    def with_defaults(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a CreateTrainingJob request with the defaults of this route."""
        return with_session_defaults(request, self.resources, self.elastic, self.tags)

    def is_elsewhere(self, region: str) -> bool:
        """Return whether a Region is another than the queue's: its jobs bypass the queue."""
        return bypass.is_elsewhere(region, self.api)

    # -- botocore handlers

    def _events(self) -> Iterable[tuple[str, Callable[..., Any]]]:
        for operation in self._handlers_by_operation:
            yield f"before-call.sagemaker.{operation}", self._before
            yield f"after-call.sagemaker.{operation}", self._after
        for operation in bypass.OPERATIONS:
            yield f"before-call.sagemaker.{operation}", self._warn

    def _before(
        self, model: OperationModel, params: dict[str, Any], context: dict[str, Any], **_: object
    ) -> BotoResponse | None:
        if not self.enabled:
            return None
        if self.is_elsewhere(region := context["client_region"]):
            self._warn_elsewhere(model, params, region)
            return None
        try:
            return self._handlers_by_operation[model.name](model, params, context)
        except ApiError as error:
            return make_error_response(model, error)

    def _warn(self, model: OperationModel, params: dict[str, Any], **_: object) -> None:
        message = bypass.message_of(model.name, request_of(params)) if self.enabled else None
        if message is not None:
            self.on_bypass(model.name, message)

    def _warn_elsewhere(self, model: OperationModel, params: dict[str, Any], region: str) -> None:
        if model.name == "CreateTrainingJob" and is_for_queue(request_of(params)):
            self.on_bypass(model.name, bypass.region_message(region, self.api.region))

    def _after(
        self,
        http_response: AWSResponse,
        parsed: dict[str, Any],
        model: OperationModel,
        context: dict[str, Any],
        **_: object,
    ) -> None:
        """Have the handler that let the call pass change SageMaker's response."""
        change: _Change | None = context.pop(_AFTER, None)
        if change is None:
            return
        try:
            new = change(http_response, parsed)
        except ApiError as error:
            new = make_error_response(model, error)
        if new is not None:
            overwrite_response(http_response, parsed, new)

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
        context[_AFTER] = lambda http, parsed: self._corrected(model, job, context, (http, parsed))
        rewrite_request(params, TrainingJobName=_newest(job))
        return None

    def _training_job(self, name: str) -> JobDetailView | None:
        """Return the queue's training job of that name; None for other kinds, which SageMaker cannot describe."""
        job = self.cache.look_up(name)
        return job if job is not None and is_training_job(job) else None

    def _corrected(
        self, model: OperationModel, job: JobDetailView, context: dict[str, Any], response: BotoResponse
    ) -> BotoResponse | None:
        """Return SageMaker's description of the newest attempt as one of the job."""
        http, parsed = response
        if http.status_code >= 300:
            # The queue commits the name before it calls SageMaker, and a job may end in between: describe it from the
            # queue.
            return self._description(model, job, context) if _is_missing(parsed) else None
        job = self._refreshed(parsed, job)
        return self._with_transitions(job, (http, correct_description(parsed, job)))

    def _description(self, model: OperationModel, job: JobDetailView, context: dict[str, Any]) -> BotoResponse:
        members = model.output_shape.members if model.output_shape else {}
        described = description_of(job, context["client_region"], members, self.message_of(job))
        return self._with_transitions(job, make_response(model, described))

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
            job = self._training_job(name)
            return _refusal(model, _rejected_stop(job) if job is not None and job["jobState"] in ENDED else str(error))
        return make_response(model, {})

    def _update(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> BotoResponse | None:
        job = self._training_job(request_of(params)["TrainingJobName"])
        if job is None:
            return None
        if is_unstarted(job):
            return _refusal(model, f"{_state(job)} It has no instances to update. {_SUBMIT_AGAIN}")
        rewrite_request(params, TrainingJobName=_newest(job))
        return None

    def _delete(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        """Delete the attempts of a job that has ended, the newest last, and then the job from the queue."""
        job = self._training_job(request_of(params)["TrainingJobName"])
        if job is None:
            return None
        if job["jobState"] not in ENDED:
            message = f"{_state(job)} You can delete it when it has ended."
            return make_response(model, {"__type": "ResourceInUse", "message": message}, 400)
        if is_unstarted(job):
            self._purge(job)
            return make_response(model, {})
        self._delete_earlier(job, params, context)
        rewrite_request(params, TrainingJobName=_newest(job))
        context[_AFTER] = lambda http, parsed: self._purged(model, job, (http, parsed))
        return None

    def _delete_earlier(self, job: JobDetailView, params: dict[str, Any], context: dict[str, Any]) -> None:
        earlier = [name for name in all_attempt_names(job) if name != _newest(job)]
        if not earlier:
            return
        sagemaker = self._plain_client(params, context)
        for name in earlier:
            try:
                sagemaker.delete_training_job(TrainingJobName=name)
            except ClientError as error:
                if not _is_missing(error.response):
                    raise

    def _purged(self, model: OperationModel, job: JobDetailView, response: BotoResponse) -> BotoResponse | None:
        http, parsed = response
        if http.status_code >= 300 and not _is_missing(parsed):
            return None
        self._purge(job)
        return make_response(model, {})

    def _purge(self, job: JobDetailView) -> None:
        self.api.purge(job["jobName"])
        self.cache.forget(job["jobName"])

    def _plain_client(self, params: dict[str, Any], context: dict[str, Any]) -> Any:
        """Return a SageMaker client of the same session without these handlers. Raises ApiError without a session."""
        session = self._session()
        if session is None:
            raise ApiError("The boto3 session of this client no longer exists.")
        endpoint = params["url"].removesuffix(params["url_path"])  # an endpoint may have a path of its own
        client: Any = session.client("sagemaker", region_name=context["client_region"], endpoint_url=endpoint)
        self.detach(client.meta.events)
        return client

    def _list(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        response, change = self._lists[model.name].before(model, params, context["client_region"])
        if change is not None:
            context[_AFTER] = change
        return response

    def _list_tags(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        job = self._tagged(params)
        shown = job or self._attempted(params)
        if shown is None:
            return None
        own = make_response(model, {"Tags": tags_of(shown)})
        if job is not None and is_unstarted(job):
            return own
        if job is not None:
            _name_newest(params, job)
        context[_AFTER] = lambda _, parsed: own if _is_missing(parsed) else None
        return None

    def _add_tags(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> BotoResponse | None:
        """Pass tags on to the newest attempt; a job that waits takes its priority alone."""
        job = self._tagged(params)
        if job is None:
            return None
        if not is_unstarted(job):
            _name_newest(params, job)
            return None
        tags = request_of(params)["Tags"]
        priority = priority_in(tags)
        if isinstance(priority, str):
            return _refusal(model, f"{_state(job)} {priority}")
        self.api.change(job["jobName"], priority=priority)
        return make_response(model, {"Tags": tags})

    def _delete_tags(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> BotoResponse | None:
        job = self._tagged(params)
        if job is None:
            return None
        if is_unstarted(job):
            return _refusal(model, f"{_state(job)} Its tags cannot be deleted. {_SUBMIT_AGAIN}")
        _name_newest(params, job)
        return None

    def _tagged(self, params: dict[str, Any]) -> JobDetailView | None:
        """Return the training job of the queue whose ARN is in a request; None for other resources."""
        name = _name_in(params)
        return self._training_job(name) if name else None

    def _attempted(self, params: dict[str, Any]) -> JobDetailView | None:
        """Return the job, if known, of the attempt whose ARN is in a request: SageMaker may no longer have it."""
        name = _name_in(params)
        return self.cache.cached(name) if name else None


# The session's events keep its route alive; a strong reference here would leak both.
_routes: weakref.WeakKeyDictionary[boto3.session.Session, weakref.ref[Route]] = weakref.WeakKeyDictionary()
_siblings: weakref.WeakKeyDictionary[boto3.session.Session, weakref.WeakSet[Route]] = weakref.WeakKeyDictionary()
"""All routes of a session: those of the SDK's sessions over it, besides the one of `route_to_queue`."""


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


def _lists_of(api: ApiClient) -> dict[str, Listing | Search]:
    """Return what answers each operation that lists jobs."""
    return {"ListTrainingJobs": Listing(QueueJobs(api)), "Search": Search(QueueJobs(api))}


def _name_in(params: dict[str, Any]) -> str | None:
    """Return the training job's name in the ARN of a request; None for other resources."""
    _, is_training_job, name = request_of(params)["ResourceArn"].partition(_TRAINING_JOB_ARN)
    return name if is_training_job else None


def _name_newest(params: dict[str, Any], job: JobDetailView) -> None:
    """Replace the name in the ARN of a request by the newest attempt's."""
    prefix, separator, _ = request_of(params)["ResourceArn"].partition(_TRAINING_JOB_ARN)
    rewrite_request(params, ResourceArn=prefix + separator + _newest(job))


def _state(job: JobDetailView) -> str:
    state = "waits in the queue" if job["jobState"] in WAITING else f"is {job['jobState']}"
    return f"Training job {job['jobName']} {state}."


def _rejected_stop(job: JobDetailView) -> str:
    """Return SageMaker's message about a job that has ended, by whose wording programs recognize it."""
    return f"The request was rejected because the training job is in status {status_of(job)[0]}."


def _refusal(model: OperationModel, message: str) -> BotoResponse:
    """Return the error that SageMaker returns for a change that a job's status does not allow."""
    return make_response(model, {"__type": "ValidationException", "message": message}, 400)


def _ignore(_: JobView) -> None:
    """Ignore the job: plain boto3 prints nothing."""


def _is_missing(parsed: Any) -> bool:
    error = parsed.get("Error", {})
    return error.get("Code") == "ResourceNotFound" or "not found" in error.get("Message", "")


def register(events: BaseEventHooks, handlers: Iterable[tuple[str, Callable[..., Any]]]) -> None:
    """Register a route's handlers on a session's or a client's events, replacing any other route's; idempotent."""
    for event, handler in handlers:
        events.unregister(event, unique_id=_id_of(event))
        events.register(event, handler, unique_id=_id_of(event))


def unregister(events: BaseEventHooks, handlers: Iterable[tuple[str, Callable[..., Any]]]) -> None:
    """Unregister the handlers of these events, whichever route's they are."""
    for event, _ in handlers:
        events.unregister(event, unique_id=_id_of(event))


def _id_of(event: str) -> str:
    return f"trainmaster:{event}"
