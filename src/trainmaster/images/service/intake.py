"""A request for an image job becomes a waiting job: its image looked at, its endpoint and variant known, stored once.

In two steps, so that what takes time happens for many requests at once: `look_at` asks AWS and the image, `enter`
stores. A request that is there already is never looked at again, so what it was told once stays true whatever has
become of its image or endpoint. It must not read images or messages itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import TypeGuard

from trainmaster.domain.errors import InvalidRequest, NameTaken, NotPermitted, ServiceError
from trainmaster.domain.jobs.job import ENDED, Change, Job, JobState
from trainmaster.domain.policy.settings import Policy
from trainmaster.images.domain.endpoint import Endpoint, Limits, key_of, never_described
from trainmaster.images.domain.refusal import Refusal
from trainmaster.images.domain.request import ImageRequest
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.variant import choose_variant
from trainmaster.images.domain.work import ImageWork, work_of
from trainmaster.images.ports import Endpoints, Header, Headers, ImageIntake, KnownEndpoints, Refusals
from trainmaster.images.service.endpoints import described, is_fresh
from trainmaster.images.service.url_check import Reachable, check_model
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Request, Store
from trainmaster.service.admission.build_job import digest_of
from trainmaster.service.admission.shares import check_budget, check_share

log = logging.getLogger(__name__)

SHARE_FIELD = "trainmaster.share"
SPARED_FOR = timedelta(seconds=30)
"""For how long SageMaker is not asked again after an endpoint that it could not describe: each try may take long."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What taking requests in needs.

    Attributes:
        account: AWS account of the deployment; endpoints of others are told apart by theirs.
        reachable: looks at models' URLs.
        vouching: unique id of the IAM role whose word on who asks is believed: the API's; "" for nobody's.
        asking: held while an endpoint is described, so that many requests for one endpoint ask once.
    """

    store: Store
    headers: Headers
    endpoints: Endpoints
    known: KnownEndpoints
    clock: Clock
    limits: Limits
    reachable: Reachable
    account: str = ""
    vouching: str = ""
    asking: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came.

    Attributes:
        request: what it asks for.
        body: the same as JSON values, kept as they came.
        caller: IAM ARN of who asks; None where nobody vouches for one.
        since: when it was asked, UTC; its job's entry time.
        again: whether it comes back from the dead-letter queue.
    """

    request: ImageRequest
    body: Request
    caller: str | None = None
    since: datetime | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """A request's job.

    Attributes:
        job: as it is stored, or would be.
        new: False where the same request had been taken in before.
    """

    job: Job
    new: bool


def there_already(store: Store, asked: Asked) -> Job | None:
    """The job that this very request has made; None where there is none of its name. Raises `NameTaken`."""
    there = store.find(asked.request.job_id)
    if there is not None and there.digest != digest_of(asked.body):
        raise _taken(there.name)
    return there


def look_at(intake: Intake, asked: Asked, policy: Policy, failed: Callable[[str], None] = lambda _: None) -> Taken:
    """The job that the request has made, or would make; nothing is stored but what the endpoint is like.

    Several threads may do this at once. `failed` is told the key of an endpoint that could not be described, or whose
    image could not be read. Raises `InvalidRequest`, `ShareNotAllowed`, `NameTaken`, each naming the field;
    `ServiceError` where trying again may help.
    """
    there = there_already(intake.store, asked)
    if there is not None:
        _check_not_in_vain(there, asked)
        return Taken(there, new=False)
    request = asked.request
    check_share_of(asked, policy)
    check_model(intake.reachable, request)
    key = key_of(request.processor.name, role=request.processor.assumed_role, account=intake.account)
    endpoint = _endpoint(intake, request, key, failed)
    variant = choose_variant(endpoint, request.target_variant, request.job_id)
    try:
        header = _header(intake, request)
    except (InvalidRequest, ServiceError):
        failed(key)
        raise
    work = work_in(intake.limits, request, header.part, endpoint, variant)
    return Taken(job_of(asked, work, intake.clock.now()), new=True)


def enter(intake: Intake, asked: Asked, looked_at: Taken, policy: Policy) -> Taken:
    """Store what `look_at` has made, unless it is there already.

    Raises `BudgetExhausted`, `NameTaken`, `TooLarge`, `ServiceError`.
    """
    if not looked_at.new:
        return looked_at
    job = looked_at.job
    check_budget(intake.store, intake.clock, job, asked.body, policy, field=SHARE_FIELD)
    stored = intake.store.submit(job, asked.body)
    if stored.digest != job.digest:
        raise _taken(stored.name)
    return Taken(stored, stored is job)


def receive(store: Store, queue: ImageIntake, reachable: Reachable, asked: Asked, policy: Policy) -> Job | None:
    """Have a request looked at and entered by those who can read images; the job, where it has made one before.

    Raises `InvalidRequest`, `ShareNotAllowed`, `NameTaken`, `TooLarge`, `ServiceError`.
    """
    there = there_already(store, asked)
    if there is None:
        check_share_of(asked, policy)
        check_model(reachable, asked.request)
        queue.send(json.dumps(asked.body, separators=(",", ":")), caller=asked.caller)
    return there


def note_refused(store: Store, refusals: Refusals, refusal: Refusal) -> None:
    """Remember that a request was refused, for who asks for its job; where there is one, that tells how it stands.

    Raises `ServiceError`.
    """
    if store.find(refusal.job) is None:
        refusals.note(refusal)


def _check_not_in_vain(there: Job, asked: Asked) -> None:
    """Raises `NameTaken` for a dead letter that was sent back to have done again what has ended for good."""
    if asked.again and there.state in ENDED - {JobState.COMPLETED}:
        wrong = f"The job {there.name} is {there.state}, and a job that has ended is never done again."
        raise NameTaken(wrong, field="jobId", hint="Send the request with another jobId.")


def check_share_of(asked: Asked, policy: Policy) -> None:
    """Raises `InvalidRequest` for a share that does not exist, `ShareNotAllowed` for one of others."""
    check_share(asked.body, asked.request.share, asked.caller, policy, field=SHARE_FIELD)


def _header(intake: Intake, request: ImageRequest) -> Header:
    try:
        return intake.headers.read(request.image_url, role=request.image_read_role, interest=request.region_of_interest)
    except InvalidRequest as error:
        raise _named(error, "imageUrls[0]") from error
    except NotPermitted as error:
        if request.image_read_role is None:
            raise
        wrong = f"The role {request.image_read_role} cannot be assumed: {error}"
        hint = "It has to trust the queue's intake, which has to be allowed sts:AssumeRole for it (ImageRoleArns)."
        raise InvalidRequest(wrong, field="imageReadRole", hint=hint) from error


def _endpoint(intake: Intake, request: ImageRequest, key: str, failed: Callable[[str], None]) -> Endpoint:
    """What is known of the endpoint: as remembered, or described now where that is old or nothing.

    After trouble the last description holds, and where there was none the defaults do; the next tick asks again.
    """
    remembered = _remembered(intake, key)
    if _need_not_ask(remembered, intake):
        return remembered
    with intake.asking:
        # Whoever held the lock may have asked for the same one.
        remembered = _remembered(intake, key)
        if _need_not_ask(remembered, intake):
            return remembered
        found = None
        try:
            found = _described(intake, request, key)
        except ServiceError as error:
            failed(key)
            if isinstance(error, NotPermitted) and (remembered is None or remembered.described_at is None):
                raise _unreachable(request, error) from error
            log.warning("an endpoint cannot be described", extra={"endpoint": key, "cause": str(error)})
        seen = described(key, found, remembered, intake.clock.now())
        if remembered is None and found is None:
            # Under which role the tick is to ask.
            seen = replace(seen, role=request.processor.assumed_role)
        intake.known.remember(seen, remembered)
        return seen


def _need_not_ask(endpoint: Endpoint | None, intake: Intake) -> TypeGuard[Endpoint]:
    """Whether it is fresh, or SageMaker has just failed to describe it."""
    now = intake.clock.now()
    if endpoint is None or is_fresh(endpoint, intake.limits, now):
        return endpoint is not None
    return endpoint.tried_at is not None and timedelta(0) <= now - endpoint.tried_at < SPARED_FOR


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
    """What the request asks for in this part of its image. Raises `InvalidRequest`."""
    square = (request.tile_size, request.tile_size)
    overlap = (request.tile_overlap, request.tile_overlap)
    cut = Cut(region=limits.region_size, tile=square, overlap=overlap)
    workers = endpoint.tile_workers or limits.tile_workers
    return work_of(endpoint.key, variant, part, cut, workers)


def job_of(asked: Asked, work: ImageWork, now: datetime) -> Job:
    """The job that the request makes."""
    request = asked.request
    pool = work.pool
    entered = now if asked.since is None else min(asked.since, now)
    submitted = "submitted" if asked.caller is None else f"submitted by {asked.caller}"
    return Job(
        name=request.job_id,
        entry_time=entered,
        priority=request.priority,
        share=request.share,
        demand=work.demand(),
        digest=digest_of(asked.body),
        # What was done of an image before its job stepped aside stays done.
        checkpointed=True,
        container_image=pool,
        work=work,
        submitted_by=asked.caller,
        history=(Change(now, None, JobState.PENDING, submitted),),
    )


def _named(error: InvalidRequest, path: str) -> InvalidRequest:
    """The same refusal with the field of the request at fault, where it has none."""
    return type(error)(error.message, field=error.field or path, hint=error.hint)


def _unreachable(request: ImageRequest, error: NotPermitted) -> InvalidRequest:
    role = request.processor.assumed_role
    who = "The queue's own role" if role is None else f"The role {role}"
    return InvalidRequest(
        f"{who} does not let the queue describe the endpoint {request.processor.name}: {error}",
        field="imageProcessor.name" if role is None else "imageProcessor.assumedRole",
        hint="It needs sagemaker:DescribeEndpoint and sagemaker:ListTags, and the queue sts:AssumeRole where it is not "
        "its own.",
    )


def _taken(name: str) -> NameTaken:
    return NameTaken(
        f"The name {name} belongs to a job with another request.", field="jobId", hint="Choose another jobId."
    )
