"""`trainmaster plan`: what would happen to a request if it were submitted now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from trainmaster.cli.options import File, Json, Options, Priority
from trainmaster.cli.render import as_json, text_of, warn
from trainmaster.cli.request import options_of, read_request, with_tags
from trainmaster.cli.times import told, with_moments
from trainmaster.cli.tools import tools_of

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.views import PlanView


def plan(
    context: typer.Context, file: File, priority: Priority = None, option: Options = None, json: Json = False
) -> None:
    """Say what a request would come to.

    The queue answers what would happen if it were submitted now, with the same checks; nothing is stored.
    """
    request = with_tags(read_request(file), priority, options_of(option or ()))
    tools = tools_of(context)
    with tools.api() as api:
        answer = api.plan(request)
    typer.echo(as_json(answer) if json else _told(answer, tools.now()))
    warn(answer["warnings"])


def _told(answer: PlanView, now: datetime) -> str:
    start = answer["estimatedStart"]
    reason = with_moments(text_of(answer["reason"]), now)
    where = f" at position {answer['position']}" if answer["position"] is not None else ""
    lines = {
        "start": "It would start at once.",
        "preempt": f"It would preempt {', '.join(answer['wouldPreempt'])} and start in the freed capacity.",
        "wait": f"It would wait{where}: {reason.rstrip('.')}.",
    }
    latest = f" It would start at the latest at {told(start, now)}." if start else ""
    return lines[answer["decision"]] + (latest if answer["decision"] != "start" else "")
