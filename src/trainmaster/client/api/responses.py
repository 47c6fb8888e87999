"""Converts HTTP responses of the API: JSON if successful, else an `ApiError` chosen by HTTP status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import httpx

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotFound, Refused, Unreachable

_TYPES: dict[int, type[ApiError]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.TOO_MANY_REQUESTS: Unreachable,
}
_GATEWAY_HINT = (
    "API Gateway rejected the request before it reached Trainmaster. Check that the URL includes the stage, that your "
    "identity allows execute-api:Invoke, and that the Region and your clock are right."
)
_ADDRESS_HINT = "Check that the URL is that of Trainmaster's API with its stage: see the stack output ApiUrl."
_RETRY_HINT = "Try again later. The service's alarms and logs show the cause."


def result_of(response: httpx.Response, *, retried: bool) -> Any:
    """Return the JSON of a successful response; raise the ApiError of any other."""
    if not response.is_success:
        raise error_of(response, retried=retried)
    try:
        return response.json()
    except ValueError as error:
        raise Unreachable(
            f"{response.url} did not return JSON.", hint=_ADDRESS_HINT, status=response.status_code
        ) from error


def error_of(response: httpx.Response, *, retried: bool) -> ApiError:
    """Return the error of an unsuccessful response, with the API's type, field and hint if it has them."""
    body = _json_or_none(response)
    detail = body.get("error")
    if isinstance(detail, dict):
        kind = str(detail.get("type", ""))
        return _type_of(response.status_code, kind)(
            str(detail.get("message", "")),
            type=kind,
            field=detail.get("field"),
            hint=detail.get("hint"),
            status=response.status_code,
            retried=retried,
        )
    return _gateway_error(response, str(body.get("message") or body.get("Message") or response.reason_phrase))


def _gateway_error(response: httpx.Response, message: str) -> ApiError:
    """Return the error of a response from API Gateway or a proxy, which lacks Trainmaster's error shape."""
    status = response.status_code
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Forbidden(message, hint=_GATEWAY_HINT, status=status)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Refused(message, type="TooLarge", hint="Shorten hyperparameters or environment.", status=status)
    transient = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    text = f"{response.url} returned {status}: {message}"
    return Unreachable(text, hint=_RETRY_HINT if transient else _ADDRESS_HINT, status=status)


def _type_of(status: int, name: str) -> type[ApiError]:
    if status == HTTPStatus.NOT_FOUND and name not in ("JobNotFound", "PoolNotFound"):
        return Unreachable  # an unknown route says nothing about the job
    return _TYPES.get(status) or (Unreachable if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Refused)


def _json_or_none(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
