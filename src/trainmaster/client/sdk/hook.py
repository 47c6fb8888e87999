"""Routes a boto3 session's training jobs to the queue, through botocore's `before-call` and `after-call` events.

CreateTrainingJob goes to the queue; Describe, Stop, Update and ListTags of a job that the queue knows are answered for
the job rather than for one of its attempts. Everything else, and every job that the queue does not know, passes through
untouched. It must not patch anything: botocore offers these events for this use.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import ApiError, Conflict, NotFound
from trainmaster.client.sdk.attempt_logs import AttemptLogs
from trainmaster.client.sdk.describe import arn_of, corrected, described, is_unstarted, misleads
from trainmaster.client.sdk.job_cache import KnownJobs
from trainmaster.client.sdk.request_defaults import asking
from trainmaster.client.sdk.response_codec import Answer, answer, overwrite, refusal, request_of, rewrite
from trainmaster.client.sdk.transition_log import Stories
from trainmaster.client.views.wording import sentence_of

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSResponse
    from botocore.hooks import BaseEventHooks
    from botocore.model import OperationModel

    from trainmaster.client.sdk.elastic import ElasticOptions
    from trainmaster.client.views.jobs import JobDetail, JobView, Submission

logger = logging.getLogger("trainmaster")

_JOB = "trainmaster_job"
_TRAINING_JOB_ARN = ":training-job/"


class Route:
    """A way for training jobs into the queue, with what is known of the jobs that went it.

    `session` reads logs. `announce` is called with the job at every DescribeTrainingJob of a job that the queue knows.
    With `resources` jobs ask for these instead of the instance type that they name, with `elastic` they may be resized
    (`asking`).
    """

    def __init__(self, session: boto3.session.Session, api: ApiClient) -> None:
        self.enabled = True
        self.resources: str | None = None
        self.elastic: ElasticOptions | None = None
        self.announce: Callable[[JobView], None] = _say_nothing
        self.known = KnownJobs(api)
        self._stories = Stories()
        self._logs = AttemptLogs(self, weakref.ref(session))
        self._dealings: dict[str, Callable[[OperationModel, dict[str, Any], dict[str, Any]], Answer | None]] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": self._describe,
            "StopTrainingJob": self._stop,
            "UpdateTrainingJob": self._update,
            "ListTags": self._tags,
        }

    @property
    def api(self) -> ApiClient:
        """The queue's API, for whatever else there is to ask it."""
        return self.known.api

    @api.setter
    def api(self, api: ApiClient) -> None:
        if api is not self.known.api:
            self.known = KnownJobs(api)

    def attach(self, events: BaseEventHooks) -> None:
        """Register on a session's or a client's events, in the place of any other route; again is the same as once."""
        for event, handler in self._handlers():
            events.unregister(event, unique_id=_id_of(event))
            events.register(event, handler, unique_id=_id_of(event))
        self._logs.attach(events)

    def attach_logs(self, events: BaseEventHooks) -> None:
        """Register only what joins the logs of attempts, beside other routes: it touches no job that is not its own."""
        self._logs.attach(events)

    def detach(self, events: BaseEventHooks) -> None:
        """Take the handlers away again."""
        for event, _ in self._handlers():
            events.unregister(event, unique_id=_id_of(event))
        self._logs.detach(events)

    def submit(self, request: dict[str, Any]) -> Submission:
        """Put a CreateTrainingJob request into the queue and tell what it answers. Raises ApiError."""
        job = self.api.submit(asking(request, self.resources, self.elastic))
        logger.info("Training job %s is in the queue. %s", job["jobName"], sentence_of(job))
        if job["wouldPreempt"]:
            logger.info("Training job %s makes step aside: %s", job["jobName"], ", ".join(job["wouldPreempt"]))
        for warning in job["warnings"]:
            logger.warning("Training job %s: %s", job["jobName"], warning)
        return job

    # -- what botocore calls

    def _handlers(self) -> Iterable[tuple[str, Callable[..., Any]]]:
        for operation in self._dealings:
            yield f"before-call.sagemaker.{operation}", self._before
        yield "after-call.sagemaker.DescribeTrainingJob", self._after_describe

    def _before(
        self, model: OperationModel, params: dict[str, Any], context: dict[str, Any], **_: object
    ) -> Answer | None:
        if not self.enabled:
            return None
        try:
            return self._dealings[model.name](model, params, context)
        except ApiError as error:
            return refusal(model, error)

    def _create(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> Answer | None:
        request = request_of(params)
        if not takes(request):
            return None
        self.submit(request)
        return answer(model, {"TrainingJobArn": arn_of(request, context["client_region"])})

    def _describe(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> Answer | None:
        job = self._training_job(request_of(params)["TrainingJobName"])
        if job is None:
            return None
        self.announce(job)
        if is_unstarted(job):
            return self._described(model, job, context)
        context[_JOB] = job
        rewrite(params, TrainingJobName=_newest(job))
        return None

    def _training_job(self, name: str) -> JobDetail | None:
        """The queue's job of that name, where it is one that SageMaker could be asked about: image jobs are none."""
        job = self.known.look_up(name)
        return None if job is None or job.get("image") else job

    def _after_describe(
        self,
        http_response: AWSResponse,
        parsed: dict[str, Any],
        model: OperationModel,
        context: dict[str, Any],
        **_: object,
    ) -> None:
        job: JobDetail | None = context.pop(_JOB, None)
        if job is None:
            return
        if http_response.status_code >= 300:
            # Its name is committed before SageMaker hears of it, and a job may end there: then the queue knows best.
            if _is_missing(parsed):
                overwrite(http_response, parsed, self._described(model, job, context))
            return
        job = self._judge(parsed, job)
        overwrite(http_response, parsed, self._continued(job, (http_response, corrected(parsed, job))))

    def _described(self, model: OperationModel, job: JobDetail, context: dict[str, Any]) -> Answer:
        members = model.output_shape.members if model.output_shape else {}
        return self._continued(job, answer(model, described(job, context["client_region"], members)))

    def _continued(self, job: JobDetail, one: Answer) -> Answer:
        """Add what was told of earlier attempts."""
        chapter = one[1].get("SecondaryStatusTransitions", [])
        return one[0], one[1] | {"SecondaryStatusTransitions": self._stories.continued(job, chapter)}

    def _judge(self, told: dict[str, Any], job: JobDetail) -> JobDetail:
        """The job as it is after SageMaker answered: a preemption may have begun between the two questions."""
        if told["TrainingJobStatus"] not in ("Stopping", "Stopped") or misleads(told, job):
            return job
        try:
            return self.known.look_up(job["jobName"]) or job
        except ApiError:
            return job

    def _stop(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> Answer | None:
        name = request_of(params)["TrainingJobName"]
        if self._training_job(name) is None:
            return None
        try:
            self.api.cancel(name)
        except NotFound:
            return None
        except Conflict as error:
            # SageMaker says so too when asked to stop a job that has ended.
            return answer(model, {"__type": "ValidationException", "message": str(error)}, 400)
        return answer(model, {})

    def _update(self, _: OperationModel, params: dict[str, Any], __: dict[str, Any]) -> Answer | None:
        job = self._training_job(request_of(params)["TrainingJobName"])
        if job is not None and not is_unstarted(job):
            rewrite(params, TrainingJobName=_newest(job))
        return None

    def _tags(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> Answer | None:
        arn: str = request_of(params)["ResourceArn"]
        prefix, found, name = arn.partition(_TRAINING_JOB_ARN)
        job = self._training_job(name) if found else None
        if job is None:
            return None
        if is_unstarted(job):
            return answer(model, {"Tags": job["jobDetails"].get("Tags", [])})
        rewrite(params, ResourceArn=prefix + _TRAINING_JOB_ARN + _newest(job))
        return None


# The session's own events keep its route alive; a strong reference here would keep both for ever.
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
    Clients that the session has made before are not reached unless they are given in `clients`. Routing again changes
    the API and is otherwise the same as once. Jobs of the queue keep their names for Describe, Stop and waiters.
    With `resources`, such as `accelerators=8,vcpus=96`, jobs ask for these instead of the instance type that they name.
    With `elastic` they may be resized; `ElasticOptions()` ends that.
    """
    known = _routes.get(session, lambda: None)()
    chosen = client_for(api, session)
    route = known or Route(session, chosen)
    if api is not None:
        route.api = chosen
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
    """Undo `route_to_queue`, for clients already made as well. Jobs in the queue stay there."""
    route = _routes.get(session, lambda: None)()
    if route is not None:
        route.enabled = False
        route.detach(session.events)


def client_for(api: ApiClient | str | None, session: boto3.session.Session) -> ApiClient:
    """The API that is meant: one handed in, or one at a URL (or found), called with the session's credentials."""
    return api if isinstance(api, ApiClient) else ApiClient(api, session=session)


def takes(request: dict[str, Any]) -> bool:
    """Whether a CreateTrainingJob request is for the queue: a serverless customisation job uses no instances."""
    return "ResourceConfig" in request or "ServerlessJobConfig" not in request


def _newest(job: JobDetail) -> str:
    """The newest attempt's name; the caller has seen to it that there is one."""
    return job["trainingJobName"] or job["jobName"]


def _say_nothing(_: JobView) -> None:
    """Unless a session wants it otherwise: plain boto3 prints nothing."""


def _is_missing(parsed: dict[str, Any]) -> bool:
    error = parsed.get("Error", {})
    return error.get("Code") == "ResourceNotFound" or "not found" in error.get("Message", "")


def _id_of(event: str) -> str:
    return f"trainmaster:{event}"
