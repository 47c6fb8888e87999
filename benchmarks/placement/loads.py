"""Loads of the experiments: tasks of equal and of several demands, queries in parts, gangs. A seed determines each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from random import Random

from benchmarks.placement.clusters import LARGE, ONE_CPU, SMALL
from trainmaster.domain.capacity.resources import Resources

MEAN_SECONDS = 600.0
"""Mean work of a task. The article's tasks run for milliseconds; a job's start on SageMaker takes minutes."""


@dataclass(frozen=True, slots=True)
class Task:
    """One job: its time, its demand, and its actual behavior.

    Attributes:
        at: earliest submission in seconds; a bound on unfinished tasks may delay it.
        work: run time in seconds without interference.
        uses: CPUs that it keeps busy; it declares `units`.
    """

    at: float
    units: int
    work: float
    resources: Resources = ONE_CPU
    uses: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """Tasks in order, and the maximum number of unfinished ones; None for no bound."""

    tasks: Sequence[Task]
    in_flight: int | None = None


def one_by_one(rng: Random, count: int) -> Load:
    """Return equal tasks, each submitted when the one before has ended (table 2)."""
    return Load([Task(0.0, 1, _about(rng, MEAN_SECONDS, 0.1)) for _ in range(count)], in_flight=1)


def equal_at_once(rng: Random, parallelism: int) -> Load:
    """Return equal tasks of one CPU, submitted at once (figure 4), with slightly different run times."""
    return Load([Task(0.0, 1, _about(rng, MEAN_SECONDS, 0.1)) for _ in range(parallelism)])


def unequal_at_once(rng: Random, parallelism: int) -> Load:
    """Return tasks of 1 to 4 CPUs and unequal run times, submitted at once (figure 5).

    They keep between half and one and a half of their declared CPUs busy: the article suspects such differences where
    `pick-kx` does badly.
    """
    tasks = []
    for _ in range(parallelism):
        units = rng.choice((1, 1, 2, 2, 3, 4))
        tasks.append(Task(0.0, units, _about(rng, MEAN_SECONDS, 0.5), uses=units * rng.uniform(0.5, 1.5)))
    return Load(tasks)


def queries(rng: Random, gigabytes: int, *, join: bool, larger: int = 1) -> Load:
    """Return the parts of a query over a table (figure 6).

    A selection has 4 parts for each gigabyte. A join has as many parts of two CPUs, whose work grows with the table and
    is skewed. On a cluster that is larger by a factor, a table larger by the same factor has parts of the same work.
    """
    count, mean, skew = 4 * gigabytes, MEAN_SECONDS / 2, 0.15
    if join:
        mean, skew = mean * (1 + gigabytes / larger / 4), 0.4
    return Load([Task(0.0, 2 if join else 1, _about(rng, mean, skew)) for _ in range(count)])


def arriving(rng: Random, count: int, slots: int, load: float) -> Load:
    """Return equal CPU-bound tasks that arrive at random times and keep this part of the CPUs busy (table 3)."""
    tasks, at = [], 0.0
    for _ in range(count):
        at += rng.expovariate(load * slots / MEAN_SECONDS)
        tasks.append(Task(at, 1, _about(rng, MEAN_SECONDS, 0.5)))
    return Load(tasks)


GANGS = (2, 4, 8, 16, 32)
GANG_WEIGHTS = (8, 6, 4, 2, 1)
_MEAN_GANG = sum(size * weight for size, weight in zip(GANGS, GANG_WEIGHTS, strict=True)) / sum(GANG_WEIGHTS)


def gangs(rng: Random, count: int, slots: int, load: float, *, two_types: bool) -> Load:
    """Return gangs of 2 to 32 instances, small ones more often; with two types every third needs the larger one."""
    tasks, at = [], 0.0
    for _ in range(count):
        at += rng.expovariate(load * slots / (_MEAN_GANG * 6 * MEAN_SECONDS))
        (units,) = rng.choices(GANGS, GANG_WEIGHTS)
        asked = LARGE if two_types and rng.random() < 1 / 3 else SMALL
        tasks.append(Task(at, units, _about(rng, 6 * MEAN_SECONDS, 0.8), asked))
    return Load(tasks)


def _about(rng: Random, mean: float, sigma: float) -> float:
    """Return a log-normal value with that mean, in whole milliseconds."""
    return round(mean * exp(rng.gauss(-sigma * sigma / 2, sigma)), 3)
