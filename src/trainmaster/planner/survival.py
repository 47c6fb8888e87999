"""Survival of jobs by class; unfinished jobs count up to the age that they have reached.

Of the jobs that run at any time, the short ones end first. So ended jobs alone make a class look shorter than it is,
and the more so if many of its jobs came together.

Source: Kaplan and Meier, "Nonparametric estimation from incomplete observations", 1958.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import BUCKETS, Sketch, bucket_of, given_units
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.shares.usage import UNIX_EPOCH

_NEW = Sketch()


def survival(ends: Sequence[float], unfinished: Sequence[float]) -> list[float]:
    """Return the part of jobs that outlives the lower edge of each bucket, and the last upper edge.

    Kaplan and Meier's estimate for grouped times: an unfinished job is at risk in all buckets below its own, and for
    half of its own.

    Args:
        ends: weights of run times that have ended, by bucket.
        unfinished: number of jobs that have reached the bucket and not ended, by bucket.
    """
    at_risk, later = list[float](), 0.0
    for ended, left in zip(reversed(ends), reversed(unfinished), strict=True):
        at_risk.append(later + ended + 0.5 * left)
        later += ended + left
    outlives, alive = 1.0, [1.0]
    for ended, risk in zip(ends, reversed(at_risk), strict=True):
        if ended:
            outlives *= 1 - ended / risk
        alive.append(outlives)
    return alive


def unfinished_by_class(snapshot: Snapshot, now: datetime) -> Mapping[str, Sequence[float]]:
    """Return how many jobs of each class have run and not ended, by the bucket of their age.

    Jobs that were put aside are forgotten like those that ended at the same time. Otherwise few ended ones would stand
    beside ever more of them, and a class would look longer than it is.
    """
    sketches = snapshot.records.history.kinds
    ages: dict[tuple[str, ...], _Ages] = {}
    aside = ((job, job.worked, job.attempt.ended_at) for job in snapshot.waiting if job.attempt is not None)
    for job, age, ended_at in (*((job, job.worked_by(now), None) for job in snapshot.active), *aside):
        if age > 0:
            kinds, scaled = job.run_time_classes, age if job.work is None else age / scale_of(job)
            known = ages.get(kinds) or ages.setdefault(kinds, _Ages.of(_known(kinds, sketches)))
            known.add(bucket_of(scaled), ended_at or now)
    found: dict[str, list[float]] = {}
    for kinds, known in ages.items():
        for kind in kinds:
            known.add_to(found.setdefault(kind, [0.0] * BUCKETS), sketches.get(kind, _NEW))
    return found


def scale_of(job: Job) -> float:
    """Return the seconds of the job for each second of its class: 1, except of other kinds of jobs."""
    return 1.0 if job.work is None else job.work.length(given_units(job))


def _known(kinds: Iterable[str], sketches: Mapping[str, Sketch]) -> Iterator[Sketch]:
    return (sketches[kind] for kind in kinds if kind in sketches)


@dataclass(slots=True)
class _Ages:
    """The ages of unfinished jobs of the same classes, by when they last ran.

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
