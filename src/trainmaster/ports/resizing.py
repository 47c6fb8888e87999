"""The rendezvous of elastic jobs, and hooks that carry out their resizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from trainmaster.domain.elastic.rendezvous import Control, RendezvousState, Run, SpeedReport
from trainmaster.domain.jobs.job import Job


class RendezvousControl(Protocol):
    """The queue's side of the rendezvous of elastic jobs. Verbs raise `Throttled`, `Unavailable`."""

    def get(self, run: Run) -> RendezvousState | None:
        """Return the rendezvous of a run; None before any node has joined. Raises `UnreadableRendezvous` too."""
        ...

    def set(self, run: Run, control: Control) -> None:
        """Set the size and the drain list that the nodes of a run must follow; idempotent."""
        ...

    def speed(self, run: Run) -> SpeedReport | None:
        """Return what the nodes of a run last reported of their speed; None without a report.

        Raises `UnreadableRendezvous` for one that is not signed by nodes of the run, or is malformed.
        """
        ...

    def key(self, run: Run) -> str:
        """Return the secret with which the queue and the nodes of a run sign what they write; always the same."""
        ...


class ResizeHook(Protocol):
    """Carries out an elastic job's resizes, step by step."""

    def advance(self, job: Job, *, retry: bool) -> Job:
        """Take the next steps for a job that holds capacity; return the job as stored then.

        Every pass calls this again, so every step is idempotent; `retry` tells whether an earlier pass may have taken
        the same steps. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class ResizeRequester(Protocol):
    """Requests a resize from a Lambda function or an event's consumer (`elastic.Hook.CUSTOM`)."""

    def request_resize(self, target: str, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Send the request; return the answer, None if it comes later.

        Args:
            target: the recipient, see `Elastic.target`.
            question: the request that `docs/how-to/custom-resize.md` describes, as JSON values.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...
