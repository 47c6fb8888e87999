"""`trainmaster plan`: shows what would happen if a request were submitted now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.elastic_options import elastic_options
from trainmaster.cli.common.options import Base, File, Instances, Json, Options, Priority, Resources
from trainmaster.cli.common.request import conversion_members, conversion_warnings, option_tags, read_job, with_tags
from trainmaster.cli.kinds import PlanOptions, kind_of_request, plan_options, with_help
from trainmaster.cli.output.outlook import deadline_sentence, join_names, start_sentence
from trainmaster.cli.output.render import as_json, print_warnings, reason_text
from trainmaster.cli.output.times import format_duration, format_moments
from trainmaster.cli.queue.pools_history import describe_change
from trainmaster.client.sdk.elastic import ElasticOptions, makes_elastic
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainmaster.client.views.types import CreationView, PlanView


@plan_options
@elastic_options
@with_help(lambda kind: kind.PLAN_HELP)
def plan(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    file: File,
    *,
    base: Base = None,
    priority: Priority = None,
    option: Options = None,
    resources: Resources = None,
    instances: Instances = None,
    elastic: ElasticOptions,
    of_kinds: PlanOptions,
    json: Json = False,
) -> None:
    """Show what would happen if a request were submitted now.

    The queue applies the same checks as for submit, and stores nothing. The output says when the job would start, which
    jobs it would preempt, and which jobs would start later. For a Kubernetes manifest, the command lists the
    fields that are not honored.
    """
    options = option_tags(option or (), resources, instances, elastic)
    job = read_job(file, base, options)
    kind = kind_of_request(job.request)
    if kind is not None:
        request = kind.with_plan_options(kind.with_options(job.request, priority, options), of_kinds)
    else:
        request = with_tags(job.request, priority, options)
    print_warnings(conversion_warnings(job, "`trainmaster submit` uploads the command to"))
    cli = cli_context(context)
    with cli.api() as api:
        answer = api.plan(request)
    typer.echo(as_json(answer | conversion_members(job)) if json else _plan_text(sanitize(answer), request, cli.now()))
    print_warnings(answer["warnings"])


def _plan_text(answer: PlanView, request: Mapping[str, Any], now: datetime) -> str:
    reason = reason_text(answer["reason"])
    lines = {
        "start": f"It would start immediately{_placement(answer, request)}.",
        "preempt": f"It would preempt {', '.join(answer['wouldPreempt'])}{_shrink_clause(answer)} and start in the "
        "freed capacity.",
        "wait": _wait_sentence(answer, reason),
    }
    parts = [lines[answer["decision"]]]
    if answer["decision"] != "start":
        parts.append(start_sentence(answer, now, "would be"))
    parts += [
        _created_pools(answer),
        _changed_pools(answer),
        _effects_on_others(answer, _name_in(request)),
        _deadline(answer),
        f"{scaling['message']}." if (scaling := answer.get("scaling")) else "",
    ]
    return format_moments(" ".join(part for part in parts if part), now)


def _name_in(request: Mapping[str, Any]) -> str:
    kind = kind_of_request(request)
    return str(request.get("TrainingJobName")) if kind is None else kind.name_in(request)


def _wait_sentence(answer: PlanView, reason: str) -> str:
    """Say that the job would wait and why, or only which jobs would shrink for it."""
    shrinking = _shrinking_jobs(answer)
    if shrinking and answer["reason"] is not None and answer["reason"]["type"] == "Shrinks":
        return f"It would shrink {shrinking} and start in the freed capacity."
    return f"It would wait{_position(answer)}: {reason.rstrip('.')}."


def _shrink_clause(answer: PlanView) -> str:
    shrinking = _shrinking_jobs(answer)
    return f", shrink {shrinking}" if shrinking else ""


def _shrinking_jobs(answer: PlanView) -> str:
    """Return the names of elastic jobs that would give up instances."""
    shrinking = answer["reason"].get("shrinks") if answer["reason"] is not None else None
    return ", ".join(map(str, shrinking)) if isinstance(shrinking, list) else ""


def _placement(answer: PlanView, request: Mapping[str, Any]) -> str:
    """Return the job's placement, unless the request determines it; the queue chooses an elastic job's size."""
    units = answer.get("wouldTake", {})
    config = request.get("ResourceConfig")
    requested_type = config.get("InstanceType") if isinstance(config, dict) else None
    if len(units) != 1 or (requested_type in units and not makes_elastic(request)):
        return ""
    return "".join(f" on {count} x {pool}" for pool, count in units.items())


def _position(answer: PlanView) -> str:
    if answer["position"] is not None:
        return f" at position {answer['position']}"
    minimum = answer.get("positionAtLeast")
    return f" at position {minimum} or later" if minimum is not None else ""


def _created_pools(answer: PlanView) -> str:
    """Say which pools the queue would create for the job, and their cost."""
    created = [f"{entry['pool']} ({_pool_size(entry)})" for entry in answer.get("wouldCreate", [])]
    if not created:
        none = answer.get("wouldCreateNone")
        return f"Even with expansion.enabled=true, the queue would create no pool for it: {none}." if none else ""
    pools = f"pool{'s' if created[1:] else ''} {' and '.join(created)}"
    if answer.get("expansionEnabled"):
        return f"The queue would create the {pools} for it."
    return f"With expansion.enabled=true, the queue would create the {pools} for it."


def _changed_pools(answer: PlanView) -> str:
    """Say which other managed pools would change, and what all managed pools could then cost."""
    listed = {pool["pool"] for pool in answer.get("wouldCreate", [])}
    changes = [entry for entry in answer.get("wouldChange", []) if entry["pool"] not in listed]
    changed = [
        f"{entry['pool']} would be {describe_change(entry)} ({entry['before']} -> {entry['after']})"
        for entry in changes
    ]
    dollars = answer.get("madeDollarsPerHour") or {"now": 0, "then": 0}
    cost = (
        f"All managed pools could then cost ${dollars['then']:,.2f} per hour instead of ${dollars['now']:,.2f}."
        if dollars["then"] != dollars["now"]
        else ""
    )
    return " ".join([f"{', '.join(changed)}.", cost] if changed else [cost]).strip()


def _pool_size(pool: CreationView) -> str:
    price = pool["dollarsPerHour"]
    cost = f"${price:,.2f} more per hour while in use" if price is not None else "price unknown"
    return f"{pool['instances']} x {pool['instanceType']}, {cost}"


def _effects_on_others(answer: PlanView, name: str) -> str:
    """Say which jobs would start later and by how much, and which others would start."""
    delayed = [f"{entry['jobName']} by {format_duration(entry['bySeconds'])}" for entry in answer.get("wouldDelay", [])]
    started = [entry for entry in answer.get("wouldStart", []) if entry != name]
    parts = [f"It would delay {join_names(delayed)}."] if delayed else []
    parts += [f"It would also start {join_names(started)}."] if started else []
    return " ".join(parts)


def _deadline(answer: PlanView) -> str:
    """Return the deadline sentence, unless a warning contains it."""
    deadline = answer.get("deadline")
    warned = deadline is not None and any(deadline["message"] in warning for warning in answer["warnings"])
    return "" if warned else deadline_sentence(answer)
