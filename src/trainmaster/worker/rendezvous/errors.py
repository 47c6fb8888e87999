"""Errors of a rendezvous.

    TrainmasterError
    ├── Unavailable
    │   └── Unreachable      the table did not respond; a write may have taken effect. No node ends because of it
    │       ├── Unverified   the row was written by someone who does not know the secret of the run; it is not used
    │       └── TableMissing there is no such table; ends the wait of a node that has never read it
    ├── Fenced               (`checkpoints`) a newer world exists; this one must not write checkpoints
    └── RendezvousError
        ├── Corrupt          the stored row is not valid; no part of it is executed
        ├── Closed           the rendezvous has ended for good, with a reason
        ├── Drained          the scheduler has requested this node to leave; exit with code 0
        ├── TimedOut         no world, or no response, within the timeout
        └── RoundLost        another round has begun; join again

Imports neither torch nor boto3: stores and handlers translate their errors to and from these.
"""

from __future__ import annotations

from trainmaster.domain.errors import TrainmasterError, Unavailable


class Unreachable(Unavailable):
    """The table did not respond, or rejected the request temporarily; a write may have taken effect."""


class Unverified(Unreachable):
    """The row is not signed with the secret of the run, so it says as little as a table that does not respond."""


class TableMissing(Unreachable):
    """There is no table of this name in this account and Region."""


class RendezvousError(TrainmasterError):
    """Base of the errors that end a node's wait."""


class Corrupt(RendezvousError):
    """The stored row is not a state or control that this version understands."""


class Closed(RendezvousError):
    """The rendezvous has ended for good.

    Args:
        reason: the reason given to `close`; `state.DONE` after the job's normal end.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the rendezvous is closed: {reason}")
        self.reason = reason


class Drained(RendezvousError):
    """The scheduler has requested this node to leave. The node has left, and the rendezvous stays open."""


class TimedOut(RendezvousError):
    """The operation did not complete within its timeout."""


class RoundLost(RendezvousError):
    """Another round has begun, so the world of this round no longer exists."""
