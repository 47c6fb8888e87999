"""A botocore plugin that sends requests for AWS's own hosts to the local stack.

The SageMaker SDKs name the address of STS themselves, which takes precedence over `AWS_ENDPOINT_URL`. botocore loads
the plugin in processes with the stack's environment (`BOTOCORE_EXPERIMENTAL__PLUGINS`); older versions ignore it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def initialize_client_plugin(client: Any, environ: Mapping[str, str] = os.environ) -> None:
    """Redirect the requests of a new client; botocore calls this."""
    service = client.meta.service_model.service_id.upper().replace(" ", "_")
    endpoint = environ.get(f"AWS_ENDPOINT_URL_{service}") or environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        client.meta.events.register_first("before-send", redirect_to(endpoint))


def redirect_to(endpoint: str) -> Callable[..., None]:
    """Return a handler that sends requests for AWS's hosts to an endpoint; the host stays in the `Host` header."""

    def handle(request: Any, **_: object) -> None:
        url = urlsplit(request.url)
        if (url.hostname or "").endswith(_AWS):
            request.headers["Host"] = url.netloc
            request.url = request.url.replace(f"{url.scheme}://{url.netloc}", endpoint.rstrip("/"), 1)

    return handle
