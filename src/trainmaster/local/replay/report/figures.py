"""Figures of a run: completion times, waits, utilization, cost of preemption, fairness between shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from trainmaster.local.replay.report.results import JobResult, makespan

LARGE = 8
"""GPUs of the smallest large job: a whole machine of the largest types."""
WORST = 0.05
"""Part of the jobs, those that waited longest, whose mean wait is reported: one job alone does not decide it."""
_CLASSES = ((1, 1, "1"), (2, 7, "2-7"), (8, 31, "8-31"), (32, None, "32+"))


def figures(results: Sequence[JobResult], cap: int) -> dict[str, Any]:
    """Return all figures of a run on a pool of `cap` units, by the names that `--json` prints; times in seconds.

    `avg_wait_large_s`, `p99_wait_large_s` and `worst5_wait_large_s` are None without large jobs.
    """
    large = [each for each in results if each.job.gpus >= LARGE]
    work = sum(each.job.gpus * each.job.duration for each in results)
    held = sum(each.held for each in results)
    lost = sum(each.job.gpus * each.lost for each in results)
    span = makespan(results)
    return {
        **_times("jct", [each.jct for each in results]),
        **_times("wait", [each.wait for each in results]),
        **_times("wait_large", [each.wait for each in large]),
        "worst5_wait_s": _round(mean_of_worst([each.wait for each in results], WORST)),
        "worst5_wait_large_s": _round(mean_of_worst([each.wait for each in large], WORST)) if large else None,
        "utilization": _round(work / (cap * span), 6) if span else 0.0,
        "makespan_s": _round(span),
        "preemptions_per_job": _round(sum(each.preemptions for each in results) / len(results), 6),
        "lost_fraction": _round(lost / held, 6) if held else 0.0,
        "lost_gpu_hours": _round(lost / 3600),
        "jain": _round(jain(_progress_by_share(results).values()), 6),
        "jobs": len(results),
        "by_size": by_size(results),
    }


def by_size(results: Sequence[JobResult]) -> dict[str, dict[str, Any]]:
    """Return completion times and waits by class of job size, smallest first."""
    result = {}
    for low, high, name in _CLASSES:
        some = [each for each in results if low <= each.job.gpus <= (high or each.job.gpus)]
        if some:
            times = _times("jct", [each.jct for each in some]) | _times("wait", [each.wait for each in some])
            result[name] = {"jobs": len(some), **times}
    return result


def jain(values: Iterable[float]) -> float:
    """Return Jain's index of fairness: 1 if all values are equal, 1/n if one value is everything."""
    values = list(values)
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def percentile(values: Iterable[float], fraction: float) -> float:
    """Return the value below which that fraction lies, linear between neighbors (numpy's default)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * fraction
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def mean_of_worst(values: Iterable[float], fraction: float) -> float:
    """Return the mean of the largest values, this fraction of them and at least one (conditional value at risk)."""
    ordered = sorted(values, reverse=True)
    worst = ordered[: max(math.ceil(fraction * len(ordered)), 1)]
    return sum(worst) / len(worst)


def _progress_by_share(results: Sequence[JobResult]) -> Mapping[str, float]:
    """Return the mean progress of each share's jobs: 1 if none ever waited."""
    key: Callable[[JobResult], str] = lambda each: each.job.share  # noqa: E731 -- one for sorting and for grouping
    grouped = {share: list(group) for share, group in groupby(sorted(results, key=key), key=key)}
    return {share: sum(map(_progress, group)) / len(group) for share, group in grouped.items()}


def _progress(each: JobResult) -> float:
    return each.job.duration / each.jct if each.jct else 1.0


def _times(name: str, values: Sequence[float]) -> dict[str, float | None]:
    """Return mean, median and 99th percentile."""
    keys = (f"avg_{name}_s", f"p50_{name}_s", f"p99_{name}_s")
    if not values:
        return dict.fromkeys(keys)
    found = (sum(values) / len(values), percentile(values, 0.5), percentile(values, 0.99))
    return dict(zip(keys, map(_round, found), strict=True))


def _round(value: float, digits: int = 3) -> float:
    return round(value, digits)
