"""A boto3 SageMaker client that calls the simulator in this process.

botocore serializes and parses as usual; a handler of its `before-send` event replaces the sending. Operations that the
simulator does not have are sent as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config

from trainmaster.local.simulator.wire.protocol import TARGET_PREFIX, Reply

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

Responder = Callable[[str, bytes], Reply | None]
ENDPOINT = "https://sagemaker.simulator.invalid"
"""An address that cannot exist, so that a request that bypasses the handler fails instead of reaching AWS."""


def new_client(responder: Responder, region: str, config: Config | None) -> SageMakerClient:
    """Return a client whose requests `responder` answers; by default it does not retry."""
    once = Config(retries={"mode": "standard", "total_max_attempts": 1})
    client = _session().client(
        "sagemaker",
        region_name=region,
        endpoint_url=ENDPOINT,
        aws_access_key_id="simulator",
        aws_secret_access_key="simulator",  # noqa: S106 - signatures are not checked
        config=once.merge(config) if config else once,
    )
    attach(client, responder)
    return client


def attach(client: SageMakerClient, responder: Responder) -> None:
    """Have `responder` answer the requests of an existing client."""

    def send(request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        operation = _target(request)
        reply = responder(operation, _body(request))
        return None if reply is None else _response(request, reply)

    handler: Any = send  # the stubs say that handlers return nothing; this event's do
    client.meta.events.register("before-send.sagemaker.*", handler)


class _Raw(BytesIO):
    """The raw response that `AWSResponse` reads."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


@lru_cache(maxsize=1)
def _session() -> boto3.session.Session:
    """Return the session of all clients: loading SageMaker's model takes longer than most tests."""
    return boto3.session.Session()


def _target(request: AWSPreparedRequest) -> str:
    target: Any = request.headers.get("X-Amz-Target", "")
    text = target.decode() if isinstance(target, bytes) else str(target)
    return text.removeprefix(TARGET_PREFIX)


def _body(request: AWSPreparedRequest) -> bytes:
    body: Any = request.body
    return body.encode() if isinstance(body, str) else bytes(body or b"")


def _response(request: AWSPreparedRequest, reply: Reply) -> AWSResponse:
    raw: Any = _Raw(reply.body)
    headers: Any = dict(reply.headers)
    return AWSResponse(request.url, reply.status, headers, raw)
