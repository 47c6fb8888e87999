"""Code that runs in training containers: the rendezvous of elastic jobs, and its integration with launchers.

torchrun imports it in every process that imports torch, so boto3 and torch are imported only when they are used. With
the queue it shares only the error tree, the names that Python 3.10 lacks (`domain/compat.py`), and the JSON in the
table.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.worker.rendezvous.rendezvous import Rendezvous
    from trainmaster.worker.rendezvous.world import World

__all__ = ["Rendezvous", "World"]

_MODULES = {"Rendezvous": "trainmaster.worker.rendezvous.rendezvous", "World": "trainmaster.worker.rendezvous.world"}


def __getattr__(name: str) -> object:
    """Import a public name on first access (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
