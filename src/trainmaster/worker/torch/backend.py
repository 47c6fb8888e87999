"""The row of a rendezvous as the backend of torch's own `DynamicRendezvousHandler`.

For those who want torch's engine on DynamoDB; `torch_handler` has ours, which keeps JSON in the row. Torch's engine
pickles its state: who may write the row may then run code in every node. This must not unpickle anything itself, and
lets out no error but the two that torch's contract allows (any other one ends its keep-alive thread).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.distributed.elastic.rendezvous import RendezvousConnectionError, RendezvousParameters, RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend

from trainmaster.worker.rendezvous.dynamodb import Address, DynamoStateStore, client_of
from trainmaster.worker.rendezvous.errors import Corrupt, Unreachable
from trainmaster.worker.rendezvous.state import StateStore, Token

NAME = "dynamodb"
"""Name of the backend, and of the plug-in: torch wants them to be the same."""


class DynamoDBRendezvousBackend(RendezvousBackend):
    """Torch's `RendezvousBackend`: opaque bytes under a token, changed by compare-and-set.

    Args:
        store: keeps the bytes of one run.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        """See the base class."""
        return NAME

    def get_state(self) -> tuple[bytes, Token] | None:
        """See the base class."""
        with _translated():
            return self._store.get_state()

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """See the base class."""
        with _translated():
            return self._store.set_state(state, token)


def create_backend(params: RendezvousParameters) -> DynamoDBRendezvousBackend:
    """The backend for the table that the endpoint names, `TABLE` or `REGION/TABLE`. Raises ValueError."""
    address = Address.of(params.endpoint)
    return DynamoDBRendezvousBackend(DynamoStateStore(client_of(address.region), address.table, params.run_id))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Unreachable as error:
        raise RendezvousConnectionError(str(error)) from error
    except Corrupt as error:
        raise RendezvousStateError(str(error)) from error
