"""AWS as a script, and requests to the endpoint as bytes."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from client_world import REGION

from trainmaster.proxy.app import Proxy


class _Body(io.BytesIO):
    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self.read()


@dataclass
class Aws:
    """Keeps requests, and answers each with the next answer."""

    requests: list[AWSPreparedRequest] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes] | Exception] = field(default_factory=list)

    def __call__(self, request: AWSPreparedRequest) -> AWSResponse:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else (200, {}, b"{}")
        if isinstance(answer, Exception):
            raise answer
        status, headers, content = answer
        return AWSResponse(str(request.url), status, headers, _Body(content))  # type: ignore[arg-type]


def authorization(region: str = REGION, key_id: str = "AKIDEXAMPLE", service: str = "sagemaker") -> str:
    """The header of a signed request; the signature is none."""
    scope = f"{key_id}/20300101/{region}/{service}/aws4_request"
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature=0"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Wire:
    """An endpoint, and requests to it."""

    proxy: Proxy

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.proxy.server.server_port}"

    def path(self, service: str = "sagemaker") -> str:
        return urlsplit(self.proxy.urls[service]).path

    def ask(
        self, line: str, body: bytes | None = None, headers: dict[str, str] | None = None, host: str | None = None
    ) -> Answer:
        """Send a request; `line` has its method and path, in which {} is the one of the service."""
        method, _, target = line.partition(" ")
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.server.server_port, timeout=20)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        given = {"Host": host or self.host} | (headers or {})
        if body is not None and "Content-Length" not in given:
            given["Content-Length"] = str(len(body))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        answer = Answer(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read())
        connection.close()
        return answer

    def call(self, operation: str, body: Any, **headers: str) -> Answer:
        """Send a call of SageMaker's; headers are given with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Authorization": authorization(), "X-Amz-Target": f"SageMaker.{operation}"} | named
        given.setdefault("Content-Type", "application/x-amz-json-1.1")
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(f"POST {self.path()}/", content, given)
