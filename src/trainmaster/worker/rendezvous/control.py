"""What the scheduler asks of a rendezvous while it runs, and which sizes of a world are legal.

The scheduler's side of the same JSON is `domain/rendezvous.Control`; a contract test holds them together. It must not
decide who is in a world: `operators` and `actions` do.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from trainmaster.worker.rendezvous.errors import Corrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Bounds of a world, and who is to leave.

    Attributes:
        epoch: grows with every change; 0 where the scheduler has said nothing yet.
        least, most: nodes that a world may have. `most` is also how many are expected: a world of so many waits
            for nobody else.
        sizes: the legal sizes, ascending; empty where every number from `least` to `most` is.
        drain: training jobs whose nodes are to checkpoint and leave.
        grace: seconds that they have for it.
    """

    epoch: int = 0
    least: int
    most: int
    sizes: tuple[int, ...] = ()
    drain: tuple[str, ...] = ()
    grace: float = 600.0

    def at_most(self, nodes: int) -> int:
        """The largest legal size that so many nodes can form; 0 where they are too few."""
        top = min(nodes, self.most)
        if not self.sizes:
            return top if top >= self.least else 0
        return max((size for size in self.sizes if self.least <= size <= top), default=0)

    def expected(self) -> int:
        """The size that waits for nobody else."""
        return self.at_most(self.most)

    def drains(self, training_job_name: str) -> bool:
        """Whether the nodes of this training job are to leave."""
        return training_job_name in self.drain


def read_control(text: str) -> Control:
    """The scheduler's JSON as a value; keys that this version does not know are left alone.

    Raises `Corrupt`.
    """
    try:
        raw: Any = json.loads(text)
        control = Control(
            epoch=_whole(raw["epoch"]),
            least=_whole(raw["least"]),
            most=_whole(raw["most"]),
            sizes=tuple(sorted({_whole(size) for size in raw.get("sizes") or ()})),
            drain=tuple(_text(name) for name in raw.get("drain") or ()),
            grace=float(raw.get("grace", 600.0)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as cause:
        raise Corrupt("what the scheduler asks of this rendezvous cannot be read") from cause
    bounded = 1 <= control.least <= control.most and 0.0 <= control.grace < math.inf
    if not bounded or control.expected() == 0:
        raise Corrupt(f"what the scheduler asks of this rendezvous cannot be met: {control}")
    return control


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"not a whole number: {value!r}")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"not a text: {value!r}")
    return value
