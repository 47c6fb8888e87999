"""What torch loads wherever it is imported and trainmaster is installed: the entry point `torchrun.handlers`.

Torch calls `creator` at `import torch.distributed.elastic.rendezvous`, in every worker process too, and only logs what
goes wrong. So this must import nothing but the standard library until torchrun really selects `dynamodb`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any


def creator() -> Callable[[Any], Any]:
    """What makes a handler of torch's `RendezvousParameters`."""
    return create


def create(parameters: Any) -> Any:
    """The handler for `torchrun --rdzv-backend=dynamodb`; it reads this process's environment.

    Raises ValueError for an endpoint that is none, `InvalidRequest` for whatever else is missing or wrong.
    """
    from trainmaster.worker.torch.handler import handler_of

    handler = handler_of(parameters, os.environ)
    # An agent that a signal ends never calls `shutdown`; this way the others need not find out by its silence.
    atexit.register(handler.depart)
    return handler
