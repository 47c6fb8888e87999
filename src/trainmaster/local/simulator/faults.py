"""Throttling, and errors that tests inject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.local.simulator.wire.errors import ApiError, throttled

LIST_RATE = 2.0
"""ListTrainingJobs calls per second and account, not adjustable; reported in https://github.com/aws-
solutions/deepracer-on-aws/issues/87."""
DEFAULT_RATES = {"ListTrainingJobs": LIST_RATE}
EVERY = "*"
STATUS_OF = {"InternalFailure": 500, "InternalServerError": 500, "ServiceUnavailable": 503}


class Throttle:
    """A token bucket for each operation with a rate; its depth is one second's calls.

    Args:
        rates: calls per second by operation; other operations are never throttled.
    """

    def __init__(self, rates: Mapping[str, float]) -> None:
        self.rates = dict(rates)
        self._buckets: dict[str, tuple[float, datetime]] = {}

    def check(self, operation: str, now: datetime) -> None:
        """Count a call. Raises `ApiError` (`ThrottlingException`) if it exceeds the rate."""
        rate = self.rates.get(operation)
        if rate is None:
            return
        depth = max(1.0, rate)
        tokens, since = self._buckets.get(operation, (depth, now))
        tokens = min(depth, tokens + rate * (now - since).total_seconds())
        self._buckets[operation] = (tokens - 1 if tokens >= 1 else tokens, now)
        if tokens < 1:
            raise throttled()


@dataclass(slots=True)
class Fault:
    """An error response to calls of an operation.

    Attributes:
        operation: its name; `*` for all.
        error: the response.
        skip: number of calls that succeed before the first error.
        times: number of calls that fail; None for all that follow.
        executed: True to carry out the call and lose only its response.
    """

    operation: str
    error: ApiError
    skip: int = 0
    times: int | None = 1
    executed: bool = False

    def hits(self, operation: str) -> bool:
        """Count a call; return True if it fails."""
        if self.operation not in (operation, EVERY) or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """The injected errors."""

    def __init__(self) -> None:
        self._script: list[Fault] = []

    def inject(  # noqa: PLR0913 - the fields of a Fault
        self,
        operation: str,
        code: str,
        *,
        message: str | None = None,
        skip: int = 0,
        times: int | None = 1,
        executed: bool = False,
    ) -> Fault:
        """Answer calls of an operation with an error; see `Fault`. Known 5xx codes get their HTTP status."""
        error = ApiError(code, message or code, STATUS_OF.get(code, 400))
        fault = Fault(operation, error, skip, times, executed)
        self._script.append(fault)
        return fault

    def clear(self) -> None:
        """Remove all injected errors."""
        self._script.clear()

    def next_for(self, operation: str) -> Fault | None:
        """Count a call of the operation, and return the fault that it meets, if any."""
        hit = [fault for fault in self._script if fault.hits(operation)]
        return hit[0] if hit else None
