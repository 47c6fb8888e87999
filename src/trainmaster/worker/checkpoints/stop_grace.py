"""Keeps an agent from stopping its workers before they have saved: for as long as they may take, and no longer.

Torch's agent kills workers 30 seconds after it has decided on a restart, whatever they do. So the decision waits for
their answer to a notice instead. This must not wait itself: the agent asks again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trainmaster.worker.checkpoints.notices import Notice, Reason


class Notified(Protocol):
    """What of `notices.Notices` an agent needs."""

    def ask(self, reason: Reason) -> int:
        """Ask the workers for a checkpoint; the number of the request."""
        ...

    def settled(self, number: int) -> bool:
        """Whether no worker owes an answer to it."""
        ...

    def last(self) -> Notice | None:
        """The newest request of anyone."""
        ...

    def leaving(self) -> float | None:
        """By when this node is to have left because its container is being stopped, on the monotonic clock."""
        ...

    def end(self, reason: str) -> None:
        """Leave word of why the whole job ends here."""
        ...


class StopGrace:
    """One decision to stop the workers, from the request to the answer.

    Args:
        notices: where the workers answer; None where nobody would.
        clock: the machine's monotonic clock.
    """

    def __init__(self, notices: Notified | None, clock: Callable[[], float]) -> None:
        self._notices = notices
        self._clock = clock
        self._request: tuple[int, float] | None = None

    def over(self, reason: Reason, grace: float) -> bool:
        """Whether the workers may be stopped; the first call asks them for a checkpoint.

        Args:
            reason: what they are told.
            grace: seconds from that call on after which they are stopped all the same.
        """
        if self._notices is None:
            return True
        if self._request is None:
            self._request = self._notices.ask(reason), self._clock() + grace
        number, until = self._request
        return self._notices.settled(number) or self._clock() >= until

    def stopped(self) -> bool | None:
        """The same for a container that is being stopped, whose workers were asked already; None if it is not."""
        until = None if self._notices is None else self._notices.leaving()
        if self._notices is None or until is None:
            return None
        last = self._notices.last()
        return last is None or self._notices.settled(last.number) or self._clock() >= until

    def end(self, reason: str) -> None:
        """Nothing is to be waited for any more: the job ends, and this is what its container is to say of it."""
        if self._notices is not None:
            self._notices.end(reason)

    def reset(self) -> None:
        """The decision is carried out, or no longer called for."""
        self._request = None
