"""Lifetimes of the classes of jobs in a snapshot: from what has ended, and from the ages of what has not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import BUCKETS, EDGES, ENOUGH, Sketch
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.gittins.lifetimes import Lifetimes
from trainmaster.planner.survival import survival, unfinished_by_class

PRIOR = 4.0
"""Weight, in jobs, of the run times of all jobs beside those of one width class."""
_Kinds = tuple[str, ...]
_Weights = tuple[float, ...]
_NONE: _Weights = (0.0,) * BUCKETS


@dataclass(slots=True)
class LearnedLifetimes:
    """Lifetimes by class; each is computed when it is first asked for.

    A class is a width class: the pools, and the power of two of the units; of elastic jobs, of the fewest and the most.
    All jobs are its prior. A narrower kind (share, image, count) counts once it has shown enough; then its width class
    is its prior.

    Attributes:
        kinds: run times of ended jobs, by class.
        unfinished: number of jobs that have run and not ended, by class and by the bucket of their age.
    """

    kinds: Mapping[str, Sketch]
    unfinished: Mapping[str, Sequence[float]]
    _weights: dict[_Kinds, _Weights | None] = field(default_factory=dict)
    _of: dict[_Kinds, Lifetimes | None] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> LearnedLifetimes:
        """Return the lifetimes that the snapshot's history shows, given the jobs that have run and not ended."""
        return cls(snapshot.records.history.kinds, unfinished_by_class(snapshot, now))

    def lifetimes(self, job: Job) -> Lifetimes | None:
        """Return the lifetimes of the job's class, in units of `scale_of`; None if no job of any class has ended."""
        return self._lifetimes(job.run_time_classes)

    def _lifetimes(self, kinds: _Kinds) -> Lifetimes | None:
        if kinds not in self._of:
            self._of[kinds] = self._computed(kinds)
        return self._of[kinds]

    def _computed(self, kinds: _Kinds) -> Lifetimes | None:
        ends, wider = self._ends(kinds), kinds[1:]
        if ends is None:
            return None
        if wider and ends is self._ends(wider):
            return self._lifetimes(wider)
        return _lifetimes(ends, tuple(self.unfinished.get(kinds[0], ())))

    def _ends(self, kinds: _Kinds) -> _Weights | None:
        """Return the weights of a class beside its prior's, computed once; None if no job of any class has ended."""
        if kinds not in self._weights:
            self._weights[kinds] = self._mixture(kinds)
        return self._weights[kinds]

    def _mixture(self, kinds: _Kinds) -> _Weights | None:
        """Return the same; those of the prior itself if a kind narrower than a width class has shown too little."""
        own, wider = self._own(kinds[0]), kinds[1:]
        if not wider:
            return own if any(own) else None
        prior, is_width_class = self._ends(wider), len(wider) == 1
        if prior is None or not (is_width_class or sum(own) >= ENOUGH):
            return prior
        return _mixed(own, prior, PRIOR if is_width_class else ENOUGH)

    def _own(self, kind: str) -> _Weights:
        sketch = self.kinds.get(kind)
        return _NONE if sketch is None else sketch.by_bucket


# Most passes find the weights and ages of most classes as an earlier pass did.
@lru_cache(maxsize=1024)
def _lifetimes(ends: _Weights, unfinished: _Weights) -> Lifetimes:
    return Lifetimes(EDGES, survival(ends, unfinished or _NONE))


@lru_cache(maxsize=1024)
def _mixed(own: _Weights, wider: _Weights, weight: float) -> _Weights:
    """Return the weights of a class beside those of a wider one, which together count `weight`."""
    part = weight / sum(wider)
    return tuple(mine + part * other for mine, other in zip(own, wider, strict=True))
