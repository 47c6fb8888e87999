"""Pauses in the output of workers: from an event to the first step of the next world."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """One pause, in seconds.

    Attributes:
        took: from the event to the first step of the next world.
        still: from the last step of any world before to that step: time without training.
        imports: time that the last worker took to import torch; without the import it would be ready earlier by that.
        meets: from the last worker's import to that step: the time to make the process group.
    """

    took: float
    still: float
    imports: float
    meets: float

    def figures(self) -> dict[str, float]:
        """Return the figures for the results."""
        return {name: round(value, 3) for name, value in asdict(self).items()} | {
            "without_import": round(self.took - self.imports, 3)
        }


def worlds_with_steps(lines: Iterable[Line]) -> set[int]:
    """Return the worlds that have made a step."""
    return {line["world"] for line in lines if line["what"] == "step"}


def pause(lines: Collection[Line], event: float, size: int, known: Collection[int]) -> Pause | None:
    """Return the pause after an event; None until a new world of this size has made a step.

    Args:
        lines: output of all workers.
        event: time of the event.
        size: size of the next world.
        known: worlds before the event.
    """
    formed = {line["world"] for line in lines if line["what"] == "world" and line["size"] == size} - set(known)
    steps = sorted((line["at"], line["world"]) for line in lines if line["what"] == "step")
    first = next(((at, world) for at, world in steps if world in formed), None)
    if first is None:
        return None
    began, world = first
    members = [line for line in lines if line["what"] == "world" and line["world"] == world]
    last = max(members, key=lambda line: line["imported"])
    before = max((at for at, other in steps if at < began and other != world), default=event)
    return Pause(
        took=began - event,
        still=began - before,
        imports=last["imported"] - last["started"],
        meets=began - last["imported"],
    )


def longest_gap(lines: Iterable[Line], since: float, until: float) -> float:
    """Return the longest time without a step between two times."""
    at = sorted(line["at"] for line in lines if line["what"] == "step" and since <= line["at"] <= until)
    marks = [since, *at, until]
    return max(later - earlier for earlier, later in pairwise(marks))


def overlapped(lines: Iterable[Line]) -> bool:
    """Return True if two worlds have worked at the same time, which a rendezvous must prevent."""
    spans: dict[int, list[float]] = {}
    for line in lines:
        if line["what"] == "step":
            spans.setdefault(line["world"], []).append(line["at"])
    ordered = sorted((min(at), max(at)) for at in spans.values())
    return any(later[0] < earlier[1] for earlier, later in pairwise(ordered))
