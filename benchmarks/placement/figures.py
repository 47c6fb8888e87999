"""Figures of a run, and over seeds: means with 95 % confidence intervals, and gains over `random`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, pstdev, stdev

from benchmarks.placement.clusters import Cluster
from benchmarks.placement.simulation import TaskResult

HOUR = 3600.0
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t at 0.975 for 1 to 30 degrees of freedom; beyond, the normal distribution's 1.96 is close enough."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds, and half the width of its 95 % confidence interval; 0 for a single seed."""

    value: float
    half: float

    def __str__(self) -> str:
        return f"{self.value:,.{_digits(self.value)}f} ±{self.half:,.{_digits(self.value)}f}"


def mean(values: Sequence[float]) -> Mean:
    """Return the mean with its interval by Student's t: seeds are independent, their number small."""
    if len(values) < 2:
        return Mean(fmean(values), 0.0)
    degrees = len(values) - 1
    t = _T_975[degrees - 1] if degrees <= len(_T_975) else 1.96
    return Mean(fmean(values), t * stdev(values) / sqrt(len(values)))


def gains(ours: Sequence[float], reference: Sequence[float], *, less_is_better: bool = False) -> Mean:
    """Return the gain in percent over a reference, seed by seed, since both have the same load.

    The increase of a throughput, or the decrease of a time, by the geometric mean of the ratios: with their arithmetic
    mean, `random` would gain 6 to 10 % over itself with other draws. Half of the interval is its longer half.
    """
    ratios = mean([log(our / other) for our, other in zip(ours, reference, strict=True)])
    middle, upper = exp(ratios.value), exp(ratios.value + ratios.half)
    return Mean(100 * ((1 - middle) if less_is_better else (middle - 1)), 100 * (upper - middle))


def differences(ours: Sequence[float], reference: Sequence[float]) -> Mean:
    """Return the differences to the reference, seed by seed, in the figure's own unit: for figures that may be 0."""
    return mean([other - our for our, other in zip(ours, reference, strict=True)])


def of_run(done: Sequence[TaskResult], cluster: Cluster) -> dict[str, float]:
    """Return the figures of one run.

    throughput: tasks an hour, from the first submission to the last end. makespan: seconds of that. completion: mean
    seconds from submission to end. wait: mean seconds before the start. spread, deviation: of the nodes' utilization in
    percent: maximum minus minimum, and standard deviation.
    """
    begin, end = min(each.submitted for each in done), max(each.ended for each in done)
    used = list(use_of(done, cluster, end - begin).values())
    return {
        "throughput": len(done) / (end - begin) * HOUR,
        "makespan": end - begin,
        "completion": fmean(each.ended - each.submitted for each in done),
        "wait": fmean(each.started - each.submitted for each in done),
        "spread": max(used) - min(used),
        "deviation": pstdev(used),
    }


def use_of(done: Sequence[TaskResult], cluster: Cluster, seconds: float) -> Mapping[str, float]:
    """Return the utilization of each node's slots in percent over this many seconds."""
    held = dict.fromkeys(cluster.pools, 0.0)
    for each in done:
        held[each.pool] += each.task.units * (each.ended - each.started)
    return {name: 100 * held[name] / (pool.cap * seconds) for name, pool in cluster.pools.items()}


def _digits(value: float) -> int:
    return 0 if abs(value) >= 1000 else 1
