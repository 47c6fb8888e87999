"""The order `fair`: shares take turns by their usage, which decays with a half-life; then as `backfill`.

Sources: Slurm, fair tree and `PriorityDecayHalfLife`; Kueue, admission fair sharing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from trainmaster.domain.plan import Snapshot
from trainmaster.domain.shares.usage import accelerators_of, faded_seconds
from trainmaster.planner.orders.backfill import Backfill

CHARGED_IN_ADVANCE = timedelta(hours=1)
"""Every start is charged this long in advance, and after that by its real usage.

Without the advance, the share that has used least would get all idle units of a pass. Later passes charge active
attempts alike, so units given one at a time are shared like units given at once.
"""


class Fair(Backfill):
    """Usage-based fair sharing."""

    name: ClassVar[str] = "fair"
    by_usage: ClassVar[bool] = True

    def usage(self, snapshot: Snapshot, now: datetime) -> DecayedUsage:
        """Return the decayed usage of the shares."""
        return DecayedUsage(snapshot, now)


@dataclass(slots=True)
class DecayedUsage:
    """GPU-seconds that shares have used, decayed by the policy's `usage_half_life`."""

    snapshot: Snapshot
    now: datetime
    _advance: float = field(init=False)
    _used: dict[str, float] = field(init=False, default_factory=dict)
    _active: dict[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Charge active attempts, each for at least the advance."""
        half_life = self.snapshot.policy.usage_half_life
        self._advance = faded_seconds(self.now - CHARGED_IN_ADVANCE, self.now, half_life)
        for job in self.snapshot.active:
            if job.attempt is not None:
                accelerators = accelerators_of(job.units, self.snapshot.pools)
                # Units that it held before its last resize are charged already.
                since = min(job.attempt.held_since, self.now - CHARGED_IN_ADVANCE)
                self._used[job.share] = self._past(job.share) + accelerators * faded_seconds(since, self.now, half_life)
                self._active[job.share] = self._active.get(job.share, 0) + accelerators

    def of(self, share: str, accelerators: int) -> float:
        """Return the usage of a share; accelerators beyond those of its active attempts are charged in advance."""
        return self._past(share) + (accelerators - self._active.get(share, 0)) * self._advance

    def _past(self, share: str) -> float:
        if share not in self._used:
            usage, half_life = self.snapshot.records.usage, self.snapshot.policy.usage_half_life
            self._used[share] = usage.faded(share, self.now, half_life)
        return self._used[share]
