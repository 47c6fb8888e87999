"""Reads of the same queue under ModelRunner's scheduler: computed, not run.

Its scheduler scans its whole table in each cycle, strongly consistent, and starts at most one request (facts: steps 1
and 9 of its cycle; weak spot W15). Stock ModelRunner takes no further request from SQS while its table has 50 rows,
running ones included (`max_jobs_lookahead`, which only its code can change), so its scan stays small, and requests
beyond those 50 wait unseen. In its favor: nothing is counted but the scan and the write of the start.
"""

from __future__ import annotations

import math

from benchmarks.common.meter import Cost

ROW_BYTES = 711
"""Of a typical item of its table, as DynamoDB counts it."""
LOOK_AHEAD = 50
"""Maximum rows of stock ModelRunner's table."""
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


def stock_rows(requests: int) -> int:
    """Return the rows of stock ModelRunner's table with so many requests that wait or run."""
    return min(LOOK_AHEAD, requests)


def start(rows: int) -> Cost:
    """Return the units of a start: one cycle's scan, and one write."""
    return Cost(reads=units(rows), writes=1, calls=calls(rows) + 1)
