"""`trainmaster shares`: shows what each share owns, uses, lends and borrows, with its usage and its budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.forms import Form, Output, csv_text
from trainmaster.cli.output.render import as_json, as_yaml, table
from trainmaster.cli.output.times import timestamp
from trainmaster.client.views.moments import zone_name
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainmaster.client.views.types import BudgetUseView, ShareOfPoolView, SharesView, ShareUseView


def shares(context: typer.Context, *, output: Output = Form.TABLE, json: Json = False) -> None:
    """Show what each share owns, uses, lends and borrows, with its usage and its budget.

    The first table is in instances. Own: the share's quota of the pool. Borrowed: used instances beyond it. Lent: its
    own idle instances that other shares use. Held: freed for its waiting jobs. Limit: the most that its jobs may hold.
    Per User: the most that each of its users may hold. Usage: accelerators times hours, decayed with the half-life of
    the settings, by which the order `fair` lets shares take turns. Waiting: 32+ means that more may wait than were
    counted.
    """
    cli = cli_context(context)
    with cli.api() as api:
        found = api.shares()
    typer.echo(_text(found, cli.now(), Form.JSON if json else output))


def _text(found: SharesView, now: datetime, form: Form) -> str:
    if form is Form.JSON:
        return as_json(found)
    if form is Form.YAML:
        return as_yaml(found)
    shown = sanitize(found)
    return shares_csv(shown) if form is Form.CSV else shares_table(shown, now)


def shares_table(found: SharesView, now: datetime) -> str:
    """Return a table of the shares' parts of the pools, and one of their usage and budgets."""
    rows = [[share["name"], *_part_cells(part)] for share in found["shares"] for part in share["pools"]]
    usage = [_usage_row(share, now, more=found["more"]) for share in found["shares"]]
    parts = [_without_blanks(_PARTS, rows)] if rows else []
    return "\n\n".join([*parts, _without_blanks([*_USAGE, f"Renews ({zone_name(now)})"], usage)])


def shares_csv(found: SharesView) -> str:
    """Return a row for each share and pool, and one for a share without pools, with all values."""
    return csv_text(_CSV, _csv_rows(found))


_PARTS = ("Share", "Pool", "Own", "Used", "Borrowed", "Lent", "Held", "Limit", "Per User")
_USAGE = ("Share", "Weight", "Running", "Waiting", "Usage (GPU h)", "GPU h Left", "$ Left")
_OPTIONAL = frozenset({"Held", "Limit", "Per User", "GPU h Left", "$ Left"})
_OF_SHARE = ("weight", "lending", "running", "waiting", "fadedGpuHours")
_OF_BUDGET = (
    *("gpuHours", "gpuHoursUsed", "gpuHoursLeft", "dollars", "dollarsUsed", "dollarsLeft"),
    *("spent", "periodStart", "periodEnd"),
)
_OF_PART = (
    *("pool", "nominal", "own", "used", "held", "borrowed", "lent", "lends", "borrows"),
    *("limit", "limitedBy", "maxPerUser"),
)
_CSV = ("share", *_OF_PART, *_OF_SHARE, *(f"budget.{member}" for member in _OF_BUDGET))


def _part_cells(part: ShareOfPoolView) -> list[object]:
    own = (part["own"], part["used"], part["borrowed"], part["lent"])
    return [part["pool"], *own, part["held"] or "", _blank(part["limit"]), _blank(part["maxPerUser"])]


def _blank(value: object) -> object:
    return "" if value is None else value


def _usage_row(share: ShareUseView, now: datetime, *, more: bool) -> list[object]:
    budget = share["budget"]
    waiting = f"{share['waiting']}{'+' if more else ''}"
    head = [share["name"], f"{share['weight']:g}", share["running"], waiting, f"{share['fadedGpuHours']:,.1f}"]
    return [*head, *(("", "", "") if budget is None else _budget_cells(budget, now))]


def _budget_cells(budget: BudgetUseView, now: datetime) -> tuple[str, str, str]:
    hours = _left(budget["gpuHoursLeft"], budget["gpuHours"])
    dollars = _left(budget["dollarsLeft"], budget["dollars"])
    return hours, dollars, timestamp(budget["periodEnd"], now)


def _left(left: float | None, limit: float | None) -> str:
    return "" if left is None or limit is None else f"{left:,.1f} of {limit:,.1f}"


def _without_blanks(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table without the optional columns that are blank."""
    kept = [
        index
        for index, heading in enumerate(headers)
        if any(row[index] != "" for row in rows) or not (heading in _OPTIONAL or heading.startswith("Renews"))
    ]
    return table([[row[index] for index in kept] for row in rows], [headers[index] for index in kept])


def _csv_rows(found: SharesView) -> Iterator[list[Any]]:
    for share in found["shares"]:
        values: dict[str, Any] = {**share}
        budget: dict[str, Any] = {**(share["budget"] or {})}
        tail = [*(values[member] for member in _OF_SHARE), *(budget.get(member) for member in _OF_BUDGET)]
        parts: list[dict[str, Any]] = [{**part} for part in share["pools"]] or [{}]
        for part in parts:
            yield [share["name"], *(part.get(member) for member in _OF_PART), *tail]
