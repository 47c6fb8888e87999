"""Errors of the API client, as one small tree.

    ApiError
    ├── Refused            the request cannot be accepted (400, 413, 422)
    │   └── Forbidden      the caller is not allowed to do this (401, 403)
    ├── NotFound           no such job or pool (404)
    ├── Conflict           the state of the job or the pools does not allow it (409)
    ├── Unreachable        no usable response: no connection, throttled, or failing after all attempts
    └── NotConfigured      the API's address is unknown

Every error says what to do in `hint`. `responses.py` creates them from HTTP responses.
"""

from __future__ import annotations

from trainmaster.domain.text import one_line


class ApiError(Exception):
    """Base of all errors: the API rejected the request, or did not respond.

    Attributes:
        type: the error's name in the API (`NeverFits`, `NameTaken`, ...).
        field: the invalid member of the request, or None.
        hint: what to do about it.
        status: the HTTP status; 0 if there was no response.
        retried: whether an earlier attempt of the same request may have been carried out.
    """

    def __init__(  # noqa: PLR0913 - the members of an error in the API
        self,
        message: str,
        *,
        type: str = "",  # noqa: A002 - named as in the API
        field: str | None = None,
        hint: str | None = None,
        status: int = 0,
        retried: bool = False,
    ) -> None:
        super().__init__(message)
        self.type = type or self.__class__.__name__
        self.message = message
        self.field = field
        self.hint = hint
        self.status = status
        self.retried = retried

    def __str__(self) -> str:
        """Return the message in one line without control characters, then the field and the hint if there are any."""
        where = f" (field {self.field})" if self.field else ""
        hint = f" {self.hint}" if self.hint else ""
        return one_line(f"{self.type}: {self.message}{where}{hint}")

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling with keyword arguments, for errors that cross processes (joblib, multiprocessing)."""
        return (_rebuild, (self.__class__, dict(self.__dict__)))


class Refused(ApiError):
    """The request is invalid: its name, shape, size, demand, role or an option."""


class Forbidden(Refused):
    """The caller's AWS identity may not call the API, or may not use the role in the request."""


class NotFound(ApiError):
    """The queue has no job or pool of this name."""


class Conflict(ApiError):
    """Another request has the name, or the state of the job or the pools does not allow the change."""


class Unreachable(ApiError):
    """The API returned no usable response within all attempts."""


class NotConfigured(ApiError):
    """No address of the API was given, and none was found."""


def _rebuild(kind: type[ApiError], state: dict[str, object]) -> ApiError:
    error = kind(str(state["message"]))
    error.__dict__.update(state)
    return error
