"""`trainmaster usage`: reports what shares, pools or users used in a period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.moments import WHEN, moment_option
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.forms import Form, Output, csv_text
from trainmaster.cli.output.render import as_json, as_yaml, table
from trainmaster.cli.output.times import compact_duration, timestamp
from trainmaster.client.views.moments import zone_name
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainmaster.client.views.types import UsageGroupView, UsageView


class By(StrEnum):
    """Groups of a usage report."""

    SHARE = "share"
    POOL = "pool"
    USER = "user"
    PRIORITY = "priority"


_TOTAL: Final = "Total"
_CSV: Final = (
    *("jobs", "submitted", "started", "completed", "failed", "stopped", "cancelled"),
    *("instanceHours", "acceleratorHours", "dollars", "unpricedInstanceHours"),
    *("waitP50Seconds", "waitP95Seconds"),
    *("preemptions", "lostInstanceHours", "lostAcceleratorHours", "unlistedAttempts"),
)
_HEADERS: Final = (
    *("Jobs", "Completed", "Failed", "Stopped", "Instance h", "GPU h", "$", "Wait p50", "Wait p95"),
    *("Preempted", "Lost GPU h"),
)


def usage(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help=f"Beginning of the period: {WHEN}. Default: a week.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="End of the period. Default: now.")] = None,
    by: Annotated[
        By, typer.Option(metavar="WHAT", help="What the rows are: share, pool, user or priority.")
    ] = By.SHARE,
    output: Output = Form.TABLE,
    csv: Annotated[bool, typer.Option("--csv", help="The same as -o csv.")] = False,
    json: Json = False,
) -> None:
    """Report what shares, pools or users used in a period, what it cost, and how long jobs waited.

    Jobs: those that held instances. Hours count from the decision to start an attempt until its end, and dollars by the
    prices of pools, or of types on demand. Wait: from the entry of a job to its first start, of those that started in
    the period. Lost: work of preempted attempts since their newest checkpoints. A job counts in each of its pools, and
    once in the total. Ended jobs count until they are purged.
    """
    cli = cli_context(context)
    now = cli.now()
    with cli.api() as api:
        found = api.whole_usage(moment_option(start, now, "--from"), moment_option(end, now, "--to"), by=by.value)
    form = Form.JSON if json else Form.CSV if csv else output
    if form in (Form.JSON, Form.YAML):
        typer.echo(as_json(found) if form is Form.JSON else as_yaml(found))
        return
    shown = sanitize(found)
    typer.echo(usage_csv(shown) if form is Form.CSV else usage_table(shown, now))
    for line in _notes(shown["total"]):
        typer.echo(line, err=True)


def usage_table(found: UsageView, now: datetime) -> str:
    """Return the period in a line, and a table with a row for each group and one for the total."""
    period = f"{timestamp(found['from'], now)} to {timestamp(found['to'], now)} ({zone_name(now)})"
    rows = [_row(str(group["name"]), group) for group in found["groups"]]
    headers = (found["by"].title(), *_HEADERS)
    return f"{period}\n\n{table([*rows, _row(_TOTAL, found['total'])], headers)}"


def usage_csv(found: UsageView) -> str:
    """Return a row for each group, with all numbers and the period; sums of them are left to the reader."""
    period = (found["from"], found["to"])
    rows = [[*period, group["name"], *(_values(group)[name] for name in _CSV)] for group in found["groups"]]
    return csv_text(["from", "to", found["by"], *_CSV], rows)


def _row(name: str, group: UsageGroupView) -> list[object]:
    ends = (group["completed"], group["failed"], group["stopped"] + group["cancelled"])
    hours = (f"{group['instanceHours']:,.1f}", f"{group['acceleratorHours']:,.1f}", f"{group['dollars']:,.2f}")
    waits = (_wait(group["waitP50Seconds"]), _wait(group["waitP95Seconds"]))
    return [name, group["jobs"], *ends, *hours, *waits, group["preemptions"], f"{group['lostAcceleratorHours']:,.1f}"]


def _values(group: UsageGroupView) -> Mapping[str, object]:
    return {**group}


def _wait(seconds: float | None) -> str:
    return "" if seconds is None else compact_duration(seconds)


def _notes(total: UsageGroupView) -> list[str]:
    """Return sentences about what the numbers lack."""
    notes = []
    if total["unpricedInstanceHours"]:
        hours = f"{total['unpricedInstanceHours']:,.1f} instance hours"
        notes.append(f"{hours} have no known price: `trainmaster pools set POOL=CAP --price DOLLARS` sets one.")
    if total["unlistedAttempts"]:
        notes.append(f"The hours of {total['unlistedAttempts']} attempts that jobs no longer list are missing.")
    return notes
