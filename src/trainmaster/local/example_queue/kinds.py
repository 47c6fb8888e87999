"""Registers the examples of other kinds of jobs; the only module of this layer that names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any, Protocol

from trainmaster.local.example_queue.player import Sort


class KindExamples(Protocol):
    """The examples of a kind of jobs."""

    @property
    def STACKS(self) -> Mapping[str, Mapping[str, str]]:  # noqa: N802 - a constant of a module
        """The stacks that it needs: folders of templates, with parameters."""
        ...

    @property
    def EXAMPLES(self) -> Sequence[Sort]:  # noqa: N802 - a constant of a module
        """Its jobs."""
        ...

    def model_server(self) -> AbstractContextManager[str]:
        """Serve the model that the simulator shows for an endpoint, and yield its URL."""
        ...

    def prepare(self, client: Callable[[str], Any]) -> None:
        """Create what its jobs need. `client` returns a client of an AWS service of the stack."""
        ...


def kind_examples() -> KindExamples | None:
    """Return the examples of the other kind of jobs; None if this checkout has none."""
    if find_spec("trainmaster.images") is None:
        return None
    from trainmaster.images.local import example_queue

    return example_queue
