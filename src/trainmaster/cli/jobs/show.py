"""`trainmaster show`: all that the queue knows of a job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.output.elastic import size_facts
from trainmaster.cli.output.render import (
    as_json,
    asks_of,
    attempts_table,
    coloured,
    demand_of,
    earlier_of,
    facts,
    history_table,
    members_table,
    plain,
    position_of,
    rendezvous_table,
    state_of,
    text_of,
)
from trainmaster.cli.output.times import stamp, told, with_moments
from trainmaster.images.cli.requests import image_facts

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.cli.common.context import Tools
    from trainmaster.cli.output.render import Paint
    from trainmaster.client.views.elastic import RendezvousView
    from trainmaster.client.views.jobs import JobDetail


def show(
    context: typer.Context,
    name: Name,
    request: Annotated[bool, typer.Option("--request", help="Print the submitted request instead, as JSON.")] = False,
    json: Json = False,
) -> None:
    """Show a job with its attempts and its history; of an elastic job also its size, its members and their rendezvous.

    Of an image job also its endpoint, and how far its regions are.

    With --request it prints the request in the form that submit takes.
    """
    tools = tools_of(context)
    with tools.api() as api:
        job = api.job(name)
        elastic = job.get("elastic")
        nodes = api.rendezvous(name) if elastic is not None and elastic["size"] is not None and not request else None
    if request:
        typer.echo(as_json(job["jobDetails"]))
    elif json:
        typer.echo(as_json(job if nodes is None else {**job, "rendezvous": nodes}))
    else:
        typer.echo(_page(tools, job, nodes))


def _page(tools: Tools, job: JobDetail, nodes: RendezvousView | None) -> str:
    paint = coloured if tools.colours(sys.stdout) else plain
    elastic = job.get("elastic")
    parts = [facts(_facts(job, paint, tools.now()))]
    if elastic is not None and elastic["members"]:
        parts.append(members_table(elastic))
    if nodes is not None and (log_fields := rendezvous_table(nodes)):
        parts.append(log_fields)
    if job["attempts"]:
        parts.append(attempts_table(job["attempts"], tools.now()))
    parts.append(history_table(job["history"], paint))
    return "\n\n".join(parts)


def _facts(job: JobDetail, paint: Paint, now: datetime) -> list[tuple[str, str]]:
    start, low, high = job["estimatedStart"], job.get("estimatedStartLow"), job.get("estimatedStartHigh")
    deadline = job.get("deadline")
    return [
        ("Job Name", job["jobName"]),
        ("State", paint(state_of(job))),
        ("Priority", str(job["priority"])),
        ("Position", position_of(job)),
        ("Reason", with_moments(text_of(job["reason"]), now)),
        ("Failure", job["failureReason"] or ""),
        ("Expected Start", told(start, now) if start else ""),
        ("Probably Between", f"{stamp(low)} and {stamp(high)} UTC" if low and high and low != high else ""),
        ("Deadline", with_moments(deadline["message"], now) if deadline else ""),
        ("Asks For", asks_of(job)),
        ("Demand", demand_of(job) if job["demand"] else ""),
        *size_facts(job, now),
        *image_facts(job, now),
        ("Earlier Attempts", earlier_of(job)),
        ("Preemptible", "yes" if job["preemptible"] else "no"),
        ("Share", job["share"]),
        ("Entered", f"{stamp(job['entryTime'])} UTC"),
        ("Submitted By", job["submittedBy"] or ""),
    ]
