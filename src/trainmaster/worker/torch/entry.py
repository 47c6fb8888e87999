"""Entry point of `torchrun.handlers`, loaded by every process that imports torch where trainmaster is installed.

Torch calls `creator` at `import torch.distributed.elastic.rendezvous`, in worker processes too, and only logs errors.
Nothing beyond the standard library is imported until torchrun selects `dynamodb`.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from typing import Any


def creator() -> Callable[[Any], Any]:
    """Return the function that creates a handler from torch's `RendezvousParameters`."""
    return create


def create(parameters: Any) -> Any:
    """Return the handler for `torchrun --rdzv-backend=dynamodb`, using this process's environment.

    Raises:
        ValueError: the endpoint is not valid.
        InvalidRequest: another option or variable is missing or not valid.
    """
    from trainmaster.worker.torch.handler import make_handler

    handler = make_handler(parameters, os.environ)
    # An agent that is ended by a signal never calls `shutdown`. Without this, the other nodes would have to evict it.
    atexit.register(_leave, weakref.ref(handler))
    return handler


def _leave(reference: weakref.ref[Any]) -> None:
    handler = reference()
    if handler is not None:
        handler.leave()
