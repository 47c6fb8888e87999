"""Which units of the pool each job sits on, for the Gantt chart: pools are counters, so any free ones will do.

Pure. It must not draw.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trainmaster.local.replay.report.results import JobResult


@dataclass(frozen=True, slots=True)
class Bar:
    """Neighbouring units that a job holds from one time to another; `number` counts the starts."""

    results: JobResult
    number: int
    start: float
    end: float
    first: int
    count: int


def bars(results: Sequence[JobResult], cap: int) -> list[Bar]:
    """Every span of every job on units of its own; the lowest that are free, so that idle ones lie on top."""
    free = list(range(cap))
    leaving: list[tuple[float, int, list[int]]] = []
    result: list[Bar] = []
    for number, (start, end, each) in enumerate(_spans(results)):
        while leaving and leaving[0][0] <= start:
            for unit in heapq.heappop(leaving)[2]:
                heapq.heappush(free, unit)
        units = [heapq.heappop(free) for _ in range(each.job.gpus)]
        heapq.heappush(leaving, (end, number, units))
        result.extend(Bar(each, number, start, end, first, count) for first, count in _runs(units))
    return result


def _spans(results: Iterable[JobResult]) -> list[tuple[float, float, JobResult]]:
    """All spans that have a length, in order of their start."""
    found = [(start, end, each) for each in results for start, end in each.spans if end > start]
    return sorted(found, key=lambda span: span[:2])


def _runs(units: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as runs of neighbours: the first, and how many."""
    first = last = units[0]
    for unit in units[1:]:
        if unit != last + 1:
            yield first, last + 1 - first
            first = unit
        last = unit
    yield first, last + 1 - first
