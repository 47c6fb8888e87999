"""Image jobs in the API: the route that takes requests, plans for requests, and refused requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.errors import InvalidRequest, NotOffered
from trainmaster.handlers.api.openapi import KindDocument
from trainmaster.handlers.api.operations import Operation, operation, operations_of
from trainmaster.handlers.api.resolver import json_response
from trainmaster.handlers.models.forecast import Plan
from trainmaster.handlers.views.jobs import plan_view
from trainmaster.images.domain.request import SIZE_FIELD, is_image_request
from trainmaster.images.handlers.models import ImageJobRequest, read_request
from trainmaster.images.handlers.views import ImageDetails, Received
from trainmaster.images.kind import NAME, parts_of
from trainmaster.images.ports import ImageIntake
from trainmaster.images.service.dry_run import DryRunContext, foresee
from trainmaster.images.service.intake import IncomingRequest, receive
from trainmaster.service.change import ApiContext
from trainmaster.service.kinds import JobKind

_MAX_INTEGER = 2**31 - 1
"""Pixels of an axis: GDAL counts them in 32 bits."""
_DOCUMENT = KindDocument(
    name=NAME,
    title="image jobs on models' endpoints",
    units="requests to a model's endpoint",
    details=ImageDetails,
    plan="Request of `POST /image-jobs`, with the additional member `imageSize`: width and height in pixels of the "
    "image or of its region of interest, since no image is read.",
    plan_members=("jobId", "imageUrls", "imageProcessor", SIZE_FIELD),
    plan_example={
        "jobId": "harbour-7",
        "imageUrls": ["s3://bucket/images/harbour-7.tif"],
        "imageProcessor": {"name": "ships", "type": "SM_ENDPOINT"},
        SIZE_FIELD: [20480, 20480],
    },
)


class ImageApi:
    """Image jobs in the API; implements `handlers.api.kinds.ApiKind`.

    Args:
        kind: image jobs of this deployment.
        caller: returns the caller of the request that is being answered.
    """

    document = _DOCUMENT

    def __init__(self, kind: JobKind, caller: Callable[[], Caller]) -> None:
        """Keep the dependencies of the route."""
        self._parts, self._caller = parts_of(kind), caller

    @property
    def operations(self) -> Mapping[str, tuple[str, Operation]]:
        """The route for requests."""
        return operations_of(type(self))

    @operation(
        "POST",
        "/image-jobs",
        Action.SUBMIT,
        "Submit an image job",
        {
            202: ("The request is accepted; its image is read next.", Received),
            200: ("The same request was submitted before; this is its job.", Received),
        },
        (409, 413, 415),
    )
    def add_image_job(self, request: Annotated[ImageJobRequest, Body()]) -> Response[str]:
        """Check the request; its image's header is read next. A refusal then goes to the image dead-letter queue."""
        return json_response(*self._receive(request.root, self._caller()))

    def recognizes(self, body: Mapping[str, Any]) -> bool:
        """Return whether this is a request for an image job."""
        return is_image_request(body)

    def plan(self, body: Mapping[str, Any], caller: Caller) -> Plan:
        """Return the forecast for a request with the size of its image. Raises `InvalidRequest` without a size."""
        size = _size_of(body.get(SIZE_FIELD))
        request = {name: value for name, value in body.items() if name != SIZE_FIELD}
        reading, parts = read_request(request), self._parts
        settings = parts.settings
        dry_run = DryRunContext(parts.known_endpoints, settings.limits, settings.account, parts.checks)
        explanation, advice, found = foresee(
            self._context, dry_run, IncomingRequest(reading.request, request, caller), size
        )
        return plan_view(explanation, (*reading.warnings, *advice), found)

    def refusal(self, name: str) -> str | None:
        """Return a sentence about the newest refused request for this job name; None if none is stored."""
        refused = self._parts.refusals.of(name)
        return None if refused is None else refused.message()

    def _receive(self, body: Mapping[str, Any], caller: Caller) -> tuple[Received, HTTPStatus]:
        """Return the response to a request, and its status. Raises the errors of `receive`."""
        reading, store = read_request(body), self._context.store
        asked = IncomingRequest(reading.request, body, caller)
        policy = store.settings(catalogue=False).policy
        there = receive(self._context, self._queue, self._parts.checks, asked, policy)
        state = "received" if there is None else there.state.value
        answer = Received(job_name=reading.request.job_id, state=state, warnings=list(reading.warnings))
        return answer, HTTPStatus.ACCEPTED if there is None else HTTPStatus.OK

    @property
    def _context(self) -> ApiContext:
        return self._parts.application.api_context

    @property
    def _queue(self) -> ImageIntake:
        queue = self._parts.image_queue
        if queue is None:
            raise NotOffered("This function has no image queue.", hint="Set IMAGE_QUEUE_URL among its image settings.")
        return queue


def _size_of(given: object) -> tuple[int, int] | None:
    """Return width and height as given; None for none. Raises `InvalidRequest`."""
    if given is None:
        return None
    match given:
        case [int(width), int(height)] if all(_is_length(each) for each in (width, height)):
            return width, height
    hint = "Specify its width and height in pixels, such as [20480, 20480]."
    raise InvalidRequest("This is not the size of an image.", field=SIZE_FIELD, hint=hint)


def _is_length(number: int) -> bool:
    """Return whether an axis can have so many pixels; a bool is an int to Python."""
    return not isinstance(number, bool) and 0 < number <= _MAX_INTEGER
