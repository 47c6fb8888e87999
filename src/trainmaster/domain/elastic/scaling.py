"""The speed of an elastic job by its number of instances: a curve of two parameters, fitted to reported speeds.

The curve is the universal scalability law (Gunther, "Guerrilla Capacity Planning", 2007): a serial part, which more
instances do not shorten (Amdahl's law), and a communication part, which grows with them. Until a job has reported its
speed at several sizes, the curve of its kind decides, and without that the job counts as linear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

MIN_RATE, MAX_RATE = 1e-9, 1e12
"""Bounds of a reported speed, steps or samples a second."""
MAX_REPORTS = 8
"""Reports of one size that count; the newest eighth of the mean is then the newest report."""
MAX_SIZES = 12
"""Sizes of a job whose speeds are kept; the one reported longest ago is dropped first."""
MAX_KIND_JOBS = 8
"""Jobs of a kind that count; later ones replace an eighth of the mean."""
ENOUGH_JOBS = 2.0
"""Jobs at which a kind counts as much as the next wider kind."""
NOISE = 0.05
"""Assumed relative error of one report."""
SERIAL_SPREAD, COMMUNICATION_SPREAD = 0.1, 0.003
"""Assumed difference of a job's parameters from those of its kind."""
SAME_RATE = 0.02
"""Relative change of a speed below which a further report tells nothing new."""


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """The speed on several instances relative to one.

    Attributes:
        serial: part of the work on one instance that more instances do not shorten, 0 to 1.
        communication: time that each pair of instances adds, as a part of the time on one instance, 0 to 1.
    """

    serial: float = 0.0
    communication: float = 0.0

    def speedup(self, instances: int) -> float:
        """Return how many times as fast as one instance this many are; exactly their number for a linear curve."""
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
    return ScalingCurve(min(max(serial, 0.0), 1.0), min(max(communication, 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class Speed:
    """The reported speed of a job at one size.

    Attributes:
        instances: the size.
        rate: mean of its reports, steps or samples a second.
        reports: the number of reports that count in it, at most `MAX_REPORTS`.
    """

    instances: int
    rate: float
    reports: int = 1


@dataclass(frozen=True, slots=True)
class Speeds:
    """The reported speeds of a job in one pool, the size reported longest ago first.

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

    def after(self, pool: str, instances: int, rate: float) -> Speeds:
        """Return the speeds after a report; the same object if it tells nothing new.

        A repeated or late report of a size only confirms its mean, so it needs no number.
        """
        if pool != self.pool:
            return Speeds(pool, (Speed(instances, rate),))
        known = next((speed for speed in self.of_sizes if speed.instances == instances), None)
        if known is None:
            return replace(self, of_sizes=(*self.of_sizes, Speed(instances, rate))[-MAX_SIZES:])
        if known.reports >= MAX_REPORTS and abs(rate - known.rate) <= SAME_RATE * known.rate:
            return self
        reports = min(known.reports + 1, MAX_REPORTS)
        newest = Speed(instances, known.rate + (rate - known.rate) / reports, reports)
        others = (speed for speed in self.of_sizes if speed is not known)
        return replace(self, of_sizes=(*others, newest))


NO_SPEEDS = Speeds()


@lru_cache(maxsize=1024)
def fit(speeds: tuple[Speed, ...], prior: KindCurve | None = None) -> ScalingCurve:
    """Return the curve that explains reported speeds best; that of the prior where they do not tell.

    The time of an instance for a step, relative to one instance, is linear in the parameters, so this is a least
    squares problem with parameters of at least 0: the best of its four solutions with some of them fixed at 0. Cached,
    since passes ask for the same jobs again.

    Args:
        speeds: one for each size.
        prior: the curve of the kind; None to fit the speeds alone, as far as they determine it.
    """
    known = KindCurve() if prior is None else prior
    if len(speeds) < 2:
        return known.curve
    rows = [*_rows(speeds), *_prior_rows(known, 1e-6 if prior is None else 1.0)]
    found = [solved for free in product((False, True), repeat=2) if (solved := _solved(rows, free)) is not None]
    if not found:
        return known.curve
    _, whole, serial, communication = min(found)
    return ScalingCurve(min(serial / whole, 1.0), min(communication / whole, 1.0))


_Row = tuple[float, float, float, float]
"""One equation: the factors of the time on one instance, of its serial and its communication part, and the result."""


def _rows(speeds: Sequence[Speed]) -> Iterator[_Row]:
    """Yield an equation for each size: its relative error counts, the more the more reports it has."""
    least = min(speed.instances / speed.rate for speed in speeds)
    for speed in speeds:
        time = speed.instances / speed.rate / least
        weight = math.sqrt(speed.reports) / NOISE
        others = speed.instances - 1
        yield weight / time, weight * others / time, weight * speed.instances * others / time, weight


def _prior_rows(prior: KindCurve, certainty: float) -> Iterator[_Row]:
    weight = certainty * math.sqrt(1.0 + prior.jobs)
    serial, communication = weight / SERIAL_SPREAD, weight / COMMUNICATION_SPREAD
    yield -serial * prior.curve.serial, serial, 0.0, 0.0
    yield -communication * prior.curve.communication, 0.0, communication, 0.0


def _solved(rows: Sequence[_Row], free: tuple[bool, ...]) -> tuple[float, float, float, float] | None:
    """Return the error and the solution with the parameters that are not `free` at 0; None if it is not valid."""
    chosen = [0, *(index for index, is_free in enumerate(free, start=1) if is_free)]
    matrix = [[math.fsum(row[i] * row[j] for row in rows) for j in (*chosen, 3)] for i in chosen]
    solution = _gauss(matrix)
    if solution is None or solution[0] <= 0 or min(solution) < 0:
        return None
    values = dict(zip(chosen, solution, strict=True))
    whole, serial, communication = (values.get(index, 0.0) for index in range(3))
    error = math.fsum((row[0] * whole + row[1] * serial + row[2] * communication - row[3]) ** 2 for row in rows)
    return (error, whole, serial, communication) if math.isfinite(error) else None


def _gauss(matrix: list[list[float]]) -> list[float] | None:
    """Return the solution of linear equations, each with its result last; None if they have no single one."""
    size = len(matrix)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(matrix[row][column]))
        if abs(matrix[pivot][column]) < _NOTHING:
            return None
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        for row in range(size):
            if row != column:
                factor = matrix[row][column] / matrix[column][column]
                matrix[row] = [x - factor * y for x, y in zip(matrix[row], matrix[column], strict=True)]
    return [row[size] / row[place] for place, row in enumerate(matrix)]


_NOTHING = 1e-12
