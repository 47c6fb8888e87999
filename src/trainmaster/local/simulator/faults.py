"""Trouble on purpose: too many calls a second, and errors injected by a test's script.

It must not touch jobs: it only decides whether a call is answered with an error instead of, or after, being done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.local.simulator.wire.errors import ApiError, throttled

LIST_RATE = 2.0
"""ListTrainingJobs calls a second and account; not adjustable (facts/sagemaker.md 2.2)."""
DEFAULT_RATES = {"ListTrainingJobs": LIST_RATE}
EVERY = "*"
STATUS_OF = {"InternalFailure": 500, "InternalServerError": 500, "ServiceUnavailable": 503}


class Throttle:
    """A token bucket for each operation that has a rate, as deep as one second's calls.

    Args:
        rates: calls a second by operation; an operation that is not named is never throttled.
    """

    def __init__(self, rates: Mapping[str, float]) -> None:
        self.rates = dict(rates)
        self._buckets: dict[str, tuple[float, datetime]] = {}

    def check(self, operation: str, now: datetime) -> None:
        """Count a call. Raises `ApiError` (`ThrottlingException`) where it is one too many."""
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
    """An error that calls of an operation will be answered with.

    Attributes:
        operation: which; `*` for every one.
        error: the answer.
        skip: so many calls go well before the first that does not.
        times: so many calls are hit; None for all that follow.
        executed: whether the call is carried out all the same, so that only its answer is lost.
    """

    operation: str
    error: ApiError
    skip: int = 0
    times: int | None = 1
    executed: bool = False

    def hits(self, operation: str) -> bool:
        """Whether this call is one of those; counts it."""
        if self.operation not in (operation, EVERY) or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """The script of injected errors."""

    def __init__(self) -> None:
        self._script: list[Fault] = []

    def inject(  # noqa: PLR0913 - the fields of a Fault, each with its name
        self,
        operation: str,
        code: str,
        *,
        message: str | None = None,
        skip: int = 0,
        times: int | None = 1,
        executed: bool = False,
    ) -> Fault:
        """Answer calls of an operation with an error; see `Fault`. 5xx codes get their HTTP status by their name."""
        error = ApiError(code, message or code, STATUS_OF.get(code, 400))
        fault = Fault(operation, error, skip, times, executed)
        self._script.append(fault)
        return fault

    def clear(self) -> None:
        """No more injected errors."""
        self._script.clear()

    def next_for(self, operation: str) -> Fault | None:
        """The fault that hits this call, if any; counts the call."""
        hit = [fault for fault in self._script if fault.hits(operation)]
        return hit[0] if hit else None
