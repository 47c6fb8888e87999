"""`trainmaster audit`: lists who changed what."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.moments import WHEN, moment_option
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.render import as_json, table
from trainmaster.cli.output.times import timestamp
from trainmaster.client.views.moments import zone_name
from trainmaster.domain.access.audit import AuditAction
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainmaster.client.views.types import AuditEntryView

_ACTIONS = ", ".join(AuditAction)
_HEADERS = ("Action", "Job", "Caller", "From", "Changed")
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
    typer.echo(as_json(shown) if json else _table(sanitize(shown), now))
    if len(found) > limit:
        typer.echo(f"Only {limit} changes are shown; there are more (see --limit).", err=True)


def _table(entries: list[AuditEntryView], now: datetime) -> str:
    rows = [[timestamp(entry["at"], now), *_row(entry)] for entry in entries]
    return table(rows, (f"Time ({zone_name(now)})", *_HEADERS))


def _row(entry: AuditEntryView) -> list[Any]:
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
        return str(after[path])
    return f"{before[path]} -> {after.get(path, 'removed')}"
