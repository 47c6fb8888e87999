"""Grace between the decision to stop workers and the stop, in which they save a checkpoint.

Torch's agent kills workers 30 seconds after it decides on a restart, whether they have saved or not. The decision is
therefore delayed until the workers have answered a request. Nothing here waits: the agent calls repeatedly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from trainmaster.worker.checkpoints.notices import NodeWorld, Notice, Reason

log = logging.getLogger(__name__)


class CheckpointNotices(Protocol):
    """The part of `notices.Notices` that an agent uses."""

    def request_checkpoint(self, reason: Reason) -> int:
        """Request a checkpoint from the workers, and return the number of the request."""
        ...

    def is_answered(self, number: int) -> bool:
        """Return whether all workers have answered the request."""
        ...

    def last(self) -> Notice | None:
        """Return the newest request of any process."""
        ...

    def leave_deadline(self) -> float | None:
        """Return the monotonic time by which this node must leave, or None unless its container is being stopped."""
        ...

    def announce_world(self, world: NodeWorld | None) -> None:
        """Record the world that this node has joined, or that it is in none."""
        ...

    def fail_job(self, reason: str) -> None:
        """Record the reason for which the job fails."""
        ...


class StopGrace:
    """One decision to stop the workers, from the request to the answer.

    Args:
        notices: directory in which the workers answer; None without one.
        clock: the machine's monotonic clock.
    """

    def __init__(self, notices: CheckpointNotices | None, clock: Callable[[], float]) -> None:
        self._notices = notices
        self._clock = clock
        self._request: tuple[int, float] | None = None

    def expired(self, reason: Reason, grace: float) -> bool:
        """Return whether the workers may be stopped; the first call requests a checkpoint from them.

        Args:
            reason: reason of the request.
            grace: seconds after the first call at which they may be stopped even without an answer.
        """
        if self._notices is None:
            return True
        if self._request is None:
            self._request = _request_checkpoint(self._notices, reason), self._clock() + grace
        number, until = self._request
        return self._notices.is_answered(number) or self._clock() >= until

    def container_stop_expired(self) -> bool | None:
        """Return the same for a container that is being stopped, whose workers have a request already, or None."""
        until = None if self._notices is None else self._notices.leave_deadline()
        if self._notices is None or until is None:
            return None
        last = self._notices.last()
        return last is None or self._notices.is_answered(last.number) or self._clock() >= until

    def fail_job(self, reason: str) -> None:
        """Record the reason for which the job fails."""
        if self._notices is not None:
            self._notices.fail_job(reason)

    def reset(self) -> None:
        """Forget the request: the decision was carried out, or is obsolete."""
        self._request = None


def _request_checkpoint(notices: CheckpointNotices, reason: Reason) -> int:
    """Request a checkpoint; if that is not possible, as on a full disk, return a request that counts as answered."""
    try:
        return notices.request_checkpoint(reason)
    except OSError as error:
        log.warning("trainmaster: the workers are stopped, and could not be asked for a checkpoint: %s", error)
        return 0
