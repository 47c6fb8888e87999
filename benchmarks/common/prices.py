"""What AWS charges in us-east-1 (facts/scheduling.md, section 4; DynamoDB on demand since November 2024)."""

from __future__ import annotations

from benchmarks.common.meter import Cost

DOLLARS_PER_WRITE_UNIT = 0.625 / 1_000_000
DOLLARS_PER_READ_UNIT = 0.125 / 1_000_000


def dollars(cost: Cost) -> float:
    """The price of units."""
    return cost.writes * DOLLARS_PER_WRITE_UNIT + cost.reads * DOLLARS_PER_READ_UNIT
