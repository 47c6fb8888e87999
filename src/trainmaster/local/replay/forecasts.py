"""Records estimated starts of waiting jobs during a replay, and compares them with the actual starts.

The queue is queried once for a sampled job, when it arrives and has to wait, as the API does (`service.explain`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.domain.jobs.job import WAITING
from trainmaster.local.replay.report.figures import percentile
from trainmaster.local.replay.report.results import JobResult
from trainmaster.ports.store import Store
from trainmaster.service.explain.explain import Explanation, explain


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """An estimated start; the times are None without an estimate, and for a job that started at once."""

    asked_at: datetime
    likely: datetime | None = None
    low: datetime | None = None
    high: datetime | None = None
    started_at_once: bool = False


@dataclass(slots=True)
class EstimateRecorder:
    """Queries the estimated start of every n-th job.

    Args:
        store: the store of the queue.
        every: n; 0 for no jobs.
    """

    store: Store
    every: int = 0

    def record(self, name: str, index: int, now: datetime) -> StartEstimate | None:
        """Return the estimated start of a job; None if the job is not sampled."""
        if not self.every or index % self.every:
            return None
        job = self.store.find(name)
        if job is None or job.state not in WAITING:
            return StartEstimate(now, started_at_once=True)
        return _estimate_of(explain(self.store, now, [job])[name], now)


def _estimate_of(explanation: Explanation, now: datetime) -> StartEstimate:
    return StartEstimate(now, explanation.estimated_start, explanation.earliest_start, explanation.latest_start)


def eta_figures(
    results: Sequence[JobResult], estimates: Mapping[int, StartEstimate], epoch: datetime
) -> dict[str, Any]:
    """Return the accuracy of the estimates, by the names that `--json` prints.

    `eta_asked` counts the sampled jobs that had to wait, `eta_known` those with an estimate. Errors and widths are
    medians in seconds. `eta_inside` is the part of the jobs that waited whose start lay inside the range; a job without
    an estimate counts as outside. `eta_inside_all` includes the jobs that started at once.
    """
    waited = {index: one for index, one in estimates.items() if not one.started_at_once}
    errors: list[float] = []
    widths: list[float] = []
    inside = 0
    for index, one in waited.items():
        start = results[index].spans[0][0]
        if one.likely is not None and one.low is not None and one.high is not None:
            errors.append(abs(start - (one.likely - epoch).total_seconds()))
            widths.append((one.high - one.low).total_seconds())
            inside += (one.low - epoch).total_seconds() <= start <= (one.high - epoch).total_seconds()
    started_at_once = len(estimates) - len(waited)
    return {
        "eta_asked": len(waited),
        "eta_known": len(errors),
        "eta_median_error_s": _median(errors),
        "eta_median_width_s": _median(widths),
        "eta_inside": round(inside / len(waited), 6) if waited else None,
        "eta_inside_all": round((inside + started_at_once) / len(estimates), 6) if estimates else None,
    }


def _median(values: Sequence[float]) -> float | None:
    return round(percentile(values, 0.5), 3) if values else None
