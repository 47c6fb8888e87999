"""Lifetimes of the classes of jobs in a snapshot: from what has ended, and from the ages of what has not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_time_classes import kinds_of
from trainmaster.domain.jobs.run_times import BUCKETS, EDGES, ENOUGH, Sketch, bucket_of, given_units
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.gittins.lifetimes import Lifetimes

PRIOR = 4.0
"""Weight, in jobs, of the run times of all jobs beside those of one width class."""
_Kinds = tuple[str, ...]


@dataclass(slots=True)
class LearnedLifetimes:
    """Lifetimes by class; each is computed when it is first asked for.

    A class is a width class: the pools, and the power of two of the units. All jobs are its prior. A narrower kind
    (share, image, count) counts once it has shown enough; then its width class is its prior.
    """

    kinds: Mapping[str, Sketch]
    _unfinished: dict[str, dict[int, float]] = field(default_factory=dict)
    _of: dict[_Kinds, Lifetimes | None] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> LearnedLifetimes:
        """Return the lifetimes that the snapshot's history shows, given the jobs that have run and not ended."""
        learned = cls(snapshot.records.history.kinds)
        for job in (*snapshot.active, *(job for job in snapshot.waiting if job.attempt is not None)):
            age = job.worked_by(now) / scale_of(job)
            for kind in kinds_of(job) if age > 0 else ():
                counts = learned._unfinished.setdefault(kind, {})
                counts[bucket_of(age)] = counts.get(bucket_of(age), 0.0) + 1.0
        return learned

    def lifetimes(self, job: Job) -> Lifetimes | None:
        """Return the lifetimes of the job's class, in units of `scale_of`; None if no job of any class has ended."""
        kinds = kinds_of(job)
        if kinds not in self._of:
            self._of[kinds] = self._computed(kinds)
        return self._of[kinds]

    def _computed(self, kinds: _Kinds) -> Lifetimes | None:
        *narrower, widest = kinds
        ends = self._weights(widest)
        if not any(ends):
            return None
        counted, prior = widest, PRIOR
        for place, kind in enumerate(reversed(narrower)):
            own = self._weights(kind)
            if place == 0 or sum(own) >= ENOUGH:
                ends, counted = _mixed(own, ends, prior), kind
            prior = ENOUGH
        return Lifetimes.of(EDGES, ends, self._unfinished.get(counted, {}))

    def _weights(self, kind: str) -> list[float]:
        sketch = self.kinds.get(kind)
        return [0.0] * BUCKETS if sketch is None else [sketch.weights.get(bucket, 0.0) for bucket in range(BUCKETS)]


def _mixed(own: Iterable[float], wider: list[float], weight: float) -> list[float]:
    """Return the weights of a class beside those of a wider one, which together count `weight`."""
    part = weight / sum(wider)
    return [mine + part * other for mine, other in zip(own, wider, strict=True)]


def scale_of(job: Job) -> float:
    """Return the seconds of the job for each second of its class: 1, except of other kinds of jobs."""
    return 1.0 if job.work is None else job.work.length(given_units(job))
