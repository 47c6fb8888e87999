"""What can go wrong in a rendezvous, as types.

    TrainmasterError
    ├── Unavailable
    │   └── Unreachable      the table did not answer: it may or may not have happened; ends no node
    ├── Fenced               (`checkpoints`) a newer world works: this one must write no checkpoint
    └── RendezvousTrouble
        ├── Corrupt          what the table holds is no state of ours; it is never executed
        ├── Closed           it is over for good, with the reason
        ├── Drained          this node was asked to leave; it ends with exit code 0
        ├── TimedOut         no world, or no answer, within the time that was given
        └── RoundLost        the world that this was about is no longer the present one: join again

It must not import torch or boto3: stores and handlers translate into these.
"""

from __future__ import annotations

from trainmaster.domain.errors import TrainmasterError, Unavailable


class Unreachable(Unavailable):
    """The table did not answer, or refused for now; a write may or may not have taken effect."""


class RendezvousTrouble(TrainmasterError):
    """Base of what ends a wait of a node."""


class Corrupt(RendezvousTrouble):
    """What is stored is no state, or no control, that this version understands."""


class Closed(RendezvousTrouble):
    """The rendezvous is over for good.

    Args:
        reason: as whoever closed it gave it; `state.DONE` where the job has come to its normal end.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the rendezvous is closed: {reason}")
        self.reason = reason


class Drained(RendezvousTrouble):
    """The scheduler wants this node to leave; it is out of the rendezvous, and nothing is closed."""


class TimedOut(RendezvousTrouble):
    """It did not come about within the time given."""


class RoundLost(RendezvousTrouble):
    """Another round has begun meanwhile: this one's world is no more."""
