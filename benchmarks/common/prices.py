"""Prices of DynamoDB on demand in us-east-1 ("Amazon DynamoDB pricing", since November 2024)."""

from __future__ import annotations

from benchmarks.common.meter import Cost

DOLLARS_PER_WRITE_UNIT = 0.625 / 1_000_000
DOLLARS_PER_READ_UNIT = 0.125 / 1_000_000


def dollars(cost: Cost) -> float:
    """Return the price of the units."""
    return cost.writes * DOLLARS_PER_WRITE_UNIT + cost.reads * DOLLARS_PER_READ_UNIT
