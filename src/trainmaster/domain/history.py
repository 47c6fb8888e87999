"""How long jobs of a kind have run, in a bounded number of counts, and what may be expected of the next.

A kind is a share, an image, instance types and a count. Each keeps a histogram over log-spaced run times in which old
jobs slowly fade, so that a change of habits is learned. What too few jobs of a kind have shown is taken from wider
kinds. It must not read a clock, and it never sees the length of a job that has not ended.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainmaster.domain.job import ENDED, Job, Outcome

FIRST_EDGE = 30.0
"""Seconds: run times up to here are one bucket."""
PER_OCTAVE = 2
"""Buckets for each doubling of the run time."""
BUCKETS = 36
"""Up to 30 s * 2^17.5, or 64 days: SageMaker's longest run is 28."""
FADES = 0.99
"""What each end leaves of the weight of those before it: about the last hundred of a kind count."""
ENOUGH = 8.0
"""Weight of a kind at which its own past counts as much as that of the wider kind."""
MOST_KINDS = 48
"""Kinds that are remembered; the one that was seen longest ago goes first."""

LARGE = 8
"""Accelerators from which on a job is large: a whole machine and more."""
SHORTEST_WAIT = 60.0
"""Seconds: shorter waits are one bucket; there are four for each doubling above."""

ALL = "*"


@dataclass(frozen=True, slots=True)
class Sketch:
    """Run times of one kind: weights by bucket, sparse."""

    weights: Mapping[int, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return sum(self.weights.values())

    def after(self, seconds: float) -> Sketch:
        """The sketch once another job has run this long."""
        faded = {bucket: weight * FADES for bucket, weight in self.weights.items() if weight * FADES >= _NOTHING}
        bucket = bucket_of(seconds)
        return Sketch({**faded, bucket: faded.get(bucket, 0.0) + 1.0})


_NOTHING = 0.005


def bucket_of(seconds: float) -> int:
    """The bucket of a run time."""
    if seconds <= FIRST_EDGE:
        return 0
    return min(BUCKETS - 1, 1 + math.floor(PER_OCTAVE * math.log2(seconds / FIRST_EDGE)))


def edges_of(bucket: int) -> tuple[float, float]:
    """The shortest and longest run time of a bucket, in seconds."""
    upper = FIRST_EDGE * 2 ** (bucket / PER_OCTAVE)
    return (0.0 if bucket == 0 else FIRST_EDGE * 2 ** ((bucket - 1) / PER_OCTAVE), upper)


def wait_bucket(seconds: float) -> int:
    """The bucket of a wait; a few dozen serve for years."""
    return 0 if seconds <= SHORTEST_WAIT else 1 + math.floor(4 * math.log2(seconds / SHORTEST_WAIT))


@dataclass(frozen=True, slots=True)
class History:
    """Sketches by kind, newest last, and how long starting takes by instance type.

    Attributes:
        kinds: run times.
        startups: seconds from the start's decision to instances at work, smoothed, by instance types.
        waits: how long ended large jobs had not been at work since they came: how many, by bucket (`wait_bucket`).
    """

    kinds: Mapping[str, Sketch] = field(default_factory=dict)
    startups: Mapping[str, float] = field(default_factory=dict)
    waits: Mapping[int, int] = field(default_factory=dict)

    def after(self, job: Job, gpus: int = 1) -> History:
        """The history after an attempt of a job on so many accelerators has ended, and with it perhaps the job."""
        waits = self._waits_after(job) if gpus >= LARGE else self.waits
        return History(self._kinds_after(job), self._startups_after(job), waits)

    @property
    def large(self) -> int:
        """How many large jobs have ended."""
        return sum(self.waits.values())

    def waited_longer(self, seconds: float) -> float:
        """How many of them had waited longer than that; inside a bucket they are taken to be spread evenly."""
        bucket = wait_bucket(seconds)
        lower, upper = SHORTEST_WAIT * 2 ** ((bucket - 1) / 4), SHORTEST_WAIT * 2 ** (bucket / 4)
        part = min(max((upper - seconds) / (upper - lower), 0.0), 1.0) if bucket else 1.0
        return sum(n for at, n in self.waits.items() if at > bucket) + part * self.waits.get(bucket, 0)

    def run_time(self, job: Job, elapsed: float, quantile: float) -> float | None:
        """Seconds that the job will have run in all, in this fraction of cases, given that it ran `elapsed`.

        None where nothing at all has been learned. Where it outlived all that is known: twice what it ran so far.
        """
        mixed = self._mixed(job, elapsed)
        total = sum(mixed.values())
        if not mixed:
            return None if not self.kinds else 2 * elapsed
        wanted = quantile * total
        for bucket in sorted(mixed):
            if wanted <= mixed[bucket]:
                lower, upper = edges_of(bucket)
                lower = max(lower, elapsed)
                return lower + (max(upper, lower) - lower) * wanted / mixed[bucket]
            wanted -= mixed[bucket]
        return max(edges_of(max(mixed))[1], elapsed)

    def startup(self, job: Job) -> float:
        """Seconds that a start of the job takes before it is at work; 0 where nothing is known."""
        return self.startups.get(types_of(job), 0.0)

    def _mixed(self, job: Job, elapsed: float) -> dict[int, float]:
        """Weights beyond `elapsed`, wider kinds counting less the more the narrow ones have shown."""
        mixed: dict[int, float] = {}
        trust = 1.0
        for kind in kinds_of(job):
            beyond = dict(_beyond(self.kinds.get(kind, _EMPTY), elapsed))
            total = sum(beyond.values())
            if total > 0:
                own = trust * (1.0 if kind == ALL else total / (total + ENOUGH))
                for bucket, weight in beyond.items():
                    mixed[bucket] = mixed.get(bucket, 0.0) + own * weight / total
                trust -= own
        return mixed

    def _waits_after(self, job: Job) -> Mapping[int, int]:
        if job.state not in ENDED or job.ended_at is None:
            return self.waits
        bucket = wait_bucket((job.ended_at - job.entry_time).total_seconds() - worked(job))
        return {**self.waits, bucket: self.waits.get(bucket, 0) + 1}

    def _kinds_after(self, job: Job) -> Mapping[str, Sketch]:
        seconds = worked(job)
        if job.state not in ENDED or seconds <= 0:
            return self.kinds
        kinds = dict(self.kinds)
        for kind in kinds_of(job):
            kinds[kind] = kinds.pop(kind, _EMPTY).after(seconds)
        while len(kinds) > MOST_KINDS:
            del kinds[next(iter(kinds))]
        return kinds

    def _startups_after(self, job: Job) -> Mapping[str, float]:
        attempt = job.attempt
        if attempt is None or attempt.started_at is None or attempt.outcome is Outcome.RETURNED:
            return self.startups
        took = (attempt.started_at - attempt.created_at).total_seconds()
        key = types_of(job)
        before = self.startups.get(key, took)
        startups = {**self.startups, key: before + (took - before) * _SMOOTHING}
        return dict(list(startups.items())[-MOST_KINDS:])


_EMPTY = Sketch()
_SMOOTHING = 0.2


def _beyond(sketch: Sketch, elapsed: float) -> Iterator[tuple[int, float]]:
    """What is left of each bucket's weight for run times of more than `elapsed`."""
    for bucket, weight in sketch.weights.items():
        lower, upper = edges_of(bucket)
        if upper > elapsed:
            yield bucket, weight * (upper - max(lower, elapsed)) / (upper - lower)


def kinds_of(job: Job) -> tuple[str, ...]:
    """The kinds that a job belongs to, narrowest first."""
    image = hashlib.sha256(job.image.encode()).hexdigest()[:8] if job.image else ""
    types, count = types_of(job), job.demand.size
    return (f"{job.share}|{image}|{types}|{count}", f"|{types}|{count.bit_length()}", ALL)


def types_of(job: Job) -> str:
    """The instance types that a job can run on, as one text."""
    return ",".join(job.demand.pools)


def worked(job: Job) -> float:
    """Seconds that a job's attempts were at work, in all."""
    spans = (
        (attempt.ended_at - attempt.started_at).total_seconds()
        for attempt in job.attempts
        if attempt.started_at is not None and attempt.ended_at is not None
    )
    return sum(spans)
