"""Checks the URL of a model when a request arrives, in the API and in the intake.

The caller passes the check to use: the API checks literal addresses only, the intake also resolves names.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from trainmaster.domain.errors import ServiceError
from trainmaster.images.domain.request import ImageRequest

Reachable = Callable[[str], None]
"""Raises `InvalidRequest` for a model's URL that no worker would call; `ServiceError` if it cannot decide."""


def check_model(reachable: Reachable, request: ImageRequest) -> None:
    """Raise `InvalidRequest` if a request's model is behind a URL that no worker would call, as far as known now."""
    if request.processor.is_http:
        # Workers check again just before the call.
        with suppress(ServiceError):
            reachable(request.processor.name)
