"""`trainmaster why`: explains a job's state in one paragraph."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.output.explanation import explanation, pause_sentence
from trainmaster.cli.output.render import as_json, terminal_width
from trainmaster.domain.compat import UTC
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import ManagerPauseView

_MEMBERS = (
    *("jobName", "jobState", "priority", "position", "positionAtLeast", "reason", "deadline", "why", "elastic"),
    *("kind", "details"),
    *("estimatedStart", "estimatedStartLow", "estimatedStartHigh"),
)
_WIDEST = 100
_STARTS_LATER = ("pending", "preempted")


def why(context: typer.Context, name: Name, json: Json = False) -> None:
    """Explain why a job waits, when it is likely to start and what would help; for other jobs, explain their state.

    The start comes from running the planner forward, with the run times of similar jobs. Each suggestion was verified
    by re-planning the current queue.
    """
    cli = cli_context(context)
    with cli.api() as api:
        job = api.job(name, why=True)
        pause = _pause(api) if job["jobState"] in _STARTS_LATER else None
    now = cli.now().astimezone(UTC) if json else cli.now()
    text = explanation(sanitize(job), now)
    if pause is not None:
        text = f"{text} {pause_sentence(sanitize(pause), now)}"
    if json:
        members = {key: value for key, value in job.items() if key in _MEMBERS}
        typer.echo(as_json(members | {"explanation": text}))
    elif cli.is_terminal(sys.stdout):
        typer.echo(textwrap.fill(text, min(terminal_width(), _WIDEST), break_on_hyphens=False, break_long_words=False))
    else:
        typer.echo(text)


def _pause(api: ApiClient) -> ManagerPauseView | None:
    """Return the manager's pause, if there is one that the caller may see."""
    from trainmaster.client.api.errors import Forbidden, NotFound

    try:
        return api.manager()["pause"]
    except (Forbidden, NotFound):  # an older service has no such route
        return None
