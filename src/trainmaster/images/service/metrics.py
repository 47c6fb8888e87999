"""Metrics of a pass about image jobs, as values, by the names of ModelRunner's guide ("CloudWatch Metrics")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Plan, Snapshot
from trainmaster.domain.reasons.capacity import Behind, ReservedForOther, WaitsForCapacity, WaitsForRelease
from trainmaster.images.domain.endpoint import is_endpoint_pool, pool_parts
from trainmaster.images.domain.work import image_work

_FOR_CAPACITY = (WaitsForCapacity, Behind, ReservedForOther, WaitsForRelease)
_SEEN_BY_NOW = timedelta(seconds=90)
"""Passes come with every tick, so the process before this one has counted each longer wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageJobMetrics:
    """The metrics of one pass with image jobs.

    Attributes:
        throttles: image jobs that begin to wait for capacity, by endpoint.
        requests: these, and image jobs that start without having waited: the base of the throttling rate.
        utilization: requests that running jobs may make, in percent of the caps, by endpoint.
        buffered: image jobs that have not ended, as far as the pass has read them.
        visible: those of them that wait.
        milliseconds: duration of the pass.
    """

    throttles: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    utilization: Mapping[str, float] = field(default_factory=dict)
    buffered: int = 0
    visible: int = 0
    milliseconds: float = 0.0


class Meter:
    """Computes metrics; it remembers the counted waits for the lifetime of the process."""

    def __init__(self) -> None:
        self._counted: frozenset[tuple[str, datetime]] | None = None

    def figures(self, snapshot: Snapshot, plan: Plan, now: datetime, *, milliseconds: float) -> ImageJobMetrics | None:
        """Return the metrics of a pass; None if it has no image job."""
        waiting = [job for job in snapshot.waiting if image_work(job) is not None]
        active = [job for job in snapshot.active if image_work(job) is not None]
        counted = self._counted or frozenset()
        throttles = self._throttles(plan, now)
        if not waiting and not active:
            return None
        starts = [start.job for start in plan.starts if image_work(start.job) is not None]
        # A start after a wait that an earlier pass or process has counted is not a further request.
        at_once = [job for job in starts if _wait_of(job) not in counted and now - _since(job) <= _SEEN_BY_NOW]
        return ImageJobMetrics(
            throttles=throttles,
            requests=sum(throttles.values()) + len(at_once),
            utilization=utilization(snapshot, plan),
            buffered=len(waiting) + len(active),
            visible=len(waiting) - len(starts),
            milliseconds=milliseconds,
        )

    def _throttles(self, plan: Plan, now: datetime) -> dict[str, int]:
        """Count each wait once: in the first pass without room for the job, not in each that follows."""
        waits = {
            _wait_of(wait.job): work.endpoint
            for wait in plan.waits
            if (work := image_work(wait.job)) is not None and isinstance(wait.reason, _FOR_CAPACITY)
        }
        known = self._counted
        if known is None:
            known = frozenset(wait for wait in waits if now - wait[1] > _SEEN_BY_NOW)
        self._counted = frozenset(waits)
        return dict(Counter(endpoint for wait, endpoint in waits.items() if wait not in known))


def utilization(snapshot: Snapshot, plan: Plan) -> dict[str, float]:
    """Return the units held after the plan's starts in percent of the caps, by endpoint; 0 to 100."""
    held: Counter[str] = Counter()
    caps: Counter[str] = Counter()
    for units in (*(job.units for job in snapshot.active), *(start.units for start in plan.starts)):
        held.update(_by_endpoint(units.items()))
    for name, pool in snapshot.pools.items():
        caps.update(_by_endpoint([(name, pool.cap)]))
    return {key: min(100.0, 100.0 * held[key] / cap) for key, cap in sorted(caps.items()) if cap > 0}


def _by_endpoint(units: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in units:
        if is_endpoint_pool(name):
            found[pool_parts(name)[0]] += count
    return found


def _wait_of(job: Job) -> tuple[str, datetime]:
    return job.name, _since(job)


def _since(job: Job) -> datetime:
    """Return the beginning of the wait: the job's entry, or the end of its last attempt."""
    ended = job.attempt.ended_at if job.attempt is not None else None
    return ended or job.entry_time
