"""Results of jobs with several sizes, and the figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.elastic.workload import SizedJob
from trainmaster.local.replay.report.figures import percentile


class Span(NamedTuple):
    """A time in which a job held GPUs; seconds of the trace."""

    start: float
    end: float
    size: int


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of one job.

    Attributes:
        spans: GPUs that it held, in order.
        lost: GPU-seconds of them without progress: resizes and restarts.
    """

    job: SizedJob
    spans: tuple[Span, ...]
    lost: float = 0.0

    @property
    def finish(self) -> float:
        """Time of its end."""
        return self.spans[-1].end

    @property
    def jct(self) -> float:
        """Seconds from its submission to its end."""
        return self.finish - self.job.trace.submit

    @property
    def wait(self) -> float:
        """Seconds from its submission to its first start."""
        return self.spans[0].start - self.job.trace.submit

    @property
    def held(self) -> float:
        """GPU-seconds that it held."""
        return sum((span.end - span.start) * span.size for span in self.spans)

    @property
    def resizes(self) -> int:
        """Number of changes of its size without an interruption."""
        return sum(before.end == after.start and before.size != after.size for before, after in pairwise(self.spans))

    @property
    def preemptions(self) -> int:
        """Number of interruptions."""
        return sum(before.end < after.start for before, after in pairwise(self.spans))


def figures(results: Sequence[JobResult], cap: int) -> dict[str, Any]:
    """Return all figures of a run on a pool of `cap` GPUs; times in seconds."""
    begin = min(result.job.trace.submit for result in results)
    span = max(result.finish for result in results) - begin
    last = max(result.job.trace.submit for result in results)
    held = sum(result.held for result in results)
    work = sum(result.job.trace.gpus * result.job.trace.duration for result in results)
    return {
        "jobs": len(results),
        "elastic": sum(result.job.elastic for result in results),
        **_times(results, ""),
        **_times([result for result in results if result.job.elastic], "_elastic"),
        **_times([result for result in results if not result.job.elastic], "_rigid"),
        "used": round(held / (cap * span), 6),
        "used_while_jobs_come": round(_held_by(results, last) / (cap * max(last - begin, 1)), 6),
        "useful": round(work / (cap * span), 6),
        "makespan_s": round(span, 3),
        "resizes_per_elastic_job": _per(results, "resizes", sum(result.job.elastic for result in results)),
        "preemptions_per_job": _per(results, "preemptions", len(results)),
        "lost_fraction": round(sum(result.lost for result in results) / held, 6),
    }


def _times(results: Sequence[JobResult], whose: str) -> dict[str, float | None]:
    if not results:
        return dict.fromkeys((f"avg_jct{whose}_s", f"p99_jct{whose}_s", f"avg_wait{whose}_s"))
    times = [result.jct for result in results]
    return {
        f"avg_jct{whose}_s": round(sum(times) / len(times), 3),
        f"p99_jct{whose}_s": round(percentile(times, 0.99), 3),
        f"avg_wait{whose}_s": round(sum(result.wait for result in results) / len(results), 3),
    }


def _held_by(results: Sequence[JobResult], until: float) -> float:
    """Return the GPU-seconds held before that time; later the last long jobs have the pool to themselves."""
    spans = (span for result in results for span in result.spans)
    return sum((min(span.end, until) - span.start) * span.size for span in spans if span.start < until)


def _per(results: Sequence[JobResult], what: str, count: int) -> float:
    return round(sum(getattr(result, what) for result in results) / max(count, 1), 6)


def timeline(results: Sequence[JobResult], points: int = 240) -> dict[str, Any]:
    """Return the GPUs held by elastic and other jobs, and the waiting jobs, averaged over equal intervals.

    From the first submission to the last: the rest is the end of the longest jobs.
    """
    begin = min(result.job.trace.submit for result in results)
    step = (max(result.job.trace.submit for result in results) - begin) / points or 1.0
    lines = {name: [0.0] * points for name in ("elastic", "rigid", "waiting")}
    for result in results:
        name = "elastic" if result.job.elastic else "rigid"
        for start, end, size in result.spans:
            _add(lines[name], (start - begin) / step, (end - begin) / step, size)
        since = result.job.trace.submit
        for start, end, _ in result.spans:
            _add(lines["waiting"], (since - begin) / step, (start - begin) / step, 1)
            since = end
    shown = {name: [round(value, 2) for value in line] for name, line in lines.items()}
    return {"begin_s": begin, "step_s": round(step, 3), **shown}


def _add(line: list[float], start: float, end: float, height: float) -> None:
    """Add a height to the parts of a line that a span touches."""
    for part in range(int(start), min(int(end) + 1, len(line))):
        line[part] += height * max(0.0, min(end, part + 1) - max(start, part))
