"""What a request would come to if it were submitted now, for training jobs and image jobs alike.

It must not foresee anything itself: `service.submit` and `service.images.foresight` do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from trainmaster.bootstrap.settings import Settings
from trainmaster.domain.errors import InvalidRequest
from trainmaster.handlers.models.forecast import Plan
from trainmaster.handlers.views.jobs import plan_view
from trainmaster.images.domain.request import SIZE_FIELD, is_image_request
from trainmaster.images.handlers.api import offered
from trainmaster.images.handlers.models import read_request
from trainmaster.images.ports import ImageIntake, KnownEndpoints
from trainmaster.images.service.dry_run import DryRunContext, foresee
from trainmaster.images.service.intake import Asked
from trainmaster.images.service.url_check import Reachable
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.change import ApiContext
from trainmaster.service.submit import plan

_LARGEST = 2**31 - 1
"""Pixels of an axis: GDAL counts them in 32 bits."""


class Parts(Protocol):
    """What foreseeing needs of the application."""

    @property
    def settings(self) -> Settings:
        """The deployment's settings."""

    @property
    def api_context(self) -> ApiContext:
        """What the use cases need."""

    @property
    def admission(self) -> AdmissionPolicy:
        """The deployment's rules for requests."""

    @property
    def known_endpoints(self) -> KnownEndpoints:
        """The queue's memory, as far as it is of endpoints."""

    @property
    def check_model(self) -> Reachable:
        """Refuses the URLs of models that no worker would call."""

    @property
    def image_queue(self) -> ImageIntake | None:
        """Where requests for image jobs wait to be looked at; None where the deployment takes none."""


def planned(parts: Parts, body: Mapping[str, Any], caller: str | None) -> Plan:
    """What a request would come to. Raises what a submission would raise, and `InvalidRequest` without a size."""
    if not is_image_request(body):
        return plan_view(*plan(parts.api_context, parts.admission, body, caller))
    offered(parts.image_queue)
    size = _size_of(body.get(SIZE_FIELD))
    request = {name: value for name, value in body.items() if name != SIZE_FIELD}
    reading = read_request(request)
    sight = DryRunContext(parts.known_endpoints, parts.settings.limits, parts.settings.account, parts.check_model)
    explanation, advice, found = foresee(parts.api_context, sight, Asked(reading.request, request, caller), size)
    return plan_view(explanation, (*reading.warnings, *advice), found)


def _size_of(given: object) -> tuple[int, int] | None:
    """Width and height as they came; None for none. Raises `InvalidRequest`."""
    if given is None:
        return None
    match given:
        case [int(width), int(height)] if all(_is_length(each) for each in (width, height)):
            return width, height
    hint = "Give its width and height in pixels, such as [20480, 20480]."
    raise InvalidRequest("This is no size of an image.", field=SIZE_FIELD, hint=hint)


def _is_length(number: int) -> bool:
    """Whether there are axes of so many pixels; a bool is an int to Python."""
    return not isinstance(number, bool) and 0 < number <= _LARGEST
