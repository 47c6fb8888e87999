"""`trainmaster plan`: what would happen to a request if it were submitted now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.elastic_options import elastic_options
from trainmaster.cli.common.options import Base, File, Instances, Json, Options, Priority, Resources
from trainmaster.cli.common.request import cautions, not_honoured, options_of, read_job, with_tags
from trainmaster.cli.output.outlook import deadline_sentence, names, start_sentence
from trainmaster.cli.output.render import as_json, text_of, warn
from trainmaster.cli.output.times import span, with_moments
from trainmaster.cli.queue.pools_history import deed
from trainmaster.client.sdk.elastic import ElasticOptions, makes_elastic
from trainmaster.images.cli.requests import with_size, with_wishes
from trainmaster.images.domain.request import is_image_request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainmaster.client.views.jobs import Creation, PlanView


@elastic_options
def plan(  # noqa: PLR0913 - an option each
    context: typer.Context,
    file: File,
    *,
    base: Base = None,
    priority: Priority = None,
    option: Options = None,
    resources: Resources = None,
    instances: Instances = None,
    elastic: ElasticOptions,
    image_size: Annotated[
        str | None,
        typer.Option("--image-size", metavar="WIDTHxHEIGHT", help="Pixels of an image job's image, which is not read."),
    ] = None,
    json: Json = False,
) -> None:
    """Say what a request would come to, and for whom.

    The queue answers what would happen if it were submitted now, with the same checks: when the job would start, which
    jobs would step aside for it, and which would start later. Nothing is stored. Of a HyperPodPyTorchJob manifest every
    field that cannot be honoured is named. For an image job, the image's size has to be given.
    """
    job = read_job(file, base)
    options = options_of(option or (), resources, instances, elastic)
    if is_image_request(job.request):
        request = with_size(with_wishes(job.request, priority, options), image_size)
    else:
        request = with_tags(job.request, priority, options)
    warn(cautions(job))
    tools = tools_of(context)
    with tools.api() as api:
        answer = api.plan(request)
    typer.echo(as_json(answer | not_honoured(job)) if json else _told(answer, request, tools.now()))
    warn(answer["warnings"])


def _told(answer: PlanView, request: Mapping[str, Any], now: datetime) -> str:
    reason = text_of(answer["reason"])
    lines = {
        "start": f"It would start at once{_where(answer, request)}.",
        "preempt": f"It would preempt {', '.join(answer['wouldPreempt'])}{_besides(answer)} and start in the freed "
        "capacity.",
        "wait": _waiting(answer, reason),
    }
    parts = [lines[answer["decision"]]]
    if answer["decision"] != "start":
        parts.append(start_sentence(answer, now, "would be"))
    parts += [
        _created(answer),
        _changed(answer),
        _others(answer, str(request.get("TrainingJobName") or request.get("jobId"))),
        _deadline(answer),
    ]
    return with_moments(" ".join(part for part in parts if part), now)


def _waiting(answer: PlanView, reason: str) -> str:
    """That it would wait, and why; of a job that only waits for what others give it, that."""
    given = _shrunk(answer)
    if given and answer["reason"] is not None and answer["reason"]["type"] == "Shrinks":
        return f"It would have {given} shrink and start in the freed capacity."
    return f"It would wait{_place(answer)}: {reason.rstrip('.')}."


def _besides(answer: PlanView) -> str:
    given = _shrunk(answer)
    return f", have {given} shrink," if given else ""


def _shrunk(answer: PlanView) -> str:
    """The elastic jobs that would give instances."""
    given = answer["reason"].get("shrinks") if answer["reason"] is not None else None
    return ", ".join(map(str, given)) if isinstance(given, list) else ""


def _where(answer: PlanView, request: Mapping[str, Any]) -> str:
    """What it would get, unless the request says so itself; the size of an elastic job is the queue's choice."""
    units = answer.get("wouldTake", {})
    config = request.get("ResourceConfig")
    said = config.get("InstanceType") if isinstance(config, dict) else None
    if len(units) != 1 or (said in units and not makes_elastic(request)):
        return ""
    return "".join(f" on {count} x {pool}" for pool, count in units.items())


def _place(answer: PlanView) -> str:
    if answer["position"] is not None:
        return f" at position {answer['position']}"
    least = answer.get("positionAtLeast")
    return f" at position {least} or later" if least is not None else ""


def _created(answer: PlanView) -> str:
    """Which pools would be made for it, and what these cost."""
    made = [f"{each['pool']} ({_size(each)})" for each in answer.get("wouldCreate", [])]
    if not made:
        none = answer.get("wouldCreateNone")
        return f"Even with expansion.enabled=true no pool would be made for it: {none}." if none else ""
    pools = f"pool{'s' if made[1:] else ''} {' and '.join(made)}"
    if answer.get("expansionEnabled"):
        return f"The manager would make the {pools} for it."
    return f"With expansion.enabled=true the manager would make the {pools} for it."


def _changed(answer: PlanView) -> str:
    """What else would become of pools that the queue made, and what all of them may cost then."""
    told = {made["pool"] for made in answer.get("wouldCreate", [])}
    changes = [each for each in answer.get("wouldChange", []) if each["pool"] not in told]
    changed = [f"{each['pool']} would be {deed(each)} ({each['before']} -> {each['after']})" for each in changes]
    dollars = answer.get("madeDollarsPerHour") or {"now": 0, "then": 0}
    then = (
        f"All pools that it made may then cost ${dollars['then']:,.2f} an hour instead of ${dollars['now']:,.2f}."
        if dollars["then"] != dollars["now"]
        else ""
    )
    return " ".join([f"{', '.join(changed)}.", then] if changed else [then]).strip()


def _size(made: Creation) -> str:
    price = made["dollarsPerHour"]
    cost = f"${price:,.2f} more an hour while in use" if price is not None else "at a price that nobody knows"
    return f"{made['instances']} x {made['instanceType']}, {cost}"


def _others(answer: PlanView, name: str) -> str:
    """Whom it would delay, and by how much; who else would start."""
    delayed = [f"{each['jobName']} by {span(each['bySeconds'])}" for each in answer.get("wouldDelay", [])]
    started = [each for each in answer.get("wouldStart", []) if each != name]
    parts = [f"It would delay {names(delayed)}."] if delayed else []
    parts += [f"With it {names(started)} would start."] if started else []
    return " ".join(parts)


def _deadline(answer: PlanView) -> str:
    """How it would stand to its deadline, where no warning says so."""
    deadline = answer.get("deadline")
    warned = deadline is not None and any(deadline["message"] in warning for warning in answer["warnings"])
    return "" if warned else deadline_sentence(answer)
