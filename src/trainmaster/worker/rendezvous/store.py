"""What the engine needs of whatever keeps its state: one value, changed by compare-and-set.

The two methods are torch's `RendezvousBackend` contract to the letter (`torch.distributed.elastic.rendezvous`,
"Registry" and `dynamic_rendezvous`), so that one store serves both engines. It must not look into the state.
"""

from __future__ import annotations

from typing import Any, Protocol

Token = Any
"""Opaque; never None nor falsy, and another one after every write."""


class StateStore(Protocol):
    """One run's state, and what the scheduler asks of it.

    Both methods raise `Unreachable` where the outcome is unknown or nobody answered, and `Corrupt` where the stored
    row is none of ours. They may block for a few seconds at most; retries are the engine's.
    """

    @property
    def control(self) -> str | None:
        """What the scheduler asks (JSON of `Control`), as it stood at the last read or lost write; None for nothing.

        It is stored beside the state and read with it, in one read. It may be there before any state is.
        """
        ...

    def get_state(self) -> tuple[bytes, Token] | None:
        """The state and its token, read consistently; None where none is stored."""
        ...

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Store the state if `token` is that of the stored one, or if it is None and nothing is stored.

        Returns what is stored now, its token, and whether that is what this call wrote; None where nothing is stored
        although a token was given.
        """
        ...
