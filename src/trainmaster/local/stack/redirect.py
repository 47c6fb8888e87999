"""A botocore plugin that adapts clients to the local stack.

It sends requests for AWS's own hosts to the stack: the SageMaker SDKs name the address of STS themselves, which takes
precedence over `AWS_ENDPOINT_URL`. It also names S3's default key, which ministack demands of encrypted uploads and AWS
does not. botocore loads it in processes with the stack's environment (`BOTOCORE_EXPERIMENTAL__PLUGINS`); older versions
ignore it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

_S3_KEY = "alias/aws/s3"
_UPLOADS = ("PutObject", "CreateMultipartUpload", "CopyObject")
_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def initialize_client_plugin(client: Any, environ: Mapping[str, str] = os.environ) -> None:
    """Register the handlers on a new client; botocore calls this."""
    service = client.meta.service_model.service_id.upper().replace(" ", "_")
    endpoint = environ.get(f"AWS_ENDPOINT_URL_{service}") or environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        client.meta.events.register_first("before-send", redirect_to(endpoint))
        for operation in _UPLOADS:
            client.meta.events.register(f"before-parameter-build.s3.{operation}", name_default_key)


def name_default_key(params: dict[str, Any], **_: object) -> None:
    """Name the account's default key in an upload that is encrypted with it."""
    if params.get("ServerSideEncryption") == "aws:kms":
        params.setdefault("SSEKMSKeyId", _S3_KEY)


def redirect_to(endpoint: str) -> Callable[..., None]:
    """Return a handler that sends requests for AWS's hosts to an endpoint; the host stays in the `Host` header."""

    def handle(request: Any, **_: object) -> None:
        url = urlsplit(request.url)
        if (url.hostname or "").endswith(_AWS):
            request.headers["Host"] = url.netloc
            request.url = request.url.replace(f"{url.scheme}://{url.netloc}", endpoint.rstrip("/"), 1)

    return handle
