"""Who lives, and for how long something has been so, as one node has seen it on its own clock.

A node is dead once its count of beats has stood still, under this reader's eyes, for the expiry. No two clocks are
ever compared, so skew and drift do not matter. Only time between reads counts, and a gap counts as one interval at
most: after an outage of the table, or a pause of the reader itself, the others get their time to beat again before
anyone is dead. In a large group all beat less often (`pace`), or their writes to the one row would starve each other.
It must not change the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from trainmaster.worker.rendezvous.state import Node

NODES_AT_FULL_PACE = 8
"""So many nodes beat once an interval; 64 with an interval of 1 s would write 64 times a second, and lose as often."""


def pace(nodes: int) -> float:
    """By how much intervals are longer in a group of so many nodes: from 1."""
    return max(1.0, nodes / NODES_AT_FULL_PACE)


class Mark(Enum):
    """What is timed, in one round: it is being formed; could be legal; has lost a node; a larger world is possible."""

    FORMING = auto()
    LEGAL = auto()
    LOST = auto()
    GROWTH = auto()


@dataclass(slots=True)
class Watch:
    """What one node has seen so far.

    Args:
        interval: seconds between two beats, in a small group.
        expiry: seconds without one after which a node is dead, in a small group.
    """

    interval: float
    expiry: float
    _watched: float = 0.0
    _read_at: float | None = None
    _counts: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    _marks: dict[Mark, float] = field(default_factory=dict)
    _round: int = 0
    _pace: float = 1.0
    _paced_at: float = 0.0

    def observe(self, nodes: Mapping[str, Node], now: float) -> None:
        """The nodes as just read from the table; `now` is this node's monotonic clock."""
        if self._read_at is not None:
            self._watched += min(max(now - self._read_at, 0.0), self.interval * self._pace)
        self._read_at = now
        self._keep_pace(pace(len(nodes)))
        self._counts = {name: self._count(name, node.beat, now) for name, node in nodes.items()}

    def _count(self, name: str, beat: int, now: float) -> tuple[int, float, float]:
        known = self._counts.get(name)
        return known if known is not None and known[0] == beat else (beat, self._watched, now)

    def _keep_pace(self, wanted: float) -> None:
        """The pace of a group that shrinks holds for one more expiry: its nodes have just beaten at the slower one."""
        if wanted >= self._pace or self._watched - self._paced_at >= self.expiry * self._pace:
            self._pace, self._paced_at = wanted, self._watched

    def dead(self) -> frozenset[str]:
        """Nodes whose count has stood still for too long."""
        limit = self.expiry * self._pace
        return frozenset(name for name, count in self._counts.items() if self._watched - count[1] >= limit)

    def quiet_for(self, name: str, now: float) -> float:
        """Seconds since this node's count was seen to change; 0 for one that was never seen."""
        return now - self._counts[name][2] if name in self._counts else 0.0

    def elapsed(self, round_: int, holds: Mapping[Mark, bool], now: float) -> dict[Mark, float]:
        """For how many seconds each of these has held without a break in this round; 0 for what does not hold."""
        if round_ != self._round:
            self._round, self._marks = round_, {}
        self._marks = {mark: self._marks.get(mark, now) for mark, true in holds.items() if true}
        return {mark: now - self._marks[mark] if mark in self._marks else 0.0 for mark in Mark}
