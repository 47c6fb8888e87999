"""Lifetimes of the classes of jobs in a snapshot: from what has ended, and from the ages of what has not."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import BUCKETS, EDGES, ENOUGH, Sketch, bucket_of, given_units
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.shares.usage import UNIX_EPOCH
from trainmaster.planner.orders.gittins.lifetimes import Lifetimes, survival

PRIOR = 4.0
"""Weight, in jobs, of the run times of all jobs beside those of one width class."""
_Kinds = tuple[str, ...]
_Weights = tuple[float, ...]
_NONE: _Weights = (0.0,) * BUCKETS
_NEW = Sketch()


@dataclass(slots=True)
class _Ages:
    """The ages of unfinished jobs of the same classes, by when they last ran.

    Jobs that were put aside are forgotten like those that ended at the same time. Otherwise few ended ones would stand
    beside ever more of them, and a class would look longer than it is.

    Attributes:
        halved: when the weights of any of the classes halved, ascending.
        counts: number of jobs by bucket, of those that last ran before each of these times and after all of them.
    """

    halved: Sequence[datetime]
    counts: defaultdict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(cls, sketches: Iterable[Sketch]) -> _Ages:
        """Return none yet of the classes with these run times."""
        return cls(sorted(time for sketch in sketches for time in sketch.halved))

    def add(self, bucket: int, ran_until: datetime) -> None:
        """Add a job whose age is in this bucket."""
        self.counts[bisect_right(self.halved, ran_until)][bucket] += 1

    def add_to(self, weights: list[float], sketch: Sketch) -> None:
        """Add the jobs to the weights of one of their classes."""
        for place, counts in self.counts.items():
            weight = sketch.weight_of(self.halved[place - 1] if place else UNIX_EPOCH)
            for bucket, count in counts.items():
                weights[bucket] += weight * count


@dataclass(slots=True)
class LearnedLifetimes:
    """Lifetimes by class; each is computed when it is first asked for.

    A class is a width class: the pools, and the power of two of the units; of elastic jobs, of the fewest and the most.
    All jobs are its prior. A narrower kind (share, image, count) counts once it has shown enough; then its width class
    is its prior.
    """

    kinds: Mapping[str, Sketch]
    _unfinished: dict[str, list[float]] = field(default_factory=dict)
    _weights: dict[_Kinds, _Weights | None] = field(default_factory=dict)
    _of: dict[_Kinds, Lifetimes | None] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> LearnedLifetimes:
        """Return the lifetimes that the snapshot's history shows, given the jobs that have run and not ended."""
        learned = cls(snapshot.records.history.kinds)
        ages: dict[_Kinds, _Ages] = {}
        aside = ((job, job.worked, job.attempt.ended_at) for job in snapshot.waiting if job.attempt is not None)
        for job, age, ended_at in (*((job, job.worked_by(now), None) for job in snapshot.active), *aside):
            if age > 0:
                kinds, scaled = job.run_time_classes, age if job.work is None else age / scale_of(job)
                known = ages.get(kinds) or ages.setdefault(kinds, _Ages.of(learned._sketches(kinds)))
                known.add(bucket_of(scaled), ended_at or now)
        for kinds, known in ages.items():
            for kind in kinds:
                counts = learned._unfinished.setdefault(kind, [0.0] * BUCKETS)
                known.add_to(counts, learned.kinds.get(kind, _NEW))
        return learned

    def _sketches(self, kinds: _Kinds) -> Iterator[Sketch]:
        return (self.kinds[kind] for kind in kinds if kind in self.kinds)

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
        return _lifetimes(ends, tuple(self._unfinished.get(kinds[0], ())))

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


def scale_of(job: Job) -> float:
    """Return the seconds of the job for each second of its class: 1, except of other kinds of jobs."""
    return 1.0 if job.work is None else job.work.length(given_units(job))
