"""Results of a replay or of a reference policy: the times at which each job ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from trainmaster.local.replay.trace.trace import TraceJob

Span = tuple[float, float]
"""Start and end of a time in which a job held its units, in seconds of the trace."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of one job.

    Attributes:
        spans: times at which it held its units; more than one if it was preempted.
        lost: seconds of them spent on restarts.
    """

    job: TraceJob
    spans: tuple[Span, ...]
    lost: float = 0.0

    @property
    def finish(self) -> float:
        """Time of its end."""
        return self.spans[-1][1]

    @property
    def jct(self) -> float:
        """Job completion time: from submission to the end."""
        return self.finish - self.job.submit

    @property
    def wait(self) -> float:
        """The part of the completion time without progress: in the queue and in restarts."""
        # The difference of two floating-point numbers may be slightly below zero.
        return max(0.0, self.jct - self.job.duration)

    @property
    def preemptions(self) -> int:
        """Number of preemptions."""
        return len(self.spans) - 1

    @property
    def held(self) -> float:
        """GPU-seconds that it held."""
        return self.job.gpus * sum(end - start for start, end in self.spans)


@dataclass(frozen=True, slots=True)
class Usage:
    """Length of the queue and used units from this time on."""

    at: float
    waiting: int
    used: int


def usage_over_time(results: Iterable[JobResult]) -> list[Usage]:
    """Return the length of the queue and the used units after each change."""
    result: list[Usage] = []
    waiting = used = 0
    for at, changes in groupby(sorted(_changes(results)), key=lambda change: change[0]):
        for _, queue, units in changes:
            waiting, used = waiting + queue, used + units
        result.append(Usage(at, waiting, used))
    return result


def _changes(results: Iterable[JobResult]) -> Iterator[tuple[float, int, int]]:
    """Yield the time of each change, with the differences in queue length and in used units."""
    for each in results:
        yield each.job.submit, 1, 0
        last = len(each.spans) - 1
        for index, (start, end) in enumerate(each.spans):
            yield start, -1, each.job.gpus
            yield end, int(index < last), -each.job.gpus


def makespan(results: Sequence[JobResult]) -> float:
    """Return the seconds from the first submission to the last end."""
    return max(each.finish for each in results) - min(each.job.submit for each in results)
