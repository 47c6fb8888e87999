"""What a pass tells of image jobs, in the figures of ModelRunner's guide ("CloudWatch Metrics"), as values.

It must not send anything: `handlers` do.
"""

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
"""There is a pass with every tick: who waits for longer has been counted by the process before this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageJobMetrics:
    """The figures of one pass with image jobs.

    Attributes:
        throttles: image jobs that begin to wait for capacity, by endpoint.
        requests: these, and image jobs that start without having waited: what throttles are a share of.
        utilization: requests that running jobs may make, of those that the endpoint may be asked, percent, by endpoint.
        buffered: image jobs that have not ended, as far as the pass has read them.
        visible: those of them that wait.
        milliseconds: how long the pass took.
    """

    throttles: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    utilization: Mapping[str, float] = field(default_factory=dict)
    buffered: int = 0
    visible: int = 0
    milliseconds: float = 0.0


class Meter:
    """Takes the figures; it remembers whose wait has been counted, as long as the process lives."""

    def __init__(self) -> None:
        self._counted: frozenset[tuple[str, datetime]] | None = None

    def figures(self, snapshot: Snapshot, plan: Plan, now: datetime, *, milliseconds: float) -> ImageJobMetrics | None:
        """The figures of a pass; None where it has met no image job."""
        waiting = [job for job in snapshot.waiting if image_work(job) is not None]
        active = [job for job in snapshot.active if image_work(job) is not None]
        counted = self._counted or frozenset()
        throttles = self._throttles(plan, now)
        if not waiting and not active:
            return None
        starts = [start.job for start in plan.starts if image_work(start.job) is not None]
        # Who starts after a wait that an earlier pass has counted, or an earlier process, is no further request.
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
        """Each wait counts once: in the first pass that has no room for the job, not in each that follows."""
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
    """By endpoint, what jobs hold once the plan's starts are made, of its pools' caps; 0 to 100."""
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
    """Since when it waits: when it entered the queue, or its last attempt ended."""
    ended = job.attempt.ended_at if job.attempt is not None else None
    return ended or job.entry_time
