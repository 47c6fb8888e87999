"""Detection of dead nodes, and timers of a round, on the clock of the node that observes.

A node is dead once its heartbeat count has not changed during reads that cover the timeout. No two clocks are compared,
so skew and drift do not matter. A gap between two reads counts as one interval at most: after an outage of the table,
or a pause of the reader, the other nodes get time to send a heartbeat before any of them is dead. In a large group all
nodes send heartbeats less often (`interval_factor`), because their writes to the one row would block each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from trainmaster.worker.rendezvous.state import Node

MAX_NODES_AT_FULL_RATE = 8
"""Nodes that send one heartbeat per interval. With 64 writers a second to one row, most writes would conflict."""


def interval_factor(nodes: int) -> float:
    """Return the factor, at least 1, by which intervals are longer in a group of this many nodes."""
    return max(1.0, nodes / MAX_NODES_AT_FULL_RATE)


class Timer(Enum):
    """Conditions that are timed in a round.

    FORMING: the round is forming. LEGAL: a legal world is possible. LOST: the round follows a loss. GROWTH: a larger
    world is possible.
    """

    FORMING = auto()
    LEGAL = auto()
    LOST = auto()
    GROWTH = auto()


@dataclass(slots=True)
class LivenessMonitor:
    """A node's observations of the other nodes' heartbeats.

    Args:
        interval: seconds between two heartbeats in a small group.
        timeout: seconds without a heartbeat after which a node is dead, in a small group.
    """

    interval: float
    timeout: float
    _observed_seconds: float = 0.0
    _read_at: float | None = None
    _heartbeats: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    _timer_starts: dict[Timer, float] = field(default_factory=dict)
    _round: int = 0
    _factor: float = 1.0
    _factor_set_at: float = 0.0

    def observe(self, nodes: Mapping[str, Node], now: float) -> None:
        """Record the nodes as just read from the table; `now` is this node's monotonic clock."""
        if self._read_at is not None:
            self._observed_seconds += min(max(now - self._read_at, 0.0), self.interval * self._factor)
        self._read_at = now
        self._set_factor(interval_factor(len(nodes)))
        self._heartbeats = {name: self._heartbeat(name, node.beat, now) for name, node in nodes.items()}

    def _heartbeat(self, name: str, beat: int, now: float) -> tuple[int, float, float]:
        known = self._heartbeats.get(name)
        return known if known is not None and known[0] == beat else (beat, self._observed_seconds, now)

    def _set_factor(self, factor: float) -> None:
        """Set the factor; after a group shrinks, keep the larger one for a timeout, since its nodes still follow it."""
        if factor >= self._factor or self._observed_seconds - self._factor_set_at >= self.timeout * self._factor:
            self._factor, self._factor_set_at = factor, self._observed_seconds

    def dead_nodes(self) -> frozenset[str]:
        """Return the nodes whose heartbeat count has not changed for the timeout."""
        limit = self.timeout * self._factor
        return frozenset(name for name, count in self._heartbeats.items() if self._observed_seconds - count[1] >= limit)

    def seconds_since_heartbeat(self, name: str, now: float) -> float:
        """Return the seconds since a change of this node's count was observed; 0 for an unknown node."""
        return now - self._heartbeats[name][2] if name in self._heartbeats else 0.0

    def elapsed(self, round_: int, conditions: Mapping[Timer, bool], now: float) -> dict[Timer, float]:
        """Return the seconds for which each condition has held without a break in this round; 0 if it does not hold."""
        if round_ != self._round:
            self._round, self._timer_starts = round_, {}
        self._timer_starts = {timer: self._timer_starts.get(timer, now) for timer, holds in conditions.items() if holds}
        return {timer: now - self._timer_starts[timer] if timer in self._timer_starts else 0.0 for timer in Timer}
