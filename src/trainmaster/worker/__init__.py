"""What runs inside a training container: the rendezvous of elastic jobs, and what starts on top of it.

It must stay light: torchrun imports it in every process that imports torch, so neither boto3 nor torch is imported
before somebody uses them. It shares no code with the queue, only the error tree and the JSON in the table.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.worker.rendezvous.rendezvous import Rendezvous
    from trainmaster.worker.rendezvous.world import World

__all__ = ["Rendezvous", "World"]

_HOMES = {"Rendezvous": "trainmaster.worker.rendezvous.rendezvous", "World": "trainmaster.worker.rendezvous.world"}


def __getattr__(name: str) -> object:
    """The public names, imported when they are asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
