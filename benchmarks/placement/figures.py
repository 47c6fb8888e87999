"""Figures of a run, and of the same run over seeds: means with 95 % confidence intervals, and gains over `random`.

It must not know experiments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, pstdev, stdev

from benchmarks.placement.clusters import Cluster
from benchmarks.placement.simulation import Done

HOUR = 3600.0
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t at 0.975 for 1 to 30 degrees of freedom; beyond, the normal distribution's 1.96 is near enough."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds and half the width of its 95 % confidence interval; 0 where there is one seed only."""

    value: float
    half: float

    def __str__(self) -> str:
        return f"{self.value:,.{_digits(self.value)}f} ±{self.half:,.{_digits(self.value)}f}"


def mean(values: Sequence[float]) -> Mean:
    """By Student's t: seeds are independent, their number small."""
    if len(values) < 2:
        return Mean(fmean(values), 0.0)
    degrees = len(values) - 1
    t = _T_975[degrees - 1] if degrees <= len(_T_975) else 1.96
    return Mean(fmean(values), t * stdev(values) / sqrt(len(values)))


def gains(ours: Sequence[float], reference: Sequence[float], *, less_is_better: bool = False) -> Mean:
    """Percent by which we are better, seed by seed: both have played the same load, so that differences are its own.

    Of throughput, how much more; of a time, how much less. By the geometric mean of the ratios: their arithmetic mean
    favours whoever is above the line, so that `random` would gain 6 to 10 % over itself with other draws. Half of the
    interval is its longer half.
    """
    ratios = mean([log(our / other) for our, other in zip(ours, reference, strict=True)])
    middle, upper = exp(ratios.value), exp(ratios.value + ratios.half)
    return Mean(100 * ((1 - middle) if less_is_better else (middle - 1)), 100 * (upper - middle))


def less(ours: Sequence[float], reference: Sequence[float]) -> Mean:
    """How much less we have, seed by seed, in the figure's own unit: for what may well be nothing."""
    return mean([other - our for our, other in zip(ours, reference, strict=True)])


def of_run(done: Sequence[Done], cluster: Cluster) -> dict[str, float]:
    """The figures of one run.

    throughput: tasks an hour, from the first submission to the last end. makespan: seconds of that. completion: mean
    seconds of a task from submission to end. wait: of that, before it starts. spread, deviation: of the nodes' use in
    that time, per cent of their slots: the largest less the least, and the standard deviation.
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


def use_of(done: Sequence[Done], cluster: Cluster, seconds: float) -> Mapping[str, float]:
    """Per cent of each node's slots that tasks held, over so many seconds."""
    held = dict.fromkeys(cluster.pools, 0.0)
    for each in done:
        held[each.pool] += each.task.units * (each.ended - each.started)
    return {name: 100 * held[name] / (pool.cap * seconds) for name, pool in cluster.pools.items()}


def _digits(value: float) -> int:
    return 0 if abs(value) >= 1000 else 1
