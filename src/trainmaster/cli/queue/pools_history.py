"""What the queue has done to the pools that it made, as a table. It must not ask the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainmaster.cli.output.times import stamp

if TYPE_CHECKING:
    from trainmaster.client.views.pools import PoolDeedView, PoolEventView

NOTHING = "The queue has made, changed and removed no pool yet."
_DEEDS = {"shrink": "made smaller", "retire": "removed"}


def history_table(events: Sequence[PoolEventView]) -> str:
    """One line for each change, in the order given."""
    if not events:
        return NOTHING
    from tabulate import tabulate

    headings = ["When", "Change", "Pool", "Instances", "$/h", "For", "Why"]
    rows = [
        [
            stamp(event["at"]),
            deed(event),
            event["pool"],
            f"{event['before']} -> {event['after']}",
            dollars(event["dollarsPerHour"]),
            _jobs(event),
            event["why"],
        ]
        for event in events
    ]
    return tabulate(rows, headings, tablefmt="simple", disable_numparse=True)


def deed(event: PoolDeedView) -> str:
    """What was done, in words."""
    made = "made larger" if event["before"] else "made"
    return _DEEDS.get(event["change"], made)


def dollars(more: float | None) -> str:
    """Dollars an hour more or less, with the sign."""
    return "?" if more is None else f"{more:+,.2f}"


def _jobs(event: PoolDeedView) -> str:
    left = event["jobCount"] - len(event["jobs"])
    return ", ".join(event["jobs"]) + (f" and {left} more" if left > 0 else "")
