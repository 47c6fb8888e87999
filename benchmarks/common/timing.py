"""Medians of repeated calls, with their spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def milliseconds(call: Callable[[], Any], *, times: int, at_most: float = 20) -> dict[str, float]:
    """Return median, minimum and maximum of the times of a call, after one that is not counted.

    Args:
        call: what is measured.
        times: how often.
        at_most: seconds after which no further call is begun.
    """
    call()
    taken: list[float] = []
    while len(taken) < times and sum(taken) < at_most:
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return shown(taken)


def shown(seconds: list[float]) -> dict[str, float]:
    """Return median, minimum and maximum of times in milliseconds."""
    figures = {"median_ms": statistics.median(seconds), "min_ms": min(seconds), "max_ms": max(seconds)}
    return {**{name: round(value * 1000, 3) for name, value in figures.items()}, "times": len(seconds)}
