"""Reads of the same queue under ModelRunner's scheduler: computed, not run.

Its scheduler scans its whole table in each cycle, strongly consistent, and starts at most one request (facts: steps 1
and 9 of its cycle; weak spot W15). In its favor: nothing is counted but the scan, and its rows are of the size that
was seen, with nothing of DynamoDB's own.
"""

from __future__ import annotations

import math

ROW_BYTES = 900
"""Of a typical item of its table, as JSON."""
PAGE_BYTES = 1024 * 1024
"""Of one answer to a Scan (DynamoDB developer guide, "Pagination")."""
UNIT_BYTES = 4096
"""Of one read unit, strongly consistent."""


def units(rows: int) -> int:
    """Read units of a cycle, and so of a start."""
    whole, rest = divmod(rows * ROW_BYTES, PAGE_BYTES)
    return whole * (PAGE_BYTES // UNIT_BYTES) + math.ceil(rest / UNIT_BYTES)


def calls(rows: int) -> int:
    """Requests of a cycle's scan."""
    return max(1, math.ceil(rows * ROW_BYTES / PAGE_BYTES))
