"""Reads the API's responses: the JSON of a good one, the error of a bad one.

It must not send anything. The kind of error comes from a table of statuses, never from words.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import httpx

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotFound, Refused, Unreachable

_KINDS: dict[int, type[ApiError]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.TOO_MANY_REQUESTS: Unreachable,
}
_AT_THE_GATE = (
    "API Gateway refused the call before Trainmaster saw it: check that the URL has the stage, that your identity is "
    "allowed execute-api:Invoke, that the Region is right, and that your clock is."
)
_NOT_OURS = "Is this the address of Trainmaster's API, with its stage? See the stack's output ApiUrl."
_LATER = "Try again later; the service's alarms and logs tell why."


def result_of(response: httpx.Response, *, retried: bool) -> Any:
    """The JSON of a good response; raises the ApiError of a bad one."""
    if not response.is_success:
        raise error_of(response, retried=retried)
    try:
        return response.json()
    except ValueError as error:
        raise Unreachable(
            f"{response.url} did not answer in JSON.", hint=_NOT_OURS, status=response.status_code
        ) from error


def error_of(response: httpx.Response, *, retried: bool) -> ApiError:
    """The error that a bad response means, with the API's own type, field and hint where it gave them."""
    body = _json_or_none(response)
    ours = body.get("error")
    if isinstance(ours, dict):
        kind = str(ours.get("type", ""))
        return _kind(response.status_code, kind)(
            str(ours.get("message", "")),
            type=kind,
            field=ours.get("field"),
            hint=ours.get("hint"),
            status=response.status_code,
            retried=retried,
        )
    return _foreign_error(response, str(body.get("message") or body.get("Message") or response.reason_phrase))


def _foreign_error(response: httpx.Response, message: str) -> ApiError:
    """An error that API Gateway or a proxy made: Trainmaster's own always have its shape."""
    status = response.status_code
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Forbidden(message, type="AccessDenied", hint=_AT_THE_GATE, status=status)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Refused(message, type="TooLarge", hint="Shorten hyperparameters or environment.", status=status)
    transient = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    text = f"{response.url} answered {status}: {message}"
    return Unreachable(text, hint=_LATER if transient else _NOT_OURS, status=status)


def _kind(status: int, name: str) -> type[ApiError]:
    if status == HTTPStatus.NOT_FOUND and name not in ("JobNotFound", "PoolNotFound"):
        return Unreachable  # a route that is not there tells nothing of a job
    return _KINDS.get(status) or (Unreachable if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Refused)


def _json_or_none(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
