"""Describe how the queue believes that an elastic job scales, once reports of it or of its kind have told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from operator import attrgetter

from trainmaster.domain.elastic.scaling import MAX_KIND_JOBS, MAX_REPORTS, ScalingCurve, Speed, Speeds
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.times import clock

MAX_GAIN = 1.5
"""Gain of a larger size, relative to its instances, above which reported speeds are doubted: caches explain no more."""
_UNKNOWN = "the job counts as linear until it has reported its speed at two sizes"


@dataclass(frozen=True, slots=True)
class BelievedScaling:
    """A learned curve at the sizes of a job that matter.

    Attributes:
        curve: the curve.
        sizes: the smallest, present and largest size, and those with reports, ascending.
        reported: the reported speeds, by size.
        slower: the sizes that were slower than a smaller one, each with the fastest of these.
        message: the belief as a sentence.
    """

    curve: ScalingCurve
    sizes: tuple[int, ...]
    reported: Mapping[int, Speed]
    slower: Mapping[int, Speed]
    message: str


def believed_scaling(job: Job, history: History, now: datetime) -> BelievedScaling | None:
    """Return how the job is believed to scale; None for a job that has one size, or if nothing was reported."""
    elastic, speeds = job.elastic, job.speeds_here
    if elastic is None or not (speeds.of_sizes or history.tells_curve(job)):
        return None
    if len({*elastic.sizes, *speeds.sizes}) == 1:
        return None
    present = _present(job) or elastic.min_instances
    sizes = {elastic.min_instances, present, elastic.max_instances, *speeds.sizes}
    reported = {speed.instances: speed for speed in speeds.of_sizes}
    message = "; ".join(_clauses(job, elastic, history, now)) or _UNKNOWN
    return BelievedScaling(history.curve(job), tuple(sorted(sizes)), reported, speeds.slower, message)


def _present(job: Job) -> int | None:
    """Return the size that the job works with, also while it is resized; None if it holds no instances."""
    if job.attempt is None or not job.units:
        return None
    under_way = job.attempt.resizing
    if under_way is None:
        return job.attempt.size
    return under_way.after if under_way.given_up else under_way.before


def _clauses(job: Job, elastic: Elastic, history: History, now: datetime) -> Iterator[str]:
    if history.tells_curve(job) and (relative := ", ".join(_relative(job, elastic, history, now))):
        yield relative + _source(job, history)
    yield from _doubts(job.speeds_here)
    slower, present = job.speeds_here.slower, _present(job)
    for speed in job.speeds_here.of_sizes:
        if speed.instances in slower:
            yield _slower(speed, slower[speed.instances], now, present=speed.instances == present)


def _relative(job: Job, elastic: Elastic, history: History, now: datetime) -> Iterator[str]:
    """Yield how fast the present size and the fastest that the job may have are, and whether more are no faster."""
    speeds, curve = job.speeds_here, history.curve(job)
    usable = [size for size in speeds.without_slower(elastic.sizes, now) if size not in speeds.slower]
    fastest, present = max(usable, key=curve.speedup, default=0), _present(job)
    smallest, unit = min(elastic.min_instances, *speeds.sizes or (elastic.min_instances,)), " instances"
    for size in dict.fromkeys((present, fastest)):
        if size and size != smallest and size not in speeds.slower:
            words, than = "run" if size == present else "would run", f" as {smallest}" if unit else ""
            yield f"{size}{unit} {words} {_times(speeds, curve, size, smallest):.1f} times as fast{than}"
            unit = ""
    if usable and fastest < usable[-1]:
        yield f"more than {fastest} instance{'' if fastest == 1 else 's'} would not be faster"


def _times(speeds: Speeds, curve: ScalingCurve, size: int, than: int) -> float:
    """Return how many times as fast one size is as another: as measured, if both were, else as believed."""
    rates = {speed.instances: speed.typical for speed in speeds.of_sizes}
    if size in rates and than in rates and not any(_doubts(speeds)):
        return rates[size] / rates[than]
    return curve.speedup(size) / curve.speedup(than)


def _doubts(speeds: Speeds) -> Iterator[str]:
    """Yield each pair of sizes whose speeds cannot be in one unit, since the larger is so much more than as fast."""
    known = sorted(speeds.of_sizes, key=attrgetter("instances"))
    for small, large in pairwise(known):
        times = large.typical / small.typical
        if times > MAX_GAIN * large.instances / small.instances:
            sizes = f"{large.instances} instances report {times:.0f} times the speed of {small.instances}"
            yield f"{sizes}, so they seem to count other work"


def _slower(speed: Speed, best: Speed, now: datetime, *, present: bool) -> str:
    reports, retry_at = _counted(speed.reports, MAX_REPORTS, "report"), speed.retry_at
    if present:
        return f"{speed.instances} instances are slower than {best.instances} ({reports})"
    until = f", so they are not used before {clock(retry_at)}" if retry_at is not None and now < retry_at else ""
    return f"{speed.instances} instances were slower than {best.instances} ({reports}){until}"


def _source(job: Job, history: History) -> str:
    """Return the jobs that told, unless it was this one."""
    if len(job.speeds_here.of_sizes) > 1:
        return ""
    jobs = history.jobs_of_curve(job)
    return f", by {_counted(jobs, MAX_KIND_JOBS, 'earlier job')} of its kind" if jobs else ", by jobs of other kinds"


def _counted(count: int, most: int, noun: str) -> str:
    return f"{count}{' or more' if count >= most else ''} {noun}{'' if count == 1 else 's'}"
