"""Whether a model behind a URL may be called, asked wherever requests come in: by the API, and by the intake.

Who asks hands in how: the API reads addresses only, the intake asks for names too. It must not know addresses itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from trainmaster.domain.errors import ServiceError
from trainmaster.images.domain.request import ImageRequest

Reachable = Callable[[str], None]
"""Raises `InvalidRequest` for the URL of a model that no worker would call; `ServiceError` where it cannot tell."""


def check_model(reachable: Reachable, request: ImageRequest) -> None:
    """Raises `InvalidRequest` for a model behind a URL that no worker would call, where that can be told now."""
    if request.processor.is_http:
        # Workers ask again, just before they call it.
        with suppress(ServiceError):
            reachable(request.processor.name)
