"""Requests and answers of SageMaker (AWS JSON 1.1) and Batch (REST JSON) as all AWS SDKs send and read them."""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from trainmaster.console.loopback import Request, Response

if TYPE_CHECKING:
    from botocore.model import OperationModel, ServiceModel

    from trainmaster.client.sdk.response_codec import BotoResponse

_TARGET: Final = "X-Amz-Target"
_CONTENT_TYPES: Final[Mapping[str, str]] = {"json": "application/x-amz-json-1.1", "rest-json": "application/json"}
"""By the protocol's name in the service model."""
_SCOPE: Final = re.compile(r"Credential=([\w-]+)/\d{8}/([a-z0-9-]+)/", re.ASCII)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "list": (list,),
    "map": (dict,),
    "structure": (dict,),
    "integer": (int,),
    "long": (int,),
    "boolean": (bool,),
}
"""Types of JSON by the type of a shape."""
_NOT_FORWARDED: Final = frozenset({"x-amz-date", "x-amz-security-token", "x-amz-content-sha256", "x-amz-region-set"})
_FORWARDED: Final = ("content-type", "content-encoding", "user-agent", "accept", "smithy-protocol")
_RETURNED: Final = ("retry-after", "content-encoding")


class WireError(Exception):
    """An error as a service returns it: its code, the message and the HTTP status."""

    def __init__(self, code: str, message: str, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a program to an AWS service.

    Attributes:
        service: botocore's name of the service.
        method: the HTTP method.
        path: the path below the endpoint, encoded.
        query: the query, encoded; without the question mark.
        headers: headers to forward.
        body: the body.
        region: the Region that the request was signed for; None if it does not tell.
        key_id: ID of the access key that it was signed with; None if it does not tell.
        model: the operation; None for one that botocore does not know.
    """

    service: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    region: str | None
    key_id: str | None
    model: OperationModel | None

    @property
    def operation(self) -> str:
        """The operation's name; empty for one that botocore does not know."""
        return self.model.name if self.model is not None else ""

    def serialized(self, endpoint: str) -> dict[str, Any]:
        """Return the request as botocore serializes one, for handlers of its events. Raises WireError.

        Of members that have a token for repeated calls, botocore fills in those that are absent; so does this.
        """
        sent = self._members()
        members = {name: value for name, value in sent.items() if value is not None}
        members |= {member: str(uuid.uuid4()) for member in self._tokens() if member not in members}
        url = {"url": endpoint + self.path, "url_path": self.path}
        body = self.body if members == sent else json.dumps(members).encode()
        return {**url, "method": self.method, "query_string": {}, "headers": dict(self.headers), "body": body}

    def _members(self) -> dict[str, Any]:
        """Return the input in the body, whose members the handlers rely on. Raises WireError."""
        try:
            members = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise WireError("SerializationException", "The body is not JSON.") from error
        if not isinstance(members, dict):
            raise WireError("SerializationException", "The body is no JSON object.")
        for name, shape in self._body_members().items():
            if members.get(name) is None and self._requires(name):
                raise WireError(self._invalid(), f"The request lacks {name}.")
            expected = _TYPES.get(shape.type_name)
            if members.get(name) is not None and expected and not isinstance(members[name], expected):
                raise WireError("SerializationException", f"{name} is no {shape.type_name}.")
        return members

    def _body_members(self) -> dict[str, Any]:
        shape = self.model.input_shape if self.model is not None else None
        members = shape.members if shape is not None else {}
        return {name: member for name, member in members.items() if "location" not in member.serialization}

    def _requires(self, name: str) -> bool:
        return self.model is not None and name in self.model.input_shape.required_members  # type: ignore[union-attr]

    def _tokens(self) -> list[str]:
        return self.model.idempotent_members if self.model is not None else []

    def _invalid(self) -> str:
        return "ValidationException" if self.service == "sagemaker" else "ClientException"

    def with_body_of(self, params: Mapping[str, Any]) -> Call:
        """Return the call with the body that handlers may have rewritten."""
        return replace(self, body=params["body"])


def read_call(model: ServiceModel, request: Request, segments: tuple[str, ...]) -> Call:
    """Return the call in a request to the endpoint of a service; `segments` is its path there. Raises WireError."""
    if any(segment in (".", "..") for segment in segments):
        raise WireError("InvalidAction", "The path leads elsewhere.")
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    scope = _SCOPE.search(request.headers.get("Authorization", ""))
    read = _read_json if model.resolved_protocol == "json" else _read_rest
    return Call(
        service=model.service_name,
        method=request.method,
        path=path,
        query=urlencode(request.query),
        headers={name.lower(): value for name, value in request.headers.items() if _is_forwarded(name.lower())},
        body=request.body,
        region=scope[2] if scope else None,
        key_id=scope[1] if scope else None,
        model=read(model, request, segments),
    )


def _is_forwarded(name: str) -> bool:
    return name in _FORWARDED or (name.startswith(("x-amz", "amz-")) and name not in _NOT_FORWARDED)


def _read_json(model: ServiceModel, request: Request, segments: tuple[str, ...]) -> OperationModel | None:
    """Return the operation that a header names. Raises WireError for other protocols, which would miss the queue."""
    prefix, _, operation = request.headers.get(_TARGET, "").partition(".")
    if request.method != "POST" or any(segments) or request.query or prefix != model.metadata["targetPrefix"]:
        raise WireError("UnknownOperationException", "This endpoint understands AWS JSON 1.1: POST and X-Amz-Target.")
    return _operation(model, operation)


def _read_rest(model: ServiceModel, request: Request, segments: tuple[str, ...]) -> OperationModel | None:
    """Return the operation of a method and a path. Raises WireError for methods that the service does not have."""
    routes = {
        (each.http["method"], each.http["requestUri"]): name
        for name in model.operation_names
        for each in (model.operation_model(name),)
    }
    if request.method not in {method for method, _ in routes}:
        raise WireError("MethodNotAllowed", "The service has no such method.", HTTPStatus.METHOD_NOT_ALLOWED)
    tags = segments[:2] == ("v1", "tags") and len(segments) > 2
    uri = "/v1/tags/{resourceArn}" if tags else "/" + "/".join(segments)
    return _operation(model, routes.get((request.method, uri), ""))


def _operation(model: ServiceModel, name: str) -> OperationModel | None:
    return model.operation_model(name) if name in model.operation_names else None


def error_response(service: ServiceModel, error: WireError) -> Response:
    """Return an error as the service returns it."""
    body = {"__type": error.code, "message": str(error), "Message": str(error)}
    return _response(service, error.status, body, {"x-amzn-ErrorType": error.code})


def own_response(model: OperationModel, answer: BotoResponse) -> Response:
    """Return what a handler answered."""
    http, parsed = answer
    if "Error" in parsed:
        error = WireError(parsed["Error"]["Code"], parsed["Error"].get("Message", ""), http.status_code)
        return error_response(model.service_model, error)
    return _response(model.service_model, http.status_code, _without_metadata(parsed))


def changed_response(
    model: OperationModel, content: bytes, before: Mapping[str, Any], answer: BotoResponse
) -> Response:
    """Return an answer of AWS that handlers have changed; what they did not change stays as AWS sent it.

    Args:
        model: the operation.
        content: the body that AWS sent.
        before: the answer as botocore parsed it.
        answer: the answer after the change.
    """
    after = answer[1]
    if "Error" in after or "Error" in before:
        return own_response(model, answer)
    sent = json.loads(content or b"{}")
    kept = {name: value for name, value in sent.items() if name in after or name not in before}
    changed = {name: value for name, value in after.items() if name not in before or before[name] != value}
    return _response(model.service_model, answer[0].status_code, kept | _without_metadata(changed))


def passed_response(status: int, headers: Mapping[str, str], content: bytes) -> Response:
    """Return an answer of AWS as it is."""
    lowered = {name.lower(): value for name, value in headers.items()}
    returned = {name: value for name, value in lowered.items() if name.startswith("x-amz") or name in _RETURNED}
    return Response(status, content, lowered.get("content-type", _CONTENT_TYPES["rest-json"]), returned)


def _response(
    service: ServiceModel, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    content_type = _CONTENT_TYPES[service.resolved_protocol]
    content = json.dumps(body, default=_plain).encode()
    return Response(status, content, content_type, {"x-amzn-RequestId": str(uuid.uuid4()), **(headers or {})})


def _without_metadata(parsed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parsed.items() if name != "ResponseMetadata"}


def _plain(value: object) -> Any:
    """Return a value of botocore's as both protocols have it in JSON: times as epoch seconds, blobs in base64."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not a value of JSON")
