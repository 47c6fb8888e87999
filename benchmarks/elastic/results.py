"""What came of a job that may have had several sizes, and the figures of a whole run.

The same for the queue and for an allocation after a paper. It must not know who decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.elastic.workload import SizedJob
from trainmaster.local.replay.report.figures import percentile


class Span(NamedTuple):
    """From when to when a job held how many GPUs; seconds of the trace."""

    start: float
    end: float
    size: int


@dataclass(frozen=True, slots=True)
class Course:
    """One job's course.

    Attributes:
        spans: what it held, in order.
        lost: GPU-seconds of that in which it made no progress: resizes and restarts.
    """

    job: SizedJob
    spans: tuple[Span, ...]
    lost: float = 0.0

    @property
    def finish(self) -> float:
        """When it was done."""
        return self.spans[-1].end

    @property
    def jct(self) -> float:
        """From its submission until it was done."""
        return self.finish - self.job.trace.submit

    @property
    def wait(self) -> float:
        """From its submission until it held anything."""
        return self.spans[0].start - self.job.trace.submit

    @property
    def held(self) -> float:
        """GPU-seconds that it held."""
        return sum((span.end - span.start) * span.size for span in self.spans)

    @property
    def resizes(self) -> int:
        """How often it went on at once with another size."""
        return sum(before.end == after.start and before.size != after.size for before, after in pairwise(self.spans))

    @property
    def preemptions(self) -> int:
        """How often it had to wait again."""
        return sum(before.end < after.start for before, after in pairwise(self.spans))


def figures(courses: Sequence[Course], cap: int) -> dict[str, Any]:
    """All figures of a run on a pool of `cap` GPUs; times in seconds."""
    begin = min(course.job.trace.submit for course in courses)
    span = max(course.finish for course in courses) - begin
    last = max(course.job.trace.submit for course in courses)
    held = sum(course.held for course in courses)
    work = sum(course.job.trace.gpus * course.job.trace.duration for course in courses)
    return {
        "jobs": len(courses),
        "elastic": sum(course.job.elastic for course in courses),
        **_times(courses, ""),
        **_times([course for course in courses if course.job.elastic], "_elastic"),
        **_times([course for course in courses if not course.job.elastic], "_rigid"),
        "used": round(held / (cap * span), 6),
        "used_while_jobs_come": round(_held_by(courses, last) / (cap * max(last - begin, 1)), 6),
        "useful": round(work / (cap * span), 6),
        "makespan_s": round(span, 3),
        "resizes_per_elastic_job": _per(courses, "resizes", sum(course.job.elastic for course in courses)),
        "preemptions_per_job": _per(courses, "preemptions", len(courses)),
        "lost_fraction": round(sum(course.lost for course in courses) / held, 6),
    }


def _times(courses: Sequence[Course], whose: str) -> dict[str, float | None]:
    if not courses:
        return dict.fromkeys((f"avg_jct{whose}_s", f"p99_jct{whose}_s", f"avg_wait{whose}_s"))
    times = [course.jct for course in courses]
    return {
        f"avg_jct{whose}_s": round(sum(times) / len(times), 3),
        f"p99_jct{whose}_s": round(percentile(times, 0.99), 3),
        f"avg_wait{whose}_s": round(sum(course.wait for course in courses) / len(courses), 3),
    }


def _held_by(courses: Sequence[Course], until: float) -> float:
    """GPU-seconds held before that time: afterwards the last long jobs have the pool for themselves."""
    spans = (span for course in courses for span in course.spans)
    return sum((min(span.end, until) - span.start) * span.size for span in spans if span.start < until)


def _per(courses: Sequence[Course], what: str, count: int) -> float:
    return round(sum(getattr(course, what) for course in courses) / max(count, 1), 6)


def timeline(courses: Sequence[Course], points: int = 240) -> dict[str, Any]:
    """GPUs held by elastic and by other jobs, and jobs that wait, averaged over so many equal parts of the time.

    From the first submission to the last: what follows is the end of the longest jobs.
    """
    begin = min(course.job.trace.submit for course in courses)
    step = (max(course.job.trace.submit for course in courses) - begin) / points or 1.0
    lines = {name: [0.0] * points for name in ("elastic", "rigid", "waiting")}
    for course in courses:
        name = "elastic" if course.job.elastic else "rigid"
        for start, end, size in course.spans:
            _add(lines[name], (start - begin) / step, (end - begin) / step, size)
        since = course.job.trace.submit
        for start, end, _ in course.spans:
            _add(lines["waiting"], (since - begin) / step, (start - begin) / step, 1)
            since = end
    shown = {name: [round(value, 2) for value in line] for name, line in lines.items()}
    return {"begin_s": begin, "step_s": round(step, 3), **shown}


def _add(line: list[float], start: float, end: float, height: float) -> None:
    """Spread a height over the parts of a line that it touches."""
    for part in range(int(start), min(int(end) + 1, len(line))):
        line[part] += height * max(0.0, min(end, part + 1) - max(start, part))
