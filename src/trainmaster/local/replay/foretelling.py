"""What the queue foretells of waiting jobs while a trace is played, and how right it was.

Asked as the API asks (`service.explain`), once of a job, in the moment in which it has arrived and has to wait. It must
not foretell anything itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.domain.job import WAITING
from trainmaster.local.replay.figures import percentile
from trainmaster.local.replay.played import Played
from trainmaster.ports import Store
from trainmaster.service import Explanation, explain


@dataclass(frozen=True, slots=True)
class Foretold:
    """A start as it was foretold; None where it could not be."""

    asked_at: datetime
    likely: datetime | None = None
    low: datetime | None = None
    high: datetime | None = None


@dataclass(slots=True)
class Foretelling:
    """Asks of every so many'th job.

    Args:
        store: the queue's.
        every: 0 for none.
    """

    store: Store
    every: int = 0

    def ask(self, name: str, index: int, now: datetime) -> Foretold | None:
        """What is foretold of a job; None where it is not its turn, or it does not wait."""
        if not self.every or index % self.every:
            return None
        job = self.store.find(name)
        if job is None or job.state not in WAITING:
            return None
        return _foretold(explain(self.store, now, [job])[name], now)


def _foretold(told: Explanation, now: datetime) -> Foretold:
    return Foretold(now, told.estimated_start, told.earliest_start, told.latest_start)


def eta_figures(played: Sequence[Played], foretold: Mapping[int, Foretold], epoch: datetime) -> dict[str, Any]:
    """How right it was, by the names that `--json` prints.

    `eta_asked` jobs; of `eta_known` a start was foretold; the median of how far that was from the truth in seconds,
    and the part of those asked whose start lay inside the range: what could not be foretold was not inside.
    """
    errors: list[float] = []
    inside = 0
    for index, one in foretold.items():
        start = played[index].spans[0][0]
        if one.likely is not None and one.low is not None and one.high is not None:
            errors.append(abs(start - (one.likely - epoch).total_seconds()))
            inside += (one.low - epoch).total_seconds() <= start <= (one.high - epoch).total_seconds()
    return {
        "eta_asked": len(foretold),
        "eta_known": len(errors),
        "eta_median_error_s": round(percentile(errors, 0.5), 3) if errors else None,
        "eta_inside": round(inside / len(foretold), 6) if foretold else None,
    }
