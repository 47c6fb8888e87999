"""Assigns units of the pool to jobs for the Gantt chart; pools are counters, so any free units will do."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trainmaster.local.replay.report.results import JobResult


@dataclass(frozen=True, slots=True)
class Bar:
    """Adjacent units that a job holds during a time; `number` counts the starts."""

    results: JobResult
    number: int
    start: float
    end: float
    first: int
    count: int


def bars(results: Sequence[JobResult], cap: int) -> list[Bar]:
    """Assign units to every span of every job; the lowest free units, so that idle ones are on top."""
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
    """Return all spans with a length, in order of their start."""
    found = [(start, end, each) for each in results for start, end in each.spans if end > start]
    return sorted(found, key=lambda span: span[:2])


def _runs(units: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Group ascending numbers into runs of adjacent ones: the first, and the count."""
    first = last = units[0]
    for unit in units[1:]:
        if unit != last + 1:
            yield first, last + 1 - first
            first = unit
        last = unit
    yield first, last + 1 - first
