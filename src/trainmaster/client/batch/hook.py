"""Routes a boto3 session's service jobs of AWS Batch to the queue, through botocore's events.

The operations of service jobs and the read-only ones of resources are answered for the queues that the user names.
All other calls pass through to Batch: those for its other queues, for ids of its own, and for container jobs.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotConfigured, NotFound, Refused, Unreachable
from trainmaster.client.batch.answers import description_of, name_of, summary_of
from trainmaster.client.batch.jobs import PolledJobs
from trainmaster.client.batch.listing import ServiceJobs
from trainmaster.client.batch.names import ID_PREFIX, Arns, is_id_of_batch, is_own_id, job_in, queue_in
from trainmaster.client.batch.resources import Resources
from trainmaster.client.batch.submission import submission_of
from trainmaster.client.sdk import bypass
from trainmaster.client.sdk.hook import client_for, register, unregister
from trainmaster.client.sdk.once import Once
from trainmaster.client.sdk.response_codec import (
    BotoResponse,
    make_response,
    overwrite_response,
    request_of,
    rewrite_request,
)
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSResponse
    from botocore.hooks import BaseEventHooks
    from botocore.model import OperationModel

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView, SubmissionView

logger = logging.getLogger("trainmaster")

DEFAULT_QUEUE = "sagemaker-queue"
"""Name of the queue of a deployment that was given no other (parameter QueueName)."""
_AFTER = "trainmaster_batch_after"
_EXISTS = "Object already exists"
_READ_ONLY = "It stands for a Trainmaster queue: change it with `trainmaster settings` and `trainmaster pools`."
_DENIED = ("AccessDenied", "AccessDeniedException")
_BULK_CODE = "ClientException"
_given = Once()
"""The warnings that this process has logged."""

_Change = Callable[["AWSResponse", dict[str, Any]], "BotoResponse | None"]
_Handler = Callable[["OperationModel", dict[str, Any], dict[str, Any]], "BotoResponse | None"]
_Call = tuple["OperationModel", dict[str, Any], dict[str, Any]]
"""Model of an operation, its serialized request, and its context."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of resources in an operation that names several.

    Attributes:
        member: the request's member with their names.
        is_own: whether a name is one of the queue.
        describe: the queue's entries for names of its own.
        names: all names of the queue.
    """

    member: str
    is_own: Callable[[str], bool]
    describe: Callable[[Iterable[str], Arns], list[dict[str, Any]]]
    names: Iterable[str]


class BatchRoute:
    """Handlers that route a session's service jobs to the queue.

    `with_defaults` changes the CreateTrainingJob request of each. `on_bypass` is called with the operation and a
    warning for a job of another Region than the queue's, which bypasses it.
    """

    def __init__(self, session: boto3.session.Session, resources: Resources) -> None:
        self._session = weakref.ref(session)
        self.with_defaults: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged
        self.on_bypass: Callable[[str, str], None] = bypass.warn
        self.serve(resources)
        self._handlers: dict[str, _Handler] = {
            "SubmitServiceJob": self._submit,
            "DescribeServiceJob": self._describe,
            "ListServiceJobs": self._list,
            "UpdateServiceJob": self._update,
            "TerminateServiceJob": self._terminate,
            "TerminateServiceJobs": self._terminate_several,
            "GetJobQueueSnapshot": self._snapshot,
            "DescribeJobQueues": self._describe_queues,
            "DescribeServiceEnvironments": self._describe_environments,
            "DescribeSchedulingPolicies": self._describe_policies,
            "ListSchedulingPolicies": self._list_policies,
            "ListQuotaShares": self._list_shares,
            "DescribeQuotaShare": self._describe_share,
            "ListTagsForResource": self._list_tags,
            "TagResource": self._refuse_tags,
            "UntagResource": self._refuse_tags,
            **dict.fromkeys(_CHANGES, self._change_resource),
        }

    @property
    def api(self) -> ApiClient:
        """The client of the queue's API."""
        return self.resources.api

    def serve(self, resources: Resources) -> None:
        """Answer for these resources from now on, also to clients already made."""
        self.enabled = True
        self.resources = resources
        self.jobs = PolledJobs(resources.api)
        self._listing = ServiceJobs(self.jobs)
        self._owner: tuple[str, str] | None = None

    @property
    def operations(self) -> frozenset[str]:
        """The operations of Batch that the handlers look at."""
        return frozenset(self._handlers)

    def attach(self, events: BaseEventHooks) -> None:
        """Register on a session's or a client's events, replacing any other route; idempotent."""
        register(events, self._events())

    def detach(self, events: BaseEventHooks) -> None:
        """Unregister the handlers."""
        unregister(events, self._events())

    def _events(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        for operation in self._handlers:
            yield f"before-call.batch.{operation}", self._before
            yield f"after-call.batch.{operation}", self._after

    def _before(
        self, model: OperationModel, params: dict[str, Any], context: dict[str, Any], **_: object
    ) -> BotoResponse | None:
        if not self.enabled:
            return None
        if bypass.is_elsewhere(region := context["client_region"], self.api):
            self._warn_elsewhere(model, params, region)
            return None
        try:
            return self._handlers[model.name](model, params, context)
        except ApiError as error:
            return _error(model, error)

    def _after(self, http_response: AWSResponse, parsed: dict[str, Any], context: dict[str, Any], **_: object) -> None:
        """Have the handler that let the call pass change Batch's response."""
        change: _Change | None = context.pop(_AFTER, None)
        new = change(http_response, parsed) if change is not None else None
        if new is not None:
            overwrite_response(http_response, parsed, new)

    def _warn_elsewhere(self, model: OperationModel, params: dict[str, Any], region: str) -> None:
        if model.name == "SubmitServiceJob" and self.resources.has_queue(request_of(params)["jobQueue"]):
            self.on_bypass(model.name, bypass.region_message(region, self.api.region))

    # -- jobs

    def _submit(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        request = request_of(params)
        if not self.resources.has_queue(request["jobQueue"]):
            return None
        submission = submission_of(request, self.resources.queues[queue_in(request["jobQueue"])])
        payload, job = self._submit_under_a_free_name(map(self.with_defaults, submission.requests()))
        name = payload["TrainingJobName"]
        logger.info("Submitted training job %s to the queue", name)
        for warning in (*submission.warnings, *job["warnings"]):
            if _given.is_first((name, warning)):
                logger.warning("Training job %s: %s", name, one_line(warning))
        self.jobs.add(job, payload)
        arns = Arns.of_role(payload["RoleArn"], context["client_region"])
        self._owner = (arns.partition, arns.account)
        ids = {"jobId": ID_PREFIX + name, "jobArn": arns.of_job(name), "jobName": request["jobName"]}
        return make_response(model, ids)

    def _submit_under_a_free_name(self, requests: Iterator[dict[str, Any]]) -> tuple[dict[str, Any], SubmissionView]:
        """Submit the first of the requests whose name no other job has; return it with the job. Raises ApiError."""
        last: ApiError | None = None
        for request in requests:
            try:
                return request, self.api.submit(request)
            except Conflict as error:
                if error.type != "NameTaken":
                    raise
                last = error
        raise last or Conflict("There is no name for the job.")

    def _describe(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        job = self._job(request_of(params)["jobId"])
        if job is None:
            return None
        arns = Arns.of_role(job["jobDetails"]["RoleArn"], context["client_region"])
        return make_response(model, description_of(job, arns, self.resources.queue_of(job["share"])))

    def _list(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        request = request_of(params)
        if not self.resources.has_queue(request.get("jobQueue", "")):
            return None
        page, token = self._listing.page(request, self.resources.queues[queue_in(request["jobQueue"])])
        arns = self._arns(context) if page else None
        entries = [summary_of(job, arns, self._listing.name_of(job)) for job in page if arns is not None]
        return make_response(model, {"jobSummaryList": entries, **({"nextToken": token} if token else {})})

    def _update(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        request = request_of(params)
        job = self._job(request["jobId"])
        if job is None:
            return None
        self.api.change(job["jobName"], priority=request["schedulingPriority"])
        self.jobs.forget(job["jobName"])
        arns = Arns.of_role(job["jobDetails"]["RoleArn"], context["client_region"])
        ids = {"jobId": ID_PREFIX + job["jobName"], "jobArn": arns.of_job(job["jobName"]), "jobName": name_of(job)}
        return make_response(model, ids)

    def _terminate(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> BotoResponse | None:
        request = request_of(params)
        job = self._job(request["jobId"])
        if job is None:
            return None
        self._cancel(job["jobName"], request["reason"])
        return make_response(model, {})

    def _terminate_several(
        self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]
    ) -> BotoResponse | None:
        """Terminate jobs of the queue and have Batch terminate the others; unknown ids count as done, as at Batch."""
        request = request_of(params)
        own = [job_id for job_id in request["jobs"] if is_own_id(job_id)]
        if not own:
            return None
        done: dict[str, list[Any]] = {"successful": [], "errors": []}
        for job_id in own:
            try:
                self._cancel(job_in(job_id), request["reason"])
            except NotFound:
                done["successful"].append(job_id)
            except ApiError as error:
                done["errors"].append({"job": job_id, "code": _BULK_CODE, "message": str(error)})
            else:
                done["successful"].append(job_id)
        rest = [job_id for job_id in request["jobs"] if job_id not in own]
        return _with_the_rest((model, params, context), "jobs", rest, done)

    def _cancel(self, name: str, reason: str) -> None:
        """Cancel or stop a job; as at Batch, one that has ended stays as it is. Raises ApiError."""
        try:
            self.api.cancel(name, reason)
        except Conflict:
            logger.debug("Training job %s has ended", name)
        self.jobs.forget(name)

    def _snapshot(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> BotoResponse | None:
        if not self.resources.has_queue(request_of(params)["jobQueue"]):
            return None
        return make_response(model, self.resources.snapshot(self._arns(context)))

    def _job(self, job_id: str) -> JobDetailView | None:
        """Return the job of an id, ARN or name; None if it is Batch's. Raises Refused if it is the queue's and gone."""
        if is_id_of_batch(job_id):
            return None
        job = self.jobs.find(job_in(job_id))
        if job is None and is_own_id(job_id):
            raise Refused(f"There is no job {job_in(job_id)}.", field="jobId", hint="It may have been purged.")
        return job

    # -- resources

    def _describe_queues(self, *call: Any) -> BotoResponse | None:
        own = self.resources
        return self._several(call, _Kind("jobQueues", own.has_queue, own.describe_queues, own.queues), "jobQueues")

    def _describe_environments(self, *call: Any) -> BotoResponse | None:
        own, member = self.resources, "serviceEnvironments"
        kind = _Kind(member, own.has_environment, own.describe_environments, own.environments)
        return self._several(call, kind, member)

    def _describe_policies(self, *call: Any) -> BotoResponse | None:
        own = self.resources
        kind = _Kind("arns", own.has_policy, own.describe_policies, own.policies)
        return self._several(call, kind, "schedulingPolicies")

    def _list_policies(self, *call: Any) -> BotoResponse | None:
        own = self.resources
        kind = _Kind("arns", own.has_policy, _arns_of_policies, own.policies)
        return self._several(call, kind, "schedulingPolicies")

    def _several(self, call: _Call, kind: _Kind, result: str) -> BotoResponse | None:
        """Answer for the queue's resources of a request; Batch's own, and all others of a list, come from Batch."""
        model, params, context = call
        request = request_of(params)
        named: list[str] = request.get(kind.member) or []
        own = [name for name in named if kind.is_own(name)] if named else sorted(kind.names)
        if not own or (not named and "nextToken" in request):
            return None
        answer = {result: kind.describe(own, self._arns(context))}
        if not named:
            context[_AFTER] = lambda http, parsed: _joined(model, answer, http, parsed)
            return None
        return _with_the_rest(call, kind.member, [name for name in named if name not in own], answer)

    def _list_shares(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> Any:
        queue = request_of(params)["jobQueue"]
        if not self.resources.has_queue(queue):
            return None
        return make_response(model, {"quotaShares": self.resources.list_shares(queue, self._arns(context))})

    def _describe_share(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> Any:
        arn = request_of(params)["quotaShareArn"]
        if not self.resources.has_queue(arn):
            return None
        return make_response(model, self.resources.describe_share(arn, self._arns(context)))

    def _change_resource(self, model: OperationModel, params: dict[str, Any], _: dict[str, Any]) -> Any:
        """Refuse to change a resource of the queue, as Batch refuses to create what exists."""
        member, kind = _CHANGES[model.name]
        request = request_of(params)
        if not getattr(self.resources, f"has_{kind}")(request.get(member, "")):
            return None
        share = request.get("quotaShareName")
        if model.name.startswith("Create") and (share is None or self.resources.has_share(share)):
            return make_response(model, {"__type": "ClientException", "message": _EXISTS}, 400)
        return make_response(model, {"__type": "ClientException", "message": _READ_ONLY}, 400)

    def _list_tags(self, model: OperationModel, params: dict[str, Any], context: dict[str, Any]) -> Any:
        arn = _arn_in(params)
        if is_own_id(arn):
            job = self._job(arn)
            described = description_of(job, self._arns(context), "") if job else {}
            return make_response(model, {"tags": described.get("tags", {})})
        return make_response(model, {"tags": {}}) if self._is_resource(arn) else None

    def _refuse_tags(self, _: OperationModel, params: dict[str, Any], __: dict[str, Any]) -> BotoResponse | None:
        arn = _arn_in(params)
        if not is_own_id(arn) and not self._is_resource(arn):
            return None
        raise Refused("The tags of the queue's jobs and resources cannot change.", field="resourceArn")

    def _is_resource(self, arn: str) -> bool:
        own = self.resources
        return any(
            f":{kind}/" in arn and has(arn)
            for kind, has in (
                ("job-queue", own.has_queue),
                ("service-environment", own.has_environment),
                ("scheduling-policy", own.has_policy),
            )
        )

    def _arns(self, context: Mapping[str, Any]) -> Arns:
        """Return the ARNs of the queue's account: that of any job's role, else the caller's. Raises ApiError."""
        if self._owner is None:
            self._owner = self._find_owner(context["client_region"])
        partition, account = self._owner
        return Arns(partition, context["client_region"], account)

    def _find_owner(self, region: str) -> tuple[str, str]:
        for job in self.api.jobs(limit=1)["jobs"]:
            arns = Arns.of_role(self.api.job(job["jobName"])["jobDetails"]["RoleArn"], region)
            return arns.partition, arns.account
        session = self._session()
        if session is None:
            raise ApiError("The boto3 session of this client no longer exists.")
        identity = session.client("sts", region_name=region).get_caller_identity()
        return identity["Arn"].split(":")[1], identity["Account"]


_CHANGES = {
    "CreateJobQueue": ("jobQueueName", "queue"),
    "UpdateJobQueue": ("jobQueue", "queue"),
    "DeleteJobQueue": ("jobQueue", "queue"),
    "CreateServiceEnvironment": ("serviceEnvironmentName", "environment"),
    "UpdateServiceEnvironment": ("serviceEnvironment", "environment"),
    "DeleteServiceEnvironment": ("serviceEnvironment", "environment"),
    "CreateSchedulingPolicy": ("name", "policy"),
    "UpdateSchedulingPolicy": ("arn", "policy"),
    "DeleteSchedulingPolicy": ("arn", "policy"),
    "CreateQuotaShare": ("jobQueue", "queue"),
    "UpdateQuotaShare": ("quotaShareArn", "queue"),
    "DeleteQuotaShare": ("quotaShareArn", "queue"),
}
"""Operations that change a resource, with the member that names it and its kind."""

# The session's events keep its route alive; a strong reference here would leak both.
_routes: weakref.WeakKeyDictionary[boto3.session.Session, weakref.ref[BatchRoute]] = weakref.WeakKeyDictionary()


def route_batch(  # noqa: PLR0913 -- one parameter for each kind of name
    session: boto3.session.Session | None = None,
    api: ApiClient | str | None = None,
    *,
    queues: Iterable[str] | Mapping[str, str | None] = (DEFAULT_QUEUE,),
    environments: Iterable[str] = (),
    policies: Iterable[str] = (),
    clients: Iterable[Any] = (),
) -> BatchRoute:
    """Have the queue run the service jobs that a session submits to AWS Batch queues of these names.

    `session` is boto3's default session if it is None, which SageMaker's `TrainingQueue` uses. `api` is an ApiClient or
    the API's URL; None finds it as `ApiClient()` does. `queues` are names of job queues, or a map of names to the share
    that each stands for; `environments` and `policies` are names of service environments (the queues' by default) and
    scheduling policies for which the queue answers too. Pass Batch clients that the session has already made in
    `clients`. Routing again replaces the names. Everything else passes through to AWS Batch.
    """
    session = session or _default_session()
    names = dict(queues) if isinstance(queues, Mapping) else dict.fromkeys(queues)
    if not names:
        raise ValueError("route_batch needs the name of a job queue")
    existing = _routes.get(session, lambda: None)()
    client = existing.api if existing is not None and api is None else client_for(api, session)
    resources = Resources(client, names, frozenset(environments) or frozenset(names), frozenset(policies))
    route = existing or BatchRoute(session, resources)
    route.serve(resources)
    for events in (session.events, *(each.meta.events for each in clients)):
        route.attach(events)
    _routes[session] = weakref.ref(route)
    return route


def include_queue(name: str, api: ApiClient | str | None = None) -> BatchRoute:
    """Return the route of boto3's default session, which answers for the queue of this name from now on.

    The default session is set up again by `boto3.setup_default_session`, and has no route then.
    """
    existing = route_of()
    if existing is None:
        return route_batch(api=api, queues=[name])
    known = existing.resources
    if api in (None, known.api) and name in known.queues:
        return existing
    queues = {**known.queues, name: known.queues.get(name)}
    environments, policies = known.environments, known.policies
    return route_batch(api=api, queues=queues, environments=environments, policies=policies)


def unroute_batch(session: boto3.session.Session | None = None) -> None:
    """Undo `route_batch`, also for clients already made. Jobs in the queue stay there."""
    session = session or _default_session()
    route = _routes.get(session, lambda: None)()
    if route is not None:
        route.enabled = False
        route.detach(session.events)


def route_of(session: boto3.session.Session | None = None) -> BatchRoute | None:
    """Return the session's route, None if it has none."""
    route = _routes.get(session or _default_session(), lambda: None)()
    return route if route is not None and route.enabled else None


def _default_session() -> boto3.session.Session:
    """Return boto3's default session, which `boto3.client` uses, and set one up if there is none."""
    import boto3

    if boto3.DEFAULT_SESSION is None:
        boto3.setup_default_session()
    default: Any = boto3.DEFAULT_SESSION
    session: boto3.session.Session = default
    return session


def _error(model: OperationModel, error: ApiError) -> BotoResponse:
    """Return the API's error as one of Batch's, with the hint in the message."""
    if isinstance(error, Forbidden):
        code, status = "AccessDeniedException", 403
    elif isinstance(error, Unreachable | NotConfigured):
        code, status = "ServerException", 500
    else:
        code, status = "ClientException", 400
    return make_response(model, {"__type": code, "message": str(error)}, status)


def _with_the_rest(call: _Call, member: str, rest: list[str], own: dict[str, list[Any]]) -> BotoResponse | None:
    """Return the own answer if there is no rest; otherwise have Batch answer the rest, and join both."""
    model, params, context = call
    if not rest:
        return make_response(model, own)
    rewrite_request(params, **{member: rest})
    context[_AFTER] = lambda http, parsed: _joined(model, own, http, parsed)
    return None


def _joined(
    model: OperationModel, own: dict[str, list[Any]], http: AWSResponse, parsed: dict[str, Any]
) -> BotoResponse | None:
    """Return Batch's answer with the own one before it; the own one alone for callers without access to Batch."""
    if http.status_code >= 300:
        return make_response(model, own) if parsed.get("Error", {}).get("Code") in _DENIED else None
    shown = make_response(model, own)[1]
    return http, parsed | {member: [*shown[member], *parsed.get(member, [])] for member in own}


def _unchanged(request: dict[str, Any]) -> dict[str, Any]:
    return request


def _arns_of_policies(names: Iterable[str], arns: Arns) -> list[dict[str, Any]]:
    return [{"arn": arns.of_policy(name)} for name in names]


def _arn_in(params: Mapping[str, Any]) -> str:
    """Return the ARN in the path of a request on tags."""
    return unquote(params["url_path"].partition("/v1/tags/")[2])
