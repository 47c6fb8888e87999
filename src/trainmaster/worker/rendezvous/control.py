"""The scheduler's requirements for a rendezvous while it runs, and the legal sizes of a world.

The scheduler's side of the same JSON is `domain/elastic/rendezvous.Control`; a contract test compares the two.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from trainmaster.worker.rendezvous.errors import Corrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Bounds of a world, and the training jobs that must leave.

    Attributes:
        epoch: increases with every change; 0 before the scheduler has written anything.
        min_nodes, max_nodes: bounds of a world. `max_nodes` is also the expected number: a world of that size does not
            wait for more nodes.
        sizes: legal sizes, ascending; if empty, all from `min_nodes` to `max_nodes`.
        drain: training jobs whose nodes must save a checkpoint and leave.
        grace: seconds that they have for it.
    """

    epoch: int = 0
    min_nodes: int
    max_nodes: int
    sizes: tuple[int, ...] = ()
    drain: tuple[str, ...] = ()
    grace: float = 600.0

    def largest_size(self, nodes: int) -> int:
        """Return the size of the largest legal world of this many nodes, or 0 if they are too few."""
        top = min(nodes, self.max_nodes)
        if not self.sizes:
            return top if top >= self.min_nodes else 0
        return max((size for size in self.sizes if self.min_nodes <= size <= top), default=0)

    def expected_size(self) -> int:
        """Return the size at which a world does not wait for more nodes."""
        return self.largest_size(self.max_nodes)

    def smallest_size(self) -> int:
        """Return the size of the smallest legal world."""
        return min((size for size in self.sizes if size >= self.min_nodes), default=self.min_nodes)

    def drains(self, training_job_name: str) -> bool:
        """Return whether the nodes of this training job must leave."""
        return training_job_name in self.drain


def read_control(text: str) -> Control:
    """Parse the scheduler's JSON, ignoring unknown keys.

    Raises:
        Corrupt: it is not a valid control, or no world can satisfy it.
    """
    try:
        raw: Any = json.loads(text)
        control = Control(
            epoch=_integer(raw["epoch"]),
            min_nodes=_integer(raw["minNodes"]),
            max_nodes=_integer(raw["maxNodes"]),
            sizes=tuple(sorted({_integer(size) for size in raw.get("sizes") or ()})),
            drain=tuple(_string(name) for name in raw.get("drain") or ()),
            grace=float(raw.get("grace", 600.0)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as cause:
        raise Corrupt("the control of this rendezvous cannot be read") from cause
    bounded = 1 <= control.min_nodes <= control.max_nodes and 0.0 <= control.grace < math.inf
    if not bounded or control.expected_size() == 0:
        raise Corrupt(f"no world can satisfy the control of this rendezvous: {control}")
    return control


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"not an integer: {value!r}")
    return value


def _string(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"not a string: {value!r}")
    return value
