"""What came of a trace: when each job ran, as values that figures and pictures are made of.

The same for a replay and for a baseline. It must not know who decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from trainmaster.local.replay.trace.trace import TraceJob

Span = tuple[float, float]
"""From when to when a job held its units, in seconds of the trace."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job's course.

    Attributes:
        spans: when it held its units; more than one where it was preempted.
        lost: seconds of them that went into restarts.
    """

    job: TraceJob
    spans: tuple[Span, ...]
    lost: float = 0.0

    @property
    def finish(self) -> float:
        """When it was done."""
        return self.spans[-1][1]

    @property
    def jct(self) -> float:
        """Job completion time: from its submission until it was done."""
        return self.finish - self.job.submit

    @property
    def wait(self) -> float:
        """All of that in which it made no progress: in the queue, and in restarts."""
        return self.jct - self.job.duration

    @property
    def preemptions(self) -> int:
        """How often it stepped aside."""
        return len(self.spans) - 1

    @property
    def held(self) -> float:
        """GPU-seconds that it held."""
        return self.job.gpus * sum(end - start for start, end in self.spans)


@dataclass(frozen=True, slots=True)
class Usage:
    """How the pool and its queue stood from this time on."""

    at: float
    waiting: int
    used: int


def usage_over_time(results: Iterable[JobResult]) -> list[Usage]:
    """Queue length and units in use after each change, over the whole run."""
    result: list[Usage] = []
    waiting = used = 0
    for at, changes in groupby(sorted(_changes(results)), key=lambda change: change[0]):
        for _, queue, units in changes:
            waiting, used = waiting + queue, used + units
        result.append(Usage(at, waiting, used))
    return result


def _changes(results: Iterable[JobResult]) -> Iterator[tuple[float, int, int]]:
    """Time, and what changes then: in the queue's length, in the units used."""
    for each in results:
        yield each.job.submit, 1, 0
        last = len(each.spans) - 1
        for index, (start, end) in enumerate(each.spans):
            yield start, -1, each.job.gpus
            yield end, int(index < last), -each.job.gpus


def makespan(results: Sequence[JobResult]) -> float:
    """Seconds from the first submission until the last job was done."""
    return max(each.finish for each in results) - min(each.job.submit for each in results)
