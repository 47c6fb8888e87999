"""Intake of image jobs: reads the image's header, describes the endpoint, chooses a variant, stores the job.

There are two steps, so that slow work happens for many requests at once: `prepare` calls AWS and reads the image,
`enter` stores the job. A request whose job exists is not examined again, so its first answer stays true even if its
image or endpoint has changed since.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import TypeGuard

from trainmaster.domain.access.caller import UNKNOWN, Caller
from trainmaster.domain.errors import InvalidRequest, NameTaken, NotPermitted, ServiceError
from trainmaster.domain.jobs.job import ENDED, Job, JobState
from trainmaster.domain.policy.settings import Policy
from trainmaster.images.domain.endpoint import DELETED, Endpoint, Limits, key_of, never_described
from trainmaster.images.domain.request import ImageRequest
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.variant import choose_variant
from trainmaster.images.domain.work import ImageWork, image_work, work_of
from trainmaster.images.ports import Endpoints, Header, Headers, ImageIntake, KnownEndpoints, Submissions
from trainmaster.images.service.endpoints import described, is_fresh
from trainmaster.images.service.resource_access import EVERYTHING, ResourceAccess
from trainmaster.images.service.senders import Senders
from trainmaster.images.service.submissions import (
    SHARE_FIELD,
    Submission,
    check_submitter,
    name_taken,
    store_submission,
)
from trainmaster.images.service.url_check import Reachable, check_model
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Request, Store
from trainmaster.service.access import NO_ADMINS, Access
from trainmaster.service.admission.build_job import digest_of
from trainmaster.service.admission.shares import check_budget
from trainmaster.service.auditing.audit import DEFAULT_RETENTION
from trainmaster.service.change import ApiContext

log = logging.getLogger(__name__)

RETRY_DELAY = timedelta(seconds=30)
"""Time for which an endpoint is not described again after a failed attempt: each may take long."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Dependencies of the intake.

    Attributes:
        access: decides who may submit to a share.
        resources: decides which models, roles, images and outputs a caller may use.
        account: AWS account of the deployment; keys of endpoints in other accounts include theirs.
        reachable: checks models' URLs.
        vouching: unique id of the IAM role whose statement of a request's caller is trusted, the API's; "" for none.
        senders: those that may send requests themselves, and the callers that they are; without `vouching`, as in a
            simulator, senders are not told, and all may.
        audit_retention: how long audit entries are kept.
        submissions: sends jobs to the manager; None to store them here.
        asking: held while an endpoint is described, so that many requests for one endpoint cause one call.
    """

    store: Store
    headers: Headers
    endpoints: Endpoints
    known: KnownEndpoints
    clock: Clock
    limits: Limits
    reachable: Reachable
    access: Access = NO_ADMINS
    account: str = ""
    vouching: str = ""
    senders: Senders = field(default_factory=Senders)
    audit_retention: timedelta = DEFAULT_RETENTION
    resources: ResourceAccess = EVERYTHING
    submissions: Submissions | None = None
    asking: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request as it arrived.

    Attributes:
        request: its validated values.
        body: the same as JSON values, unchanged.
        caller: the caller; `UNKNOWN` unless it is known for certain.
        since: time of the request, UTC; its job's entry time.
        again: whether it was sent back from the dead-letter queue.
        identifier: of the message that brought it; "" for none.
    """

    request: ImageRequest
    body: Request
    caller: Caller = UNKNOWN
    since: datetime | None = None
    again: bool = False
    identifier: str = ""


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """The job of a request.

    Attributes:
        job: as stored, or as it would be stored.
        new: False if the same request had created it before.
    """

    job: Job
    new: bool


def existing_job(store: Store, asked: IncomingRequest) -> Job | None:
    """Return the job that this request has created; None without one of its name. Raises `NameTaken`."""
    there = store.find(asked.request.job_id)
    if there is not None and there.digest != digest_of(asked.body):
        raise name_taken(there.name)
    return there


def prepare(
    intake: Intake, asked: IncomingRequest, policy: Policy, failed: Callable[[str], None] = lambda _: None
) -> IntakeResult:
    """Return the job that the request has created or would create; only the endpoint's description is stored.

    Safe for several threads at once. `failed` receives the key of an endpoint that could not be described, or whose
    image could not be read. Raises `InvalidRequest`, `ShareNotAllowed`, `NameTaken`, each naming the field;
    `ServiceError` if a retry may help.
    """
    there = existing_job(intake.store, asked)
    if there is not None:
        _check_not_ended(there, asked)
        return IntakeResult(there, new=False)
    request = asked.request
    check_share_of(intake.access, asked, policy)
    intake.resources.check(asked.body, asked.caller)
    check_model(intake.reachable, request)
    key = key_of(request.processor.name, role=request.processor.assumed_role, account=intake.account)
    endpoint = _endpoint(intake, request, key, failed)
    variant = choose_variant(endpoint, request.target_variant, request.job_id)
    try:
        header = _header(intake, request, asked.caller.principal)
    except (InvalidRequest, ServiceError):
        failed(key)
        raise
    work = work_in(intake.limits, request, header.part, endpoint, variant)
    return IntakeResult(job_of(asked, work, intake.clock.now()), new=True)


def enter(intake: Intake, asked: IncomingRequest, prepared: IntakeResult, policy: Policy) -> IntakeResult:
    """Have the manager store the job that `prepare` has returned, unless it exists; without a manager, store it.

    Raises `BudgetExhausted`, `NameTaken`, `TooLarge`, `ServiceError`.
    """
    work = image_work(prepared.job)
    if not prepared.new or work is None:
        return prepared
    submission = _submission(asked, work)
    if intake.submissions is None:
        return IntakeResult(*store_submission(intake.store, intake.clock, submission, policy, intake.audit_retention))
    check_budget(intake.store, intake.clock, prepared.job, asked.body, policy, field=SHARE_FIELD)
    intake.submissions.send(submission.message(), asked.identifier or submission.name)
    return prepared


@dataclass(frozen=True, slots=True)
class RequestChecks:
    """Checks of requests that need no image.

    Attributes:
        reachable: checks models' URLs.
        resources: decides which models, roles, images and outputs a caller may use.
    """

    reachable: Reachable
    resources: ResourceAccess = EVERYTHING


def receive(
    context: ApiContext,
    queue: ImageIntake,
    checks: RequestChecks,
    asked: IncomingRequest,
    policy: Policy,
) -> Job | None:
    """Send a request to the intake function, which can read images; return its job if it exists already.

    Raises `AccessDenied`, `InvalidRequest`, `ShareNotAllowed`, `NameTaken`, `TooLarge`, `ServiceError`.
    """
    there = existing_job(context.store, asked)
    if there is None:
        check_share_of(context.access, asked, policy)
        checks.resources.check(asked.body, asked.caller)
        check_model(checks.reachable, asked.request)
        queue.send(json.dumps(asked.body, separators=(",", ":")), caller=asked.caller.arn)
    return there


def _check_not_ended(there: Job, asked: IncomingRequest) -> None:
    """Raise `NameTaken` for a dead letter that was sent back although its job has ended without success."""
    if asked.again and there.state in ENDED - {JobState.COMPLETED}:
        wrong = f"The job {there.name} is {there.state}, and an ended job cannot run again."
        raise NameTaken(wrong, field="jobId", hint="Send the request with another jobId.")


def check_share_of(access: Access, asked: IncomingRequest, policy: Policy) -> None:
    """Raise `ShareNotAllowed` for a share that the caller may not use.

    Raises `InvalidRequest` for a redacted request, an unknown share, or a priority above its ceiling.
    """
    request = asked.request
    check_submitter(access, asked.caller, asked.body, policy, share=request.share, priority=request.priority)


def _header(intake: Intake, request: ImageRequest, submitter: str) -> Header:
    try:
        return intake.headers.read(
            request.image_url,
            role=request.image_read_role,
            interest=request.region_of_interest,
            submitter=submitter,
        )
    except InvalidRequest as error:
        raise _named(error, "imageUrls[0]") from error
    except NotPermitted as error:
        if request.image_read_role is None:
            raise
        wrong = f"The role {request.image_read_role} cannot be assumed: {error}"
        hint = "Its trust policy must allow the queue's intake, which needs sts:AssumeRole for it (ImageRoleArns)."
        raise InvalidRequest(wrong, field="imageReadRole", hint=hint) from error


def _endpoint(intake: Intake, request: ImageRequest, key: str, failed: Callable[[str], None]) -> Endpoint:
    """Return the endpoint as stored, or described now if the entry is missing or old.

    After an error the last description holds, or the defaults if there is none; the next tick repeats the call.
    """
    remembered = _remembered(intake, key)
    if _is_usable(remembered, intake):
        return remembered
    with intake.asking:
        # Another thread may have described it while this one waited for the lock.
        remembered = _remembered(intake, key)
        if _is_usable(remembered, intake):
            return remembered
        found = None
        try:
            found = _described(intake, request, key)
        except InvalidRequest:
            failed(key)
            raise
        except ServiceError as error:
            failed(key)
            if isinstance(error, NotPermitted) and (remembered is None or remembered.described_at is None):
                raise _unreachable(request, error) from error
            log.warning("an endpoint cannot be described", extra={"endpoint": key, "cause": str(error)})
        seen = described(key, found, remembered, intake.clock.now())
        if remembered is None and found is None:
            # The tick describes it under this role.
            seen = replace(seen, role=request.processor.assumed_role)
        intake.known.remember(seen, remembered)
        return seen


def _is_usable(endpoint: Endpoint | None, intake: Intake) -> TypeGuard[Endpoint]:
    """Return whether the description is fresh, or SageMaker has just failed to give one."""
    now = intake.clock.now()
    if endpoint is None or endpoint.status == DELETED:
        return False
    if is_fresh(endpoint, intake.limits, now):
        return True
    return endpoint.tried_at is not None and timedelta(0) <= now - endpoint.tried_at < RETRY_DELAY


def _remembered(intake: Intake, key: str) -> Endpoint | None:
    return intake.known.known([key]).get(key)


def _described(intake: Intake, request: ImageRequest, key: str) -> Endpoint:
    role = request.processor.assumed_role
    if request.processor.is_http:
        return never_described(key)
    try:
        return replace(intake.endpoints.describe(key, role=role), role=role)
    except InvalidRequest as error:
        raise _named(error, "imageProcessor.name") from error


def work_in(limits: Limits, request: ImageRequest, part: Window, endpoint: Endpoint, variant: str) -> ImageWork:
    """Return the work that the request defines for this part of its image. Raises `InvalidRequest`."""
    square = (request.tile_size, request.tile_size)
    overlap = (request.tile_overlap, request.tile_overlap)
    cut = Cut(region=limits.region_size, tile=square, overlap=overlap)
    workers = endpoint.tile_workers or limits.tile_workers
    return work_of(endpoint.key, variant, part, cut, workers)


def job_of(asked: IncomingRequest, work: ImageWork, now: datetime) -> Job:
    """Return the job that the request creates."""
    return _submission(asked, work).job(now)


def _submission(asked: IncomingRequest, work: ImageWork) -> Submission:
    request = asked.request
    return Submission(
        name=request.job_id,
        body=asked.body,
        work=work,
        priority=request.priority,
        share=request.share,
        caller=asked.caller,
        since=asked.since,
    )


def _named(error: InvalidRequest, path: str) -> InvalidRequest:
    """Return the same error with the field of the request, if it names none."""
    return type(error)(error.message, field=error.field or path, hint=error.hint)


def _unreachable(request: ImageRequest, error: NotPermitted) -> InvalidRequest:
    role = request.processor.assumed_role
    who = "The queue's own role" if role is None else f"The role {role}"
    return InvalidRequest(
        f"{who} does not let the queue describe the endpoint {request.processor.name}: {error}",
        field="imageProcessor.name" if role is None else "imageProcessor.assumedRole",
        hint=(
            "It needs sagemaker:DescribeEndpoint and sagemaker:ListTags, and the queue sts:AssumeRole if that is not "
            "its own."
        ),
    )
