"""The row of a rendezvous as a backend of torch's own `DynamicRendezvousHandler`.

Use it for torch's engine on DynamoDB; `handler` is this project's engine, which keeps JSON in the row. Torch's engine
pickles its state, so a process that knows the secret of the run can run code in every node. This module unpickles
nothing, and raises only the two errors that torch's contract allows, since any other ends torch's keep-alive thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from torch.distributed.elastic.rendezvous import RendezvousConnectionError, RendezvousParameters, RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend

from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore, TableAddress, dynamodb_client
from trainmaster.worker.rendezvous.errors import Unreachable, Unverified
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.rendezvous.state import StateStore, Token

NAME = "dynamodb"
"""Name of the backend and of the plug-in, which torch requires to be equal."""


class DynamoDBRendezvousBackend(RendezvousBackend):
    """Torch's `RendezvousBackend`: opaque bytes under a token, changed by compare-and-set.

    Args:
        store: store of one run.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        """Name of the backend."""
        return NAME

    def get_state(self) -> tuple[bytes, Token] | None:
        """Return the state; see the base class."""
        with _errors_translated():
            return self._store.get_state()

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Store the state; see the base class."""
        with _errors_translated():
            return self._store.set_state(state, token)


def create_backend(params: RendezvousParameters) -> DynamoDBRendezvousBackend:
    """Return the backend for the table that the endpoint names, `TABLE` or `REGION/TABLE`.

    Raises:
        ValueError: the endpoint is not valid.
    """
    address, run = TableAddress.parse(params.endpoint), Run.from_environment(os.environ, params.run_id)
    return DynamoDBRendezvousBackend(DynamoStateStore(dynamodb_client(address.region), address.table, run))


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except Unverified as error:
        raise RendezvousStateError(str(error)) from error
    except Unreachable as error:
        raise RendezvousConnectionError(str(error)) from error
