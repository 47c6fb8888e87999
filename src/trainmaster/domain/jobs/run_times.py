"""Run-time statistics by class of jobs, of bounded size, and estimates from them.

A class is a share, an image, instance types and a count, of elastic jobs the fewest and the most. Each keeps a
histogram over log-spaced run times in which old jobs slowly fade. Classes with few jobs are complemented by wider
classes. Work of an elastic job counts as if done at its smallest size, for longer (see `Job.worked`). Only ended jobs
are counted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

from trainmaster.domain.elastic.scaling import ENOUGH_JOBS, LINEAR, KindCurve, ScalingCurve, believed_curve, mixed
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.domain.jobs.run_time_classes import ALL
from trainmaster.domain.jobs.work import OTHER_KINDS, Work

FIRST_EDGE = 30.0
"""Seconds: run times up to here are one bucket."""
PER_OCTAVE = 2
"""Buckets for each doubling of the run time."""
BUCKETS = 36
"""Up to 30 s * 2^17.5, or 64 days: SageMaker's longest run is 28."""
MAX_COUNTED = 500.0
"""Weight of a class at which all its weights halve. Rare long jobs decide about the order, so they fade slowly."""
MAX_HALVED = 7
"""Halvings whose times are kept: after more, a job weighs less than 1 %."""
ENOUGH = 8.0
"""Weight at which a class counts as much as the next wider class."""
MAX_KINDS = 48
"""Stored classes; the one seen longest ago is dropped first."""

RESTART_SECONDS = 300.0
"""Least cost of a restart, in seconds of all GPUs of the job: it loads container, data and model again."""
RESTARTS_FADE = 0.999
"""Factor by which each end of an attempt reduces what was counted before; about the last thousand attempts count."""

MAX_OTHER_KINDS = 16
"""The same of other kinds of jobs as `MAX_KINDS`."""
MEDIAN = 0.5
_WIDEST = frozenset({ALL, OTHER_KINDS})


@dataclass(frozen=True, slots=True)
class Sketch:
    """Run times of one class.

    Attributes:
        weights: by bucket, sparse.
        halved: when all weights halved, in whole seconds, oldest first; the last `MAX_HALVED` times.
    """

    weights: Mapping[int, float] = field(default_factory=dict)
    halved: tuple[datetime, ...] = ()
    _tail: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _by_bucket: list[tuple[float, ...]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def tail(self) -> list[float]:
        """The weight of each bucket and all later ones; computed at first use."""
        if not self._tail:
            weights = (self.weights.get(bucket, 0.0) for bucket in range(BUCKETS, -1, -1))
            self._tail.extend(reversed(list(accumulate(weights))))
        return self._tail

    @property
    def by_bucket(self) -> tuple[float, ...]:
        """The weights of all buckets; computed at first use."""
        if not self._by_bucket:
            self._by_bucket.append(tuple([self.weights.get(bucket, 0.0) for bucket in range(BUCKETS)]))
        return self._by_bucket[0]

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return sum(self.weights.values())

    def after(self, seconds: float, ended_at: datetime) -> Sketch:
        """Return the sketch after another job ran this long; weights halve once they are `MAX_COUNTED`."""
        known = self if self.total < MAX_COUNTED else self._at_half(ended_at.replace(microsecond=0))
        bucket = bucket_of(seconds)
        return Sketch({**known.weights, bucket: known.weights.get(bucket, 0.0) + 1.0}, known.halved)

    def _at_half(self, now: datetime) -> Sketch:
        halves = {bucket: weight / 2 for bucket, weight in self.weights.items() if weight / 2 >= _NOTHING}
        # Ends may be reported in another order than they came.
        return Sketch(halves, (*self.halved, max((now, *self.halved[-1:])))[-MAX_HALVED:])

    def weight_of(self, time: datetime) -> float:
        """Return what a job that ended at this time weighs now: 1, halved as often as all weights were since."""
        return 0.5 ** (len(self.halved) - bisect_right(self.halved, time))


_NOTHING = 0.005


@lru_cache(maxsize=4096)  # each pass asks for the same run times of all jobs that were put aside
def bucket_of(seconds: float) -> int:
    """Return the bucket of a run time."""
    if seconds <= FIRST_EDGE:
        return 0
    return min(BUCKETS - 1, 1 + math.floor(PER_OCTAVE * math.log2(seconds / FIRST_EDGE)))


EDGES = (0.0, *(FIRST_EDGE * 2 ** (bucket / PER_OCTAVE) for bucket in range(BUCKETS)))
"""Edges of the buckets in seconds, ascending."""


@dataclass(frozen=True, slots=True)
class RestartCost:
    """GPU-seconds of attempts, by which the order `gittins` limits restarts.

    Attributes:
        worked: of all.
        restarts: that preemptions have cost.
    """

    worked: float = 0.0
    restarts: float = 0.0

    def after(self, worked: float, restarts: float) -> RestartCost:
        """Return what counts after another attempt has ended."""
        return RestartCost(self.worked * RESTARTS_FADE + worked, self.restarts * RESTARTS_FADE + restarts)

    def exceeds(self, budget: float) -> bool:
        """Return True if restarts have cost more than this part of the work."""
        return self.restarts > budget * self.worked


NO_COST = RestartCost()


@dataclass(frozen=True, slots=True)
class History:
    """Statistics by class, newest last, and start-up times by instance type.

    Attributes:
        kinds: run times.
        startups: seconds from the start's decision to instances at work, smoothed, by instance types.
        pauses: seconds that a resize costs a job, smoothed, by hook (`elastic.Hook`).
        curves: how elastic jobs that reported their speed scale, by class.
        restarts: GPU time of ended attempts, and of the restarts that their preemptions cost.
    """

    kinds: Mapping[str, Sketch] = field(default_factory=dict)
    startups: Mapping[str, float] = field(default_factory=dict)
    pauses: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, KindCurve] = field(default_factory=dict)
    restarts: RestartCost = NO_COST
    _tails: dict[tuple[str, ...], _Tails] = field(default_factory=dict, init=False, repr=False, compare=False)
    _fresh: dict[_Asked, float | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def after(self, job: Job, gpus: int = 1) -> History:
        """Return the history after an attempt on this many accelerators, and possibly its job, has ended."""
        return History(
            self._kinds_after(job),
            self._startups_after(job),
            self.pauses,
            self._curves_after(job),
            self._restarts_after(job, gpus),
        )

    def paused(self, job: Job, seconds: float) -> History:
        """Return the history after a resize cost this elastic job that many seconds."""
        if job.elastic is None:
            return self
        hook = job.elastic.hook.value
        before = self.pauses.get(hook, seconds)
        pauses = {**self.pauses, hook: before + (seconds - before) * _SMOOTHING}
        return replace(self, pauses=pauses)

    def pause(self, job: Job) -> float | None:
        """Return the expected cost of a resize of this elastic job in seconds; None if unknown."""
        return None if job.elastic is None else self.pauses.get(job.elastic.hook.value)

    def curve(self, job: Job) -> ScalingCurve:
        """Return how an elastic job is believed to scale; linear as long as neither it nor its kind has told."""
        return believed_curve(job.speeds_here, self._curve_of_kind(job))

    def tells_curve(self, job: Job) -> bool:
        """Return True if the job's curve is learned, from its own reports or from jobs of its kind."""
        return len(job.speeds_here.of_sizes) > 1 or bool(self._curve_of_kind(job).jobs)

    def jobs_of_curve(self, job: Job) -> int:
        """Return how many ended jobs of the job's own kind count in its curve, at most `MAX_KIND_JOBS`."""
        return int(self.curves.get(job.run_time_classes[0], KindCurve()).jobs)

    def _curve_of_kind(self, job: Job) -> KindCurve:
        """Return the mean curve of the job's classes; wider ones count less the more jobs the narrow ones had.

        What they leave counts for the narrowest class, or for a linear curve if none of its jobs has ended: then few
        jobs of wider classes, such as those of other images, do not tell much.
        """
        if not self.curves:
            return KindCurve()
        parts, trust, jobs = list[tuple[float, ScalingCurve]](), 1.0, 0.0
        narrowest = self.curves.get(job.run_time_classes[0])
        for kind in job.run_time_classes:
            if (known := self.curves.get(kind)) is not None:
                own = trust * known.jobs / (known.jobs + ENOUGH_JOBS)
                parts.append((own, known.curve))
                trust, jobs = trust - own, max(jobs, known.jobs)
        return KindCurve(mixed((*parts, (trust, LINEAR if narrowest is None else narrowest.curve))), jobs)

    def run_time(self, job: Job, elapsed: float, quantile: float) -> float | None:
        """Return the job's total run time in seconds at this quantile, given that it has run `elapsed` seconds.

        None if nothing has been learned, except of other kinds of jobs. The fewer jobs are known that ran for longer,
        the further other quantiles are from the median (`_widened`). Where the job outlived all that is known, the
        median is twice what it ran so far.
        """
        if job.work is not None:
            return self._time_of_work(job, job.work, elapsed, quantile)
        return self._time(job.run_time_classes, elapsed, quantile)

    def _time_of_work(self, job: Job, work: Work, elapsed: float, quantile: float) -> float:
        """Return the same for another kind of job: its classes remember the time of a job of standard length."""
        classes, given = work.run_time_classes, given_units(job)
        length = work.length(given)
        found = self._time(classes, elapsed / length, quantile) if classes[-1] in self.kinds else None
        return work.prior_run_time(given, elapsed, quantile) if found is None else found * length

    def _time(self, kinds: tuple[str, ...], elapsed: float, quantile: float) -> float | None:
        if elapsed:
            return self._run_time(kinds, elapsed, quantile)
        # Estimates of jobs that have not run stay the same until another job ends, so they are cached.
        if (kinds, quantile) not in self._fresh:
            self._fresh[kinds, quantile] = self._run_time(kinds, 0.0, quantile)
        return self._fresh[kinds, quantile]

    def _run_time(self, kinds: tuple[str, ...], elapsed: float, quantile: float) -> float | None:
        if not self.kinds:
            return None
        first = bucket_of(elapsed)
        parts, given, known = self._mixture(kinds, elapsed, first)
        if not parts:
            return elapsed / (1 - quantile)
        if quantile != MEDIAN:
            quantile, beyond = _widened(quantile, known)
            if beyond:
                return _longest(parts) * beyond
        left = given * (1 - quantile)
        bucket, before, after = _bucket_at(parts, left, first, given)
        lower, upper = EDGES[bucket], EDGES[bucket + 1]
        lower, weight = max(lower, elapsed), before - after
        return lower + (upper - lower) * min(max((before - left) / weight, 0.0), 1.0) if weight > 0 else lower

    def startup(self, job: Job) -> float:
        """Return the expected start-up time of the job in seconds; 0 if unknown."""
        return self.startups.get(job.demand.types, 0.0)

    def _mixture(self, kinds: tuple[str, ...], elapsed: float, first: int) -> tuple[_Parts, float, float]:
        """Return the weights beyond `elapsed`, their sum, and how many jobs they are of.

        Wider classes count less the more the narrow ones hold.
        """
        parts: _Parts = []
        trust, known, after = 1.0, 0.0, first + 1
        lower, upper = EDGES[first], EDGES[after]
        share = min(max((upper - elapsed) / (upper - lower), 0.0), 1.0)
        for tail, enough in self._tails.get(kinds) or self._tails_of(kinds):
            beyond = tail[after]
            total = beyond + share * (tail[first] - beyond)
            if total > 0:
                own = trust * (total / (total + enough))
                parts.append((own / total, tail))
                trust -= own
                known = max(known, total)
        return parts, 1.0 - trust, known

    def _tails_of(self, kinds: tuple[str, ...]) -> _Tails:
        """Return the tails of the known classes and the weight that each needs; cached."""
        known = [(self.kinds[kind].tail, 0.0 if kind in _WIDEST else ENOUGH) for kind in kinds if kind in self.kinds]
        self._tails[kinds] = known
        return known

    def _kinds_after(self, job: Job) -> Mapping[str, Sketch]:
        seconds = job.worked
        if job.state not in ENDED or job.ended_at is None or seconds <= 0:
            return self.kinds
        if job.work is not None:
            seconds /= job.work.length(given_units(job))
        kinds = dict(self.kinds)
        for kind in job.run_time_classes:
            kinds[kind] = kinds.pop(kind, _EMPTY).after(seconds, job.ended_at)
        return _kept(kinds)

    def _curves_after(self, job: Job) -> Mapping[str, KindCurve]:
        if job.state not in ENDED or len(job.speeds.of_sizes) < 2:
            return self.curves
        curve, curves = self.curve(job), dict(self.curves)
        for kind in job.run_time_classes:
            curves[kind] = curves.pop(kind, KindCurve()).after(curve)
        return _kept(curves)

    def restart_cost(self, job: Job) -> float:
        """Return the seconds of all its GPUs that a restart costs a job: its start, and the work that it loses."""
        start = max(self.startup(job), RESTART_SECONDS)
        return start if job.checkpointed or job.attempt is None else start + job.attempt.ran

    def _restarts_after(self, job: Job, gpus: int) -> RestartCost:
        attempt = job.attempt
        if attempt is None:
            return self.restarts
        preempted = attempt.outcome is Outcome.PREEMPTED
        return self.restarts.after(attempt.ran * gpus, self.restart_cost(job) * gpus if preempted else 0.0)

    def _startups_after(self, job: Job) -> Mapping[str, float]:
        attempt = job.attempt
        if attempt is None or attempt.started_at is None or attempt.outcome is Outcome.RETURNED or job.work:
            return self.startups
        took = (attempt.started_at - attempt.created_at).total_seconds()
        key = job.demand.types
        before = self.startups.get(key, took)
        startups = {**self.startups, key: before + (took - before) * _SMOOTHING}
        return dict(list(startups.items())[-MAX_KINDS:])


_EMPTY = Sketch()
_SMOOTHING = 0.2


_Asked = tuple[tuple[str, ...], float]
"""Classes, and a quantile."""
_Tails = list[tuple[list[float], float]]
"""Tails of the known classes, and the weight at which each counts as much as all wider ones."""
_Parts = list[tuple[float, list[float]]]
"""Classes that count: the factor of their weights, and their tails; at most three, which is all that a job has."""
_NO_PARTS: _Parts = [(0.0, [0.0] * (BUCKETS + 1))] * 3


def _bucket_at(parts: _Parts, left: float, first: int, given: float) -> tuple[int, float, float]:
    """Return the first bucket after which at most this weight is left, the weight from it on, and that behind it.

    `given`: the weight from `first` on.
    """
    last, before, after = BUCKETS - 1, given, 0.0
    # Without a loop over the classes the search takes half as long.
    (one, own), (two, wider), (three, widest) = (*parts, *_NO_PARTS[len(parts) :])
    while first < last:
        middle = (first + last) // 2
        at = middle + 1
        weight = one * own[at] + two * wider[at] + three * widest[at]
        if weight <= left:
            last, after = middle, weight
        else:
            first, before = middle + 1, weight
    return first, before, after


def _longest(parts: _Parts) -> float:
    """Return the upper edge of the last bucket with a weight."""
    return max(EDGES[bucket + 1] for _, tail in parts for bucket in range(BUCKETS) if tail[bucket] > 0)


def _widened(quantile: float, known: float) -> tuple[float, float]:
    """Return which quantile of the known jobs is this one of a job to come, as far as so few jobs can tell.

    Two more jobs are imagined: one that ends at once, and one that outlives all (Laplace's rule of succession, at both
    ends). The median stays as it is. Beyond the longest known run time, whatever is twice as long is half as likely.

    Args:
        quantile: of a job to come.
        known: number of jobs that ran for longer than this one so far.

    Returns:
        The quantile and 0; or 1, and how many times the longest known run time is exceeded.
    """
    imagined = 1 / (known + 2)
    if 1 - quantile < imagined:
        return 1.0, imagined / (1 - quantile)
    return max(quantile - imagined, 0.0) / (1 - 2 * imagined), 0.0


def given_units(job: Job) -> int:
    """Return the units that the job was given last, or would be."""
    given = 0 if job.attempt is None else job.attempt.given
    return given or job.demand.size


_Kept = TypeVar("_Kept")


def _kept(kinds: dict[str, _Kept]) -> dict[str, _Kept]:
    """Return the classes that are kept; the many jobs of other kinds push out only their own."""
    others = [kind for kind in kinds if kind.startswith(OTHER_KINDS)]
    training = [kind for kind in kinds if not kind.startswith(OTHER_KINDS)]
    for kind in (*others[:-MAX_OTHER_KINDS], *training[:-MAX_KINDS]):
        del kinds[kind]
    return kinds
