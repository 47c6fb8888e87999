"""What can go wrong between a user's program and the queue's API, as one small tree.

    ApiError
    ├── Refused            the request cannot be accepted as it is (400, 413, 422)
    │   └── Forbidden      the caller may not do this (401, 403)
    ├── NotFound           no such job (404)
    ├── Conflict           the job or the pools are not in a state that allows it (409)
    ├── Unreachable        no usable answer: no connection, throttled or failing after all tries
    └── NotConfigured      nobody said where the API is

Every error says what to do in `hint`. This module must not speak HTTP: `answers.py` makes these from responses.
"""

from __future__ import annotations


class ApiError(Exception):
    """The API refused, or could not be asked.

    `type` is the error's name in the API (`NeverFits`, `NameTaken`, ...), `field` the member of the request that is
    wrong (or None), `hint` what to do about it, `status` the HTTP status (0 when there was no answer), `retried` tells
    that an earlier try of the same request may have been carried out.
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
        """The message, then the field and the hint where there are any."""
        where = f" (field {self.field})" if self.field else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.type}: {self.message}{where}{hint}"

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders (joblib, multiprocessing); keyword arguments need this to survive pickling."""
        return (_rebuild, (self.__class__, dict(self.__dict__)))


class Refused(ApiError):
    """The request is wrong: its name, shape, size, demand, role or an option."""


class Forbidden(Refused):
    """The caller's AWS identity may not call the API, or may not use the role it named."""


class NotFound(ApiError):
    """The queue knows no job of this name."""


class Conflict(ApiError):
    """The name is taken by another request, or the state of the job (or of the pools) forbids the change."""


class Unreachable(ApiError):
    """The API gave no usable answer within all tries."""


class NotConfigured(ApiError):
    """No address of the API was given, and none could be found."""


def _rebuild(kind: type[ApiError], state: dict[str, object]) -> ApiError:
    error = kind(str(state["message"]))
    error.__dict__.update(state)
    return error
