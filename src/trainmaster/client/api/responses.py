"""Converts HTTP responses of the API: JSON if successful, else an `ApiError` chosen by HTTP status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import httpx

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotFound, Refused, Unreachable
from trainmaster.client.views import types
from trainmaster.domain.release import VERSION_HEADER

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
_LOGIN_HINT = "Log in again, with the command of your profile: `aws sso login` or `aws login`."
_PERMISSION_HINT = "Ask an administrator of the account for the permission that it names."
_CLOCK_HINT = "Set this machine's clock: a signature is valid for five minutes."
_HINTS = (
    ("not authorized to perform", _PERMISSION_HINT),
    ("Signature expired", _CLOCK_HINT),
    ("Signature not yet current", _CLOCK_HINT),
    ("security token included in the request is invalid", _LOGIN_HINT),
)
"""Parts of API Gateway's and IAM's messages, and what to do about each."""
EXPIRED_TYPE = "ExpiredToken"
_NO_ROUTE = "Missing Authentication Token"
"""API Gateway's answer to a path or a stage that the API does not have (AWS: API Gateway, gateway response types)."""
_GENERIC = frozenset({"version", "name", "kind", "reason", "state", "status", "message", "warnings", "why", "details"})
_ANSWERS = (
    *(types.JobDetailView, types.JobsPageView, types.QueuePageView, types.SubmissionView, types.RendezvousView),
    *(types.PlanView, types.PoolsView, types.PoolView, types.RemovalView),
    *(types.ManagerStateView, types.ExportPageView, types.ImportReportView, types.AuditPageView),
)
_MEMBERS = (
    frozenset({"openapi", "jobState", "preemption", "shares"}.union(*(each.__annotations__ for each in _ANSWERS)))
    - _GENERIC
)
"""Members of answers of Trainmaster that other services hardly have."""
_RETRY_HINT = "Try again later. The service's alarms and logs show the cause."


def result_of(response: httpx.Response, *, retried: bool) -> Any:
    """Return the JSON of a successful response; raise the ApiError of any other."""
    if not response.is_success:
        raise error_of(response, retried=retried)
    try:
        answer = response.json()
    except ValueError as error:
        raise _foreign(response, "it did not return JSON") from error
    if VERSION_HEADER not in response.headers and not _looks_ours(answer):
        raise _foreign(response, "it is another service's JSON")
    return answer


def _looks_ours(answer: object) -> bool:
    """Return whether an answer without the version has a member that only answers of Trainmaster have."""
    return isinstance(answer, dict) and not _MEMBERS.isdisjoint(answer)


def _foreign(response: httpx.Response, why: str) -> Unreachable:
    message = f"{_base(response)} does not answer as Trainmaster: {why}."
    return Unreachable(message, hint=_ADDRESS_HINT, status=response.status_code)


def _base(response: httpx.Response) -> str:
    """Return the address without its query, which may be long."""
    return str(response.url.copy_with(query=None))


def error_of(response: httpx.Response, *, retried: bool) -> ApiError:
    """Return the error of an unsuccessful response, with the API's type, field and hint if it has them."""
    body = _json_or_none(response)
    detail = body.get("error")
    if isinstance(detail, dict):
        kind = str(detail.get("type", ""))
        return _type_of(response.status_code, kind)(
            str(detail.get("message", "")),
            type=kind,
            field=_text_or_none(detail.get("field")),
            hint=_text_or_none(detail.get("hint")),
            status=response.status_code,
            retried=retried,
        )
    return _gateway_error(response, str(body.get("message") or body.get("Message") or response.reason_phrase))


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _gateway_error(response: httpx.Response, message: str) -> ApiError:
    """Return the error of a response from API Gateway or a proxy, which lacks Trainmaster's error shape."""
    status = response.status_code
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        if "expired" in message.lower() and "token" in message.lower():
            return Forbidden("Your AWS credentials have expired.", type=EXPIRED_TYPE, hint=_LOGIN_HINT, status=status)
        if _NO_ROUTE in message:
            return Unreachable(f"{_base(response)} is no route of an API.", hint=_ADDRESS_HINT, status=status)
        hint = next((hint for part, hint in _HINTS if part in message), _GATEWAY_HINT)
        return Forbidden(f"{message.rstrip('.')}.", hint=hint, status=status)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Refused(message, type="TooLarge", hint="Shorten hyperparameters or environment.", status=status)
    transient = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if not transient:
        return _foreign(response, f"it returned {status} {message}".rstrip(". "))
    return Unreachable(f"{_base(response)} returned {status}: {message}", hint=_RETRY_HINT, status=status)


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
