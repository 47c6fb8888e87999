"""Detection of dead nodes, and timers of a round, on the clock of the node that observes.

A node is dead once its heartbeat count has not changed during reads that cover the timeout. No two clocks are compared,
so skew and drift do not matter. A gap between two reads counts as one interval at most: after an outage of the table,
or a pause of the reader, the other nodes get time to send a heartbeat before any of them is dead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf

NO_ROW = -1
"""Count of a node without a row."""


class Timer(Enum):
    """Conditions that are timed in a round.

    FORMING: the round is forming. LEGAL: a legal world is possible. LOST: the round follows a loss. GROWTH: a larger
    world is possible.
    """

    FORMING = auto()
    LEGAL = auto()
    LOST = auto()
    GROWTH = auto()


@dataclass(frozen=True, slots=True)
class _Heartbeat:
    """A count, when it was first seen, in observed seconds, and whether it had been another before."""

    count: int
    seen_at: float
    has_changed: bool


@dataclass(slots=True)
class LivenessMonitor:
    """A node's observations of the other nodes' heartbeats.

    Args:
        interval: seconds between two heartbeats.
        timeout: seconds without a heartbeat after which a node is dead.
    """

    interval: float
    timeout: float
    _observed_seconds: float = 0.0
    _read_at: float | None = None
    _heartbeats: dict[str, _Heartbeat] = field(default_factory=dict)
    _timer_starts: dict[Timer, float] = field(default_factory=dict)
    _round: int = 0
    _round_seen_at: float = inf  # observed seconds of the first read after the round was known

    def observe(self, counts: Mapping[str, int], now: float) -> None:
        """Record the heartbeat counts as just read from the table; `now` is this node's monotonic clock."""
        if self._read_at is not None:
            self._observed_seconds += min(max(now - self._read_at, 0.0), self.interval)
        self._read_at = now
        self._round_seen_at = min(self._round_seen_at, self._observed_seconds)
        self._heartbeats = {name: self._heartbeat(name, count) for name, count in counts.items()}

    def _heartbeat(self, name: str, count: int) -> _Heartbeat:
        known = self._heartbeats.get(name)
        if known is None:
            return _Heartbeat(count, self._observed_seconds, has_changed=False)
        if known.count == NO_ROW:  # the row that appears may have outlived its node
            return _Heartbeat(count, known.seen_at, has_changed=False)
        # A lower count is an old row that someone has put back.
        return _Heartbeat(count, self._observed_seconds, has_changed=True) if count > known.count else known

    def dead_nodes(self) -> frozenset[str]:
        """Return the nodes whose heartbeat count has not changed for the timeout."""
        limit = self._observed_seconds - self.timeout
        return frozenset(name for name, known in self._heartbeats.items() if known.seen_at <= limit)

    def seconds_to_next_death(self, own: str) -> float:
        """Return the seconds until a node other than `own` is dead if its count does not change; infinite for none."""
        limit = self._observed_seconds - self.timeout
        left = (known.seen_at - limit for name, known in self._heartbeats.items() if name != own)
        return min((seconds for seconds in left if seconds > 0), default=inf)

    def has_beaten(self, name: str, round_: int) -> bool:
        """Return whether this node has been seen to send a heartbeat since this reader has known of the round."""
        known = self._heartbeats.get(name)
        if known is None or round_ != self._round:
            return False
        return known.has_changed and known.seen_at > self._round_seen_at

    def elapsed(self, round_: int, conditions: Mapping[Timer, bool], now: float) -> dict[Timer, float]:
        """Return the seconds for which each condition has held without a break in this round; 0 if it does not hold."""
        if round_ != self._round:
            self._round, self._round_seen_at, self._timer_starts = round_, inf, {}
        self._timer_starts = {timer: self._timer_starts.get(timer, now) for timer, holds in conditions.items() if holds}
        return {timer: now - self._timer_starts[timer] if timer in self._timer_starts else 0.0 for timer in Timer}
