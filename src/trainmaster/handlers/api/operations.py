"""Operations of the API: the declaration that a route carries, and its responses in the form that Powertools takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from trainmaster.domain.access.rules import Action
from trainmaster.handlers.models.jobs import Error

Route = TypeVar("Route", bound=Callable[..., Any])
_OPERATION = "_operation"


@dataclass(frozen=True, slots=True)
class Operation:
    """Declaration of a route.

    Attributes:
        method: HTTP method.
        rule: Path, with its parameters in angle brackets.
        action: What its callers ask for; `service.access` decides by it.
        summary: A few words for the OpenAPI document.
        responses: Description and model of each successful status; None for any JSON object.
        errors: Statuses of its errors beside those that every route may return.
    """

    method: str
    rule: str
    action: Action
    summary: str
    responses: Mapping[int, tuple[str, type[BaseModel] | None]]
    errors: tuple[int, ...] = ()

    def for_powertools(self) -> dict[int, Any]:
        """Return all responses in the form that Powertools takes."""
        successes = {
            status: {"description": words} if status == _NOT_MODIFIED else _response(words, model)
            for status, (words, model) in self.responses.items()
        }
        return successes | {status: _refusal(status) for status in (*self.errors, *_ANY)}


_NOT_MODIFIED = 304
_ANY = (400, 403, 426, 429, 500, 503)
_REFUSALS = {
    400: "`InvalidRequest`: a value of the wrong type, form or meaning; `field` names it.",
    403: (
        "`AccessDenied`: the caller lacks the role that this takes. `RoleNotAllowed`, `RequestNotAllowed`, "
        "`ShareNotAllowed`: the caller may not pass this role, not create such a training job, or not use this share."
    ),
    404: "`JobNotFound`, `PoolNotFound`: there is no job or pool of this name.",
    409: (
        "`NameTaken`, `IllegalTransition`, `VersionConflict`, `PoolInUse`, `BudgetExhausted` or `NotOffered`: "
        "the current state does not allow it."
    ),
    413: "`TooLarge`: the request is larger than the queue can store.",
    415: "`UnsupportedMediaType`: the body is not declared as JSON.",
    422: "`NeverFits`: no pool could ever meet the demand. `UnknownOption`: a `trainmaster:` tag that does not exist.",
    426: "`ClientTooOld`: the version in the header `x-trainmaster-version` is too old for this service.",
    429: "`Throttled`: nothing was done; retry after the seconds in `Retry-After`.",
    500: "`InternalError`: an unexpected error; the hint has the request's id.",
    503: (
        "`Unavailable` or `ServiceError`: the request may have been done or not; every request can be repeated. "
        "`UnsupportedSchema`: another release wrote the table; nothing was done."
    ),
}
SUBMIT_ERRORS = (409, 413, 415, 422)


def operation(  # noqa: PLR0913, PLR0917 - the declaration's members in their order
    method: str,
    rule: str,
    action: Action,
    summary: str,
    responses: Mapping[int, tuple[str, type[BaseModel] | None]],
    errors: tuple[int, ...] = (),
) -> Callable[[Route], Route]:
    """Return a decorator that declares a method as the route of an operation; see `Operation`."""

    def declare(route: Route) -> Route:
        setattr(route, _OPERATION, Operation(method, rule, action, summary, responses, errors))
        return route

    return declare


def operations_of(routes: type) -> dict[str, tuple[str, Operation]]:
    """Return the method and the declaration of each operation of a class of routes, by the operation's name."""
    declared = ((name, getattr(member, _OPERATION, None)) for name, member in vars(routes).items())
    return {to_camel(name): (name, found) for name, found in declared if found is not None}


def _response(words: str, model: type[BaseModel] | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"schema": {"type": "object"}} if model is None else {"model": model}
    return {"description": words, "content": {"application/json": schema}}


def _refusal(status: int) -> dict[str, Any]:
    response = _response(_REFUSALS[status], Error)
    return response | {"headers": {"Retry-After": _RETRY_AFTER}} if status in _PASSING else response


_PASSING = (429, 503)
_RETRY_AFTER = {"description": "Seconds to wait before a retry.", "schema": {"type": "integer"}}
