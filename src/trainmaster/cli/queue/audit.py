"""`trainmaster audit`: lists who changed what."""

from __future__ import annotations

import sys
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.moments import WHEN, moment_option
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.fit import columns_of, cut, cut_middle, shrink
from trainmaster.cli.output.render import as_json, table, terminal_width
from trainmaster.cli.output.times import timestamp
from trainmaster.client.views.moments import zone_name
from trainmaster.domain.access.audit import AuditAction
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from trainmaster.client.views.types import AuditEntryView

_ACTIONS = ", ".join(AuditAction)
_HEADERS = ("Action", "Job", "Caller", "From", "Changed")
_MINIMUMS = {"Job": 12, "Caller": 12, "Changed": 16}
"""The fewest columns that cells are shortened to on a terminal."""
_GAP = 2
_MAX_SHOWN = 3
"""Changed values in a line; --json shows all."""


def audit(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    since: Annotated[str | None, typer.Option(metavar="TIME", help=f"Only changes from this time on: {WHEN}.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only changes before this time.")] = None,
    job: Annotated[str | None, typer.Option(metavar="NAME", help="Only changes of this job.")] = None,
    who: Annotated[str | None, typer.Option(metavar="TEXT", help="Only callers whose ARN contains this text.")] = None,
    action: Annotated[AuditAction | None, typer.Option(metavar="ACTION", help=f"Only this action: {_ACTIONS}.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of changes.")] = 50,
    json: Json = False,
) -> None:
    """List who changed jobs, settings and pools, newest first.

    The queue keeps an entry for each change through its API. What the manager does by itself is in the history of each
    job (trainmaster show) and of the pools (trainmaster pools --history).
    """
    cli = cli_context(context)
    now = cli.now()
    given = {"since": moment_option(since, now), "until": moment_option(until, now, "--until"), "job": job, "who": who}
    with cli.api() as api:
        found = list(islice(api.all_audit_entries(**given, action=action and action.value), limit + 1))
    shown = found[:limit]
    width = terminal_width() if cli.is_terminal(sys.stdout) else None
    typer.echo(as_json(shown) if json else audit_table(sanitize(shown), now, width))
    if not found and not json:
        typer.echo("No changes.", err=True)
    if len(found) > limit:
        typer.echo("There are more changes than these: see --limit.", err=True)


def audit_table(entries: Sequence[AuditEntryView], now: datetime, width: int | None) -> str:
    """Return the table; with a width, without the addresses if the lines would not fit, and with shortened cells."""
    headers = [f"Time ({zone_name(now)})", *_HEADERS]
    rows = [[timestamp(entry["at"], now), *_row(entry)] for entry in entries]
    if width is None or sum(_widths(headers, rows)) + _GAP * (len(headers) - 1) <= width:
        return table(rows, headers)
    at = headers.index("From")
    headers, rows = headers[:at] + headers[at + 1 :], [row[:at] + row[at + 1 :] for row in rows]
    limits = shrink(
        _widths(headers, rows), [_MINIMUMS.get(name) for name in headers], width - _GAP * (len(headers) - 1)
    )
    *firsts, last = limits
    return table([[*map(cut_middle, row[:-1], firsts), cut(row[-1], last)] for row in rows], headers)


def _widths(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(columns_of, column)) for column in zip(headers, *rows, strict=True)]


def _row(entry: AuditEntryView) -> list[str]:
    caller = entry["arn"] or entry["principal"] or "unknown"
    job, place = entry["job"] or "", entry["sourceIp"] or ""
    return [entry["action"], job, caller.rpartition(":")[2], place, _changes(entry)]


def _changes(entry: AuditEntryView) -> str:
    before, after = entry["before"], entry["after"]
    paths = list(dict.fromkeys([*before, *after]))
    more = len(paths[_MAX_SHOWN:])
    shown = [f"{path}: {_change(path, before, after)}" for path in paths[:_MAX_SHOWN]]
    return "; ".join([*shown, *([f"{more} more"] if more else [])])


def _change(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if path not in before:
        return _value(after[path])
    return f"{_value(before[path])} -> {_value(after[path]) if path in after else 'removed'}"


def _value(value: object) -> str:
    """Return a value as JSON has it, text without quotation marks."""
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)
