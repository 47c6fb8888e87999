"""The speed of an elastic job by its number of instances: a curve of two parameters, fitted to reported speeds.

The curve is the universal scalability law (Gunther, "Guerrilla Capacity Planning", 2007): a serial part, which more
instances do not shorten (Amdahl's law), and a communication part, which grows with them. Until a job has reported its
speed at several sizes, the curve of its kind decides, and without that the job counts as linear.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from operator import attrgetter, mul, sub

MIN_RATE, MAX_RATE = 1e-9, 1e12
"""Bounds of a reported speed, steps or samples a second."""
MAX_REPORTS = 8
"""Reports of one size that count; the newest eighth of the mean is then the newest report."""
MAX_SIZES = 12
"""Sizes of a job whose speeds are kept; the one whose speed changed longest ago is dropped first."""
MAX_KIND_JOBS = 8
"""Jobs of a kind that count; later ones replace an eighth of the mean."""
ENOUGH_JOBS = 2.0
"""Jobs at which a kind counts as much as the next wider kind."""
NOISE = 0.05
"""Assumed relative error of one report."""
OUTLIER = 0.2
"""Part by which a smaller size has to be faster so that errors of reports do not explain it."""
SERIAL_SPREAD, COMMUNICATION_SPREAD = 0.1, 0.003
"""Assumed difference of a job's parameters from those of its kind."""
MIN_PERIOD = timedelta(minutes=1)
"""Time between two reports of a size, at least: each changes the job, so that a pass has to decide about it again."""
SAME_RATE = 0.02
"""Relative change of a speed below which a further report tells nothing new."""
ENOUGH_REPORTS = 3
"""Reports since a job came to a size after which that size may count as slower than a smaller one."""
RETRY_SLOWER = timedelta(hours=4)
"""Time after which a slower size may be tried again; doubled by each further report of it."""


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """The speed on several instances relative to one.

    Attributes:
        serial: part of the work on one instance that more instances do not shorten, 0 to 1.
        communication: time that each pair of instances adds, as a part of the time on one instance, 0 to 1.
        outliers: sizes of which the parameters tell nothing, each with its speedup.
    """

    serial: float = 0.0
    communication: float = 0.0
    outliers: tuple[tuple[int, float], ...] = ()

    def speedup(self, instances: int) -> float:
        """Return how many times as fast as one instance this many are; exactly their number for a linear curve."""
        for size, speedup in self.outliers:
            if size == instances:
                return speedup
        others = max(instances - 1, 0)
        return instances / (1.0 + self.serial * others + self.communication * instances * others)


LINEAR = ScalingCurve()


@dataclass(frozen=True, slots=True)
class KindCurve:
    """The mean curve of ended jobs of a kind.

    Attributes:
        curve: the mean.
        jobs: the number of jobs that count in it, at most `MAX_KIND_JOBS`.
    """

    curve: ScalingCurve = LINEAR
    jobs: float = 0.0

    def after(self, curve: ScalingCurve) -> KindCurve:
        """Return the mean after another job had this curve."""
        part = 1.0 / (min(self.jobs, MAX_KIND_JOBS - 1.0) + 1.0)
        return KindCurve(mixed(((1.0 - part, self.curve), (part, curve))), min(self.jobs + 1.0, MAX_KIND_JOBS))


def mixed(parts: Sequence[tuple[float, ScalingCurve]]) -> ScalingCurve:
    """Return the weighted mean of curves; the weights add up to 1."""
    serial = math.fsum(weight * curve.serial for weight, curve in parts)
    communication = math.fsum(weight * curve.communication for weight, curve in parts)
    return ScalingCurve(_part(serial), _part(communication))


@dataclass(frozen=True, slots=True)
class Speed:
    """The reported speed of a job at one size.

    Attributes:
        instances: the size.
        rate: mean of its reports, steps or samples a second.
        reports: the number of reports that count in it, at most `MAX_REPORTS`.
        latest: reports since the job last came to this size, at most `ENOUGH_REPORTS`, the oldest first.
        measured_at: when the last one was measured.
    """

    instances: int
    rate: float
    reports: int = 1
    latest: tuple[float, ...] = ()
    measured_at: datetime | None = None

    @property
    def is_sure(self) -> bool:
        """True if there are enough reports to leave this size for a smaller one."""
        return len(self.latest) >= ENOUGH_REPORTS

    @property
    def typical(self) -> float:
        """The median of the latest reports if there are enough, else the mean.

        A report of a time with an evaluation, a checkpoint or a slow first epoch is too low, and moves a mean.
        """
        return sorted(self.latest)[ENOUGH_REPORTS // 2] if self.is_sure else self.rate

    @property
    def retry_at(self) -> datetime | None:
        """The time from which this size may be tried again if it was slower than a smaller one; None for any time."""
        wait = RETRY_SLOWER * 2 ** max(self.reports - ENOUGH_REPORTS, 0)
        return None if self.measured_at is None else self.measured_at + wait

    def after(self, rate: float, measured_at: datetime, *, stayed: bool) -> Speed:
        """Return the speed after a further report; the same object if it tells nothing new.

        Args:
            rate: steps or samples a second.
            measured_at: when.
            stayed: whether the job has had no other size since the last report.
        """
        same = all(abs(rate - known) <= SAME_RATE * known for known in (self.rate, self.typical))
        if stayed and self.is_sure and self.reports >= MAX_REPORTS and same:
            return self
        reports = min(self.reports + 1, MAX_REPORTS)
        latest = (*(self.latest if stayed else ()), rate)[-ENOUGH_REPORTS:]
        return Speed(self.instances, self.rate + (rate - self.rate) / reports, reports, latest, measured_at)


@dataclass(frozen=True, slots=True)
class Speeds:
    """The reported speeds of a job in one pool, the size whose speed changed longest ago first.

    Attributes:
        pool: the pool; instances of another type have other speeds.
        of_sizes: the speed at each size.
    """

    pool: str = ""
    of_sizes: tuple[Speed, ...] = ()

    @property
    def sizes(self) -> frozenset[int]:
        """The sizes with a speed."""
        return frozenset(speed.instances for speed in self.of_sizes)

    @property
    def measured_at(self) -> datetime | None:
        """The time at which the newest report was measured."""
        return self.of_sizes[-1].measured_at if self.of_sizes else None

    @property
    def seem_slower(self) -> dict[int, Speed]:
        """The sizes that were slower than a smaller one, each with the fastest of these; few reports may be wrong."""
        found, best = dict[int, Speed](), None
        for speed in sorted(self.of_sizes, key=attrgetter("instances")):
            if best is not None and is_faster(best.typical, speed.typical):
                found[speed.instances] = best
            if best is None or speed.typical > best.typical:
                best = speed
        return found

    @property
    def slower(self) -> dict[int, Speed]:
        """Those of them that have enough reports."""
        sure = {speed.instances for speed in self.of_sizes if speed.is_sure}
        return {size: best for size, best in self.seem_slower.items() if size in sure}

    def without_slower(self, sizes: Sequence[int], now: datetime) -> tuple[int, ...]:
        """Return these sizes without those that were slower than a smaller one, and may not be tried again yet.

        A size without reports counts like the next smaller one that has some, sure or not. None is tried again by a job
        that has reported nothing since.
        """
        seem, sure = self.seem_slower, self.slower
        avoided = {
            each.instances for each in self.of_sizes if each.instances in seem and not self._may_retry(each, now)
        }
        if not avoided:
            return tuple(sizes)
        reported = (0, *sorted(self.sizes))
        nearest = {size: reported[bisect(reported, size) - 1] for size in sizes}
        return tuple(size for size in sizes if nearest[size] not in avoided or (size in seem and size not in sure))

    def _may_retry(self, speed: Speed, now: datetime) -> bool:
        return speed is not self.of_sizes[-1] and (speed.retry_at is None or now >= speed.retry_at)

    def after(self, pool: str, instances: int, rate: float, measured_at: datetime) -> Speeds:
        """Return the speeds after a report; the same object if it tells nothing new.

        One that is older than the newest was read before. One of a known size soon after the newest tells nothing.
        """
        first = Speed(instances, rate, latest=(rate,), measured_at=measured_at)
        if pool != self.pool:
            return Speeds(pool, (first,))
        if self.measured_at is not None and measured_at < self.measured_at:
            return self
        known = next((speed for speed in self.of_sizes if speed.instances == instances), None)
        if known is None:
            return Speeds(pool, (*self.of_sizes, first)[-MAX_SIZES:])
        if self.measured_at is not None and measured_at < self.measured_at + MIN_PERIOD:
            return self
        newest = known.after(rate, measured_at, stayed=known is self.of_sizes[-1])
        others = (speed for speed in self.of_sizes if speed is not known)
        return self if newest is known else Speeds(pool, (*others, newest))


NO_SPEEDS = Speeds()


def is_faster(rate: float, than: float, by: float = NOISE) -> bool:
    """Return whether a reported speed is higher than another by more than this part, by default a report's error."""
    return rate > than * (1 + by)


def believed_curve(speeds: Speeds, prior: KindCurve) -> ScalingCurve:
    """Return the curve of a job that reported these speeds.

    A size that was much slower than a smaller one has a cause that no curve tells, such as a slower network, and would
    make the others look worse than they are. So it keeps its own speed, if two others tell how the job scales.
    """
    rates = {speed.instances: speed.typical for speed in speeds.of_sizes}
    slower = speeds.slower.items()
    outliers = {size: best for size, best in slower if is_faster(best.typical, rates[size], OUTLIER)}
    others = tuple(speed for speed in speeds.of_sizes if speed.instances not in outliers)
    if not outliers or len(others) < 2:
        return fit(speeds.of_sizes, prior)
    curve = fit(others, prior)
    relative = {size: rates[size] / best.typical * curve.speedup(best.instances) for size, best in outliers.items()}
    return replace(curve, outliers=tuple(relative.items()))


@lru_cache(maxsize=4096)
def fit(speeds: tuple[Speed, ...], prior: KindCurve | None = None) -> ScalingCurve:
    """Return the curve that explains reported speeds best; that of the prior where they do not tell.

    The errors are those of the logarithms of the speeds, so that a size ten times as slow as believed counts as much as
    one ten times as fast. They are least squares, which Levenberg's and Marquardt's method finds from the prior's curve
    on. Cached, since passes ask for the same jobs again.

    Args:
        speeds: one for each size.
        prior: the curve of the kind; None to fit the speeds alone, as far as they determine it.
    """
    known = KindCurve() if prior is None else prior
    if len(speeds) < 2:
        return known.curve
    problem = _Fit(speeds, known, 1e-6 if prior is None else 1.0)
    curve, rows, damping = known.curve, problem.rows(known.curve), 1e-3
    for _ in range(_MAX_STEPS):
        other = _stepped(curve, rows, damping)
        better = problem.rows(other)
        if _error(better) < _error(rows):
            done = _error(better) > _error(rows) * (1 - _EXACT)
            curve, rows, damping = other, better, damping / 3
            if done:
                break
        elif damping > _MAX_DAMPING:
            break
        else:
            damping *= 4
    return curve


_MAX_STEPS, _MAX_DAMPING = 50, 1e9
_EXACT = 1e-6
"""Relative improvement below which a step is the last."""
_NOTHING = 1e-30
_Row = tuple[float, float, float]
"""An error in units of its spread, and its slopes by the serial and the communication part."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """The errors of a curve: of reported speeds, and of the distance from a prior.

    Attributes:
        certainty: how much the prior counts.
    """

    speeds: tuple[Speed, ...]
    prior: KindCurve
    certainty: float

    def rows(self, curve: ScalingCurve) -> list[_Row]:
        """Return all errors. The speed on one instance is the one that fits best, given the curve."""
        logs, weights = list(map(partial(_log_row, curve), self.speeds)), [speed.reports for speed in self.speeds]
        means = [math.fsum(map(mul, weights, column)) / sum(weights) for column in zip(*logs, strict=True)]
        rows = [
            _scaled(math.sqrt(weight) / NOISE, map(sub, log, means)) for weight, log in zip(weights, logs, strict=True)
        ]
        trust = self.certainty * math.sqrt(1.0 + self.prior.jobs)
        known, serial, communication = self.prior.curve, trust / SERIAL_SPREAD, trust / COMMUNICATION_SPREAD
        rows.append((serial * (curve.serial - known.serial), serial, 0.0))
        rows.append((communication * (curve.communication - known.communication), 0.0, communication))
        return rows


def _log_row(curve: ScalingCurve, speed: Speed) -> _Row:
    """Return the logarithm of the speed on one instance that a report would tell of, and its slopes."""
    pairs = speed.instances * (speed.instances - 1)
    time = 1.0 + curve.serial * (speed.instances - 1) + curve.communication * pairs
    return math.log(speed.rate / speed.instances * time), (speed.instances - 1) / time, pairs / time


def _scaled(factor: float, values: Iterable[float]) -> _Row:
    error, by_serial, by_communication = (factor * value for value in values)
    return error, by_serial, by_communication


def _error(rows: Sequence[_Row]) -> float:
    return math.fsum(row[0] * row[0] for row in rows)


def _stepped(curve: ScalingCurve, rows: Sequence[_Row], damping: float) -> ScalingCurve:
    """Return the curve after one step towards smaller errors, with both parameters from 0 to 1."""
    (_, g, h), (_, a, b), (_, _, c) = ([math.fsum(row[i] * row[j] for row in rows) for j in range(3)] for i in range(3))
    a, c = a * (1 + damping) + _NOTHING, c * (1 + damping) + _NOTHING
    whole = max(a * c - b * b, _NOTHING)
    serial = _part(curve.serial + (b * h - c * g) / whole)
    communication = _part(curve.communication - (h + b * (serial - curve.serial)) / c)
    serial = _part(curve.serial - (g + b * (communication - curve.communication)) / a)
    return ScalingCurve(serial, communication)


def _part(value: float) -> float:
    return min(max(value, 0.0), 1.0)
