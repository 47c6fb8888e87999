"""Converts errors to HTTP responses: the status by the error's type, and one body for all of them.

Responses contain no message of an AWS service, no stack trace and no content of the request's body.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)

from trainmaster.domain import errors
from trainmaster.handlers.api.body import no_body
from trainmaster.handlers.api.paths import path_of
from trainmaster.service.faults import log_fields

log = logging.getLogger(__name__)

STATUS: Mapping[type[errors.TrainmasterError], HTTPStatus] = {
    errors.InvalidRequest: HTTPStatus.BAD_REQUEST,
    errors.UnknownOption: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.AccessDenied: HTTPStatus.FORBIDDEN,
    errors.RoleNotAllowed: HTTPStatus.FORBIDDEN,
    errors.RequestNotAllowed: HTTPStatus.FORBIDDEN,
    errors.ShareNotAllowed: HTTPStatus.FORBIDDEN,
    errors.BudgetExhausted: HTTPStatus.CONFLICT,
    errors.NeverFits: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.JobNotFound: HTTPStatus.NOT_FOUND,
    errors.PoolNotFound: HTTPStatus.NOT_FOUND,
    errors.PoolInUse: HTTPStatus.CONFLICT,
    errors.NameTaken: HTTPStatus.CONFLICT,
    errors.IllegalTransition: HTTPStatus.CONFLICT,
    errors.NotOffered: HTTPStatus.CONFLICT,
    errors.VersionConflict: HTTPStatus.CONFLICT,
    errors.Throttled: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.UnsupportedSchema: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ServiceError: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""By type; a type that is not here has its nearest base's status."""

_BUSY = "The queue receives more requests than it can handle."
_AWAY = "The queue cannot do this now: an AWS service that it needs is unavailable."
_UNEXPECTED = "The queue failed with an internal error."


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error as it travels."""

    status: HTTPStatus
    type: str
    message: str
    field: str | None = None
    hint: str | None = None
    headers: Mapping[str, str] | None = None

    @property
    def body(self) -> str:
        """The answer's text. Non-ASCII is escaped: a message may repeat half of a surrogate pair."""
        members = {"type": self.type, "message": self.message, "field": self.field, "hint": self.hint}
        return json.dumps({"error": members})

    def response(self) -> Response[str]:
        """Return the response of a route."""
        return Response(self.status.value, "application/json", self.body, dict(self.headers or {}))

    def proxy_response(self) -> dict[str, Any]:
        """Return the response in API Gateway's form, if no route handled the request."""
        headers = {"Content-Type": "application/json", **(self.headers or {})}
        return {
            "statusCode": self.status.value,
            "body": self.body,
            "isBase64Encoded": False,
            "multiValueHeaders": {name: [value] for name, value in headers.items()},
        }


def error_response(error: Exception, request_id: str) -> ErrorResponse:
    """Return the response for an error that a route raised, and log what operators need.

    `request_id` is API Gateway's, which the log's lines carry as correlation id.
    """
    if isinstance(error, errors.Refused):
        return _refused(error)
    if isinstance(error, RequestValidationError):
        return _refused(first_problem(error.errors()))
    if isinstance(error, RequestUnsupportedContentType):
        return _MEDIA_TYPE
    if isinstance(error, errors.ServiceError):
        return _service_error(error, request_id)
    return unexpected(error, request_id)


def no_route(path_known: Sequence[str]) -> ErrorResponse:
    """Nothing answers here: an unknown route, or, where other methods do, the wrong method."""
    if not path_known:
        return ErrorResponse(HTTPStatus.NOT_FOUND, "RouteNotFound", "There is no such route.", hint=_SEE_DOCUMENT)
    methods = ", ".join(sorted(path_known))
    hint = f"This route allows {methods}."
    wrong = "This route does not allow this method."
    return ErrorResponse(
        HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", wrong, hint=hint, headers={"Allow": methods}
    )


_SEE_DOCUMENT = "GET /openapi.json lists the routes."
_MEDIA_TYPE = ErrorResponse(
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "UnsupportedMediaType",
    "The body is not declared as JSON.",
    field="Content-Type",
    hint="Send it with Content-Type: application/json.",
)


def _refused(error: errors.Refused) -> ErrorResponse:
    # A message may repeat a value of the request, and with it a secret; a field is only the value's place.
    kind, status = _entry(type(error))
    log.info("refused", extra={"error_type": kind, "field": error.field})
    return ErrorResponse(status, kind, error.message, error.field, error.hint)


def _service_error(error: errors.ServiceError, request_id: str) -> ErrorResponse:
    kind, status = _entry(type(error))
    cause = type(error.__cause__).__name__ if error.__cause__ else None
    log.error(
        "a service is unavailable", extra={"error_type": type(error).__name__, "text": str(error), "cause": cause}
    )
    if status is HTTPStatus.TOO_MANY_REQUESTS:
        return ErrorResponse(status, kind, _BUSY, hint="Try again in a few seconds.", headers={"Retry-After": "2"})
    if isinstance(error, errors.Suspended):
        hint = "Contact the queue's administrator."
        return ErrorResponse(status, kind, str(error), hint=hint, headers={"Retry-After": "60"})
    hint = f"Try again; if the error persists, contact the queue's administrator and name request {request_id}."
    return ErrorResponse(status, kind, _AWAY, hint=hint, headers={"Retry-After": "5"})


def client_too_old(problem: str) -> ErrorResponse:
    """Return the response to a client that this service no longer serves."""
    hint = "Update it: pip install --upgrade trainmaster"
    return ErrorResponse(HTTPStatus.UPGRADE_REQUIRED, "ClientTooOld", problem, hint=hint)


def unexpected(error: Exception, request_id: str) -> ErrorResponse:
    """Return the response for an unexpected error of any type."""
    # The text of an unexpected exception may repeat what it choked on, so the log gets types and places only.
    text = str(error) if isinstance(error, errors.TrainmasterError) else None
    log.error("failed", extra={**log_fields(error), "text": text})
    hint = f"Contact the queue's administrator and name request {request_id}."
    return ErrorResponse(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", _UNEXPECTED, hint=hint)


def _entry(kind: type[BaseException]) -> tuple[str, HTTPStatus]:
    for each in kind.__mro__:
        if status := STATUS.get(each):
            return each.__name__, status
    return "InvalidRequest", HTTPStatus.BAD_REQUEST


def first_problem(problems: Sequence[Mapping[str, Any]], *, inside: int = 1) -> errors.InvalidRequest:
    """Return a problem that pydantic found, in our words; pydantic's own never repeat the value.

    `inside` are the parts that its places have before a body's own: `body`, where Powertools has read it.
    """
    problem = problems[0]
    kind, where = str(problem["type"]), tuple(problem["loc"])
    field = path_of(where[inside:])
    if kind == "missing" and field is None:
        return no_body()
    name = field or "The body"
    said = _SUBJECT.sub("", str(problem["msg"]))
    message = _MESSAGES.get(kind, "{name} {said}.").format(name=name, said=said)
    return errors.InvalidRequest(message, field=field, hint=_HINTS.get(kind))


# Pydantic says "Input should be ...", and "Value error, " before what our own checks say; we say what should be.
_SUBJECT = re.compile(r"^(Input |String |List |Dictionary |Value error, )(?=should )")
_MESSAGES = {
    "missing": "{name} is missing.",
    "extra_forbidden": "There is no member {name}.",
    "list_type": "{name} should be a list.",
    "model_type": "{name} should be an object.",
    "model_attributes_type": "{name} should be an object.",
    "dict_type": "{name} should be an object.",
}
_HINTS = {
    "missing": "Add it.",
    "extra_forbidden": "Omit it; GET /openapi.json lists the members.",
    "list_type": 'Write it in brackets: ["a", "b"].',
    "bool_type": "Specify true or false.",
    "int_type": "Specify a whole number, without quotes.",
    "int_parsing": "Specify a whole number.",
}
