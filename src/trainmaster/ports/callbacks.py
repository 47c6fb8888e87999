"""Executions of orchestrators that wait for jobs, as far as the queue answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

Description = Mapping[str, Any]
"""A training job as JSON values, in the form of DescribeTrainingJob's answer."""
Describe = Callable[[str], Description | None]
"""Returns a training job's description by its name; None if SageMaker does not know it.

Raises `Throttled`, `Unavailable`, `NotPermitted`.
"""


class Executions(Protocol):
    """Answers the executions of one orchestrator by their tokens.

    Each verb may raise `ExecutionGone` if the execution waits no longer, `Throttled`, `Unavailable` and `NotPermitted`.
    An answer may be repeated: the first one counts.
    """

    def succeed(self, token: str, description: Description) -> None:
        """End the wait with a completed training job."""
        ...

    def fail(self, token: str, error: str, description: Description) -> None:
        """End the wait with a named error, and with the description of the training job that has failed."""
        ...

    def heartbeat(self, token: str) -> None:
        """Tell that the job goes on."""
        ...
