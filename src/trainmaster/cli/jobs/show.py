"""`trainmaster show`: shows a job with all its details."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.kinds import kind_of_job
from trainmaster.cli.output.elastic import size_facts
from trainmaster.cli.output.logs import training_job_facts
from trainmaster.cli.output.render import (
    as_json,
    attempts_table,
    colored,
    demand_text,
    displayed_state,
    earlier_attempts,
    facts_table,
    history_table,
    members_table,
    plain,
    position_text,
    print_warnings,
    reason_text,
    rendezvous_table,
    requested_resources,
)
from trainmaster.cli.output.times import format_moment, format_moments, timestamp
from trainmaster.client.views.moments import zone_name
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.cli.common.context import CliContext
    from trainmaster.cli.output.render import Paint
    from trainmaster.client.views.types import JobDetailView, RendezvousView

_MAX_NAMED = 3
"""Redacted values that the warning names; it counts the others."""


def show(
    context: typer.Context,
    name: Name,
    request: Annotated[bool, typer.Option("--request", help="Print only the submitted request, as JSON.")] = False,
    json: Json = False,
) -> None:
    """Show a job with its attempts and its history.

    For an elastic job, the output includes its size, its members and their rendezvous; for a job of another kind than
    training, its details and its progress. With --request, the command prints the request in the form that submit
    accepts.
    """
    cli = cli_context(context)
    with cli.api() as api:
        job = api.job(name)
        elastic = job.get("elastic")
        region = api.region
        nodes = api.rendezvous(name) if elastic is not None and elastic["size"] is not None and not request else None
    if hidden := job.get("redacted"):
        print_warnings([_redacted(hidden)])
    if request:
        typer.echo(as_json(job["jobDetails"]))
    elif json:
        typer.echo(as_json(job if nodes is None else {**job, "rendezvous": nodes}))
    else:
        typer.echo(_page(cli, sanitize(job), sanitize(nodes), region))


def _redacted(paths: list[str]) -> str:
    """Return a warning for a request with redacted values."""
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    named = ", ".join(paths[:_MAX_NAMED]) + more
    return f"Values of the request are redacted, so it cannot be submitted as it is: {named}."


def _page(cli: CliContext, job: JobDetailView, nodes: RendezvousView | None, region: str) -> str:
    paint = colored if cli.has_colors(sys.stdout) else plain
    elastic = job.get("elastic")
    parts = [facts_table([*_facts(job, paint, cli.now()), *training_job_facts(job, region)])]
    if elastic is not None and elastic["members"]:
        parts.append(members_table(elastic, cli.now()))
    if nodes is not None and (table := rendezvous_table(nodes)):
        parts.append(table)
    if job["attempts"]:
        parts.append(attempts_table(job["attempts"], cli.now()))
    parts.append(history_table(job["history"], cli.now(), paint))
    return "\n\n".join(parts)


def _range(low: str, high: str, now: datetime) -> str:
    return f"{timestamp(low, now)} and {timestamp(high, now)} {zone_name(now)}"


def _facts(job: JobDetailView, paint: Paint, now: datetime) -> list[tuple[str, str]]:
    start, low, high = job["estimatedStart"], job.get("estimatedStartLow"), job.get("estimatedStartHigh")
    soon, late = job.get("expectedEndLow"), job.get("expectedEndHigh")
    deadline, kind = job.get("deadline"), kind_of_job(job)
    return [
        ("Job Name", job["jobName"]),
        ("State", paint(displayed_state(job))),
        ("Priority", str(job["priority"])),
        ("Position", position_text(job)),
        ("Reason", format_moments(reason_text(job["reason"]), now)),
        ("Failure", job["failureReason"] or ""),
        ("Expected Start", format_moment(start, now) if start else ""),
        ("Probably Between", _range(low, high, now) if low and high and low != high else ""),
        ("Expected End", format_moment(end, now) if (end := job.get("expectedEnd")) else ""),
        ("Probably Between", _range(soon, late, now) if soon and late and soon != late else ""),
        ("Deadline", format_moments(deadline["message"], now) if deadline else ""),
        ("Resources", requested_resources(job)),
        ("Demand", demand_text(job) if job["demand"] else ""),
        *size_facts(job, now),
        *([] if kind is None else kind.facts(job, now)),
        ("Earlier Attempts", earlier_attempts(job, now)),
        ("Preemptible", "yes" if job["preemptible"] else "no"),
        ("Share", job["share"]),
        ("Entered", format_moment(job["entryTime"], now)),
        ("Submitted By", job["submittedBy"] or ""),
    ]
