"""The boosted time of arrival: first come, first served for short queues, the Gittins order for deep ones.

A job is served by the time of its arrival less a boost that is the longer, the less work it is expected to need (Yu and
Scully, "Strongly Tail-Optimal Scheduling in the Light-Tailed M/G/1", 2024; Harlev, Yu and Scully, "A Gittins Policy for
Optimizing Tail Latency", 2025). The horizon of the boost grows with the work in the queue.
"""

from __future__ import annotations

import math

SHORTEST_HORIZON = 300.0
"""Seconds: the horizon of an empty queue."""
START_UP = 1_800.0
"""Seconds added to every index, since no start is free: it keeps the shortest jobs from a boundless boost."""
_NO_BOOST = 30.0
"""Ratio of work to horizon beyond which the boost is below a millionth of a second for each second of it."""


def horizon(average_weight: float, drain: float) -> float:
    """Return the horizon of the boost in seconds: this part of the time that the pool needs for the whole queue."""
    return max(SHORTEST_HORIZON, average_weight * drain)


def boost(work: float, horizon: float) -> float:
    """Return by how many seconds a job counts as arrived earlier.

    T * ln(1 / (1 - exp(-x / T))): boundless for no work, next to 0 for work far beyond the horizon.

    Args:
        work: seconds that the whole pool would need for the job, x; above 0.
        horizon: T.
    """
    ratio = work / horizon
    return 0.0 if ratio > _NO_BOOST else -horizon * math.log(-math.expm1(-ratio))


def work(index: float, gpus: int, capacity: int) -> float:
    """Return the seconds of the whole pool that count for a job of this Gittins index and width."""
    return (index + START_UP) * gpus / capacity
