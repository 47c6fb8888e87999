"""The history of managed pools, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from trainmaster.cli.output.times import timestamp
from trainmaster.client.views.moments import zone_name

if TYPE_CHECKING:
    from trainmaster.client.views.types import ManagedPoolChangeView, ManagedPoolEventView

NOTHING = "The queue has not created, changed or removed any pools yet."
_CHANGES = {"shrink": "shrunk", "retire": "removed"}


def history_table(events: Sequence[ManagedPoolEventView], now: datetime) -> str:
    """Return a table with a line per change, in the given order."""
    if not events:
        return NOTHING
    from tabulate import tabulate

    headings = [f"Time ({zone_name(now)})", "Change", "Pool", "Instances", "$/h", "For", "Why"]
    rows = [
        [
            timestamp(event["at"], now),
            describe_change(event),
            event["pool"],
            f"{event['before']} -> {event['after']}",
            format_dollars(event["dollarsPerHour"]),
            _jobs(event),
            event["why"],
        ]
        for event in events
    ]
    return tabulate(rows, headings, tablefmt="simple", disable_numparse=True)


def describe_change(event: ManagedPoolChangeView) -> str:
    """Return the change in words."""
    default = "expanded" if event["before"] else "created"
    return _CHANGES.get(event["change"], default)


def format_dollars(more: float | None) -> str:
    """Format a difference in dollars per hour, with its sign."""
    return "?" if more is None else f"{more:+,.2f}"


def _jobs(event: ManagedPoolChangeView) -> str:
    more_jobs = event["jobCount"] - len(event["jobs"])
    return ", ".join(event["jobs"]) + (f" and {more_jobs} more" if more_jobs > 0 else "")
