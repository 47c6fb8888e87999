"""The tables of days of jobs: what a day costs, and which limit of AWS it meets first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.common.table import ReportTable

Figures = dict[str, Any]
PARTITION_WRITES, PARTITION_READS = 1_000, 3_000
"""Units a second for a partition (Amazon DynamoDB Developer Guide, "Burst and adaptive capacity")."""
COLUMNS = (
    *("jobs a day", "measured", "running", "write units", "read units", "passes", "CPU of a pass, ms"),
    *("seconds of Lambda: manager", "API", "dollars a day", "for 1,000 jobs"),
)
LIMITS = (
    ("write units, partition of running jobs and records", PARTITION_WRITES, "STATE"),
    ("write units, partition of waiting jobs", PARTITION_WRITES, "WAIT"),
    ("read units, all partitions together", PARTITION_READS, "reads"),
    ("seconds of the manager, of which one works at a time", 1, "manager"),
    ("calls of CreateTrainingJob", None, "CreateTrainingJob"),
    ("calls of StopTrainingJob", None, "StopTrainingJob"),
)
EXPECTED_COST = (
    "Read units grow faster than the jobs, since each pass reads all running jobs and the head of each lane; shares "
    "and pools that jobs wait for have lanes of their own. Where less than a day was run, figures are scaled to a day. "
    "Counted: units, calls, messages and passes. Measured on this machine: CPU time, multiplied by 1.7, since 1,024 MB "
    "have 0.58 of a CPU. Assumed: 5 ms for each call of DynamoDB and 100 ms for each of SageMaker. Events that arrive "
    "in the same second share a pass, as they do on AWS while a pass runs. Dollars include DynamoDB, Lambda, API "
    "Gateway, SQS and logs, not X-Ray, alarms and instances."
)
EXPECTED_LIMITS = (
    "The average of each second and, in parentheses, the most in one. The manager comes first: its passes grow with "
    "the running jobs. Messages that arrive during a pass share the next one, so at the limit jobs wait longer, and "
    "nothing is lost. AWS does not publish the rates of CreateTrainingJob and StopTrainingJob; users report throttling "
    "from five to sixteen calls at once, and a refused call is repeated by the next pass. The last column supposes "
    "that the rate grows with the jobs from the last measured day on."
)


def tables(figures: Figures) -> Iterator[ReportTable]:
    """Yield the tables of the days that were run."""
    days = figures["days"]
    yield ReportTable(
        "Days of jobs: 200 pools, 100 shares, an hour each",
        COLUMNS,
        list(map(_cost, days)),
        EXPECTED_COST,
        headline=True,
    )
    measured = (f"{one['jobs']:,} jobs a day" for one in days)
    columns = ("each second", "limit", *measured, "limit met at, jobs a day")
    yield ReportTable(
        "Days of jobs: the limits of AWS",
        columns,
        [_limit(days, *limit) for limit in LIMITS],
        EXPECTED_LIMITS,
        headline=True,
    )


def _cost(one: Figures) -> Sequence[str]:
    each_day = one["each_day"]
    return (
        f"{one['jobs']:,}",
        _time(one["seconds"]),
        f"{one['running']:,.0f}",
        f"{each_day['write_units']:,}",
        f"{each_day['read_units']:,}",
        f"{each_day['passes']:,}",
        f"{one['pass_processor_ms']:,.0f}",
        f"{each_day['manager_seconds']:,}",
        f"{each_day['api_seconds']:,}",
        f"{one['dollars']:,.2f}",
        f"{one['dollars'] / one['jobs'] * 1_000:,.3f}",
    )


def _limit(days: Sequence[Figures], name: str, most: int | None, what: str) -> Sequence[str]:
    """Return a row: the average of each second, and in parentheses the most in one second."""
    cells = []
    for one in days:
        peak = one["most_in_a_second"].get(what)
        cells.append(f"{one['each_second'].get(what, 0):,.2f}" + (f" ({peak:,})" if peak else ""))
    return (name, "not published" if most is None else f"{most:,}", *cells, _met_at(days[-1], most, what))


def _met_at(one: Figures, most: int | None, what: str) -> str:
    """Return the jobs a day at which a limit would be met, if the rate grew with the jobs from the last day on."""
    rate = one["each_second"].get(what, 0)
    return "" if most is None or not rate else f"{one['jobs'] * most / rate:,.0f}"


def _time(seconds: int) -> str:
    return f"{seconds // 3_600} h" if seconds >= 3_600 else f"{seconds} s"
