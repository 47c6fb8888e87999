"""Percentiles of a list."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], fraction: float) -> float | None:
    """Return the smallest value that at least this fraction of the values does not exceed; None without values.

    The values are in ascending order. This is the nearest-rank method.
    """
    return ordered[max(math.ceil(fraction * len(ordered)), 1) - 1] if ordered else None
