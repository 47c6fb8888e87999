"""`trainmaster version` and `trainmaster --version`: the versions of this client and of the service."""

from __future__ import annotations

import contextlib
from threading import Thread
from typing import TYPE_CHECKING, Any

import typer

from trainmaster import __version__
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.explanation import pause_sentence
from trainmaster.cli.output.render import as_json
from trainmaster.client.api.config import ID_VARIABLE, STACK_VARIABLE, URL_VARIABLE
from trainmaster.domain.release import service_problem
from trainmaster.domain.text import one_line, sanitize

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext

QUICK_SECONDS = 3.0
"""Seconds that `--version` waits for the service."""


def version(context: typer.Context, json: Json = False) -> None:
    """Show the versions of this client and of the service, and whether they work together.

    A pause of the manager is shown, too.
    """
    cli = cli_context(context)
    with cli.api() as api:
        paused = sanitize(api.manager())["pause"]
        found = _report(api.service_version)
    lines = [*_lines(found), *([pause_sentence(paused, cli.now())] if paused else [])]
    typer.echo(as_json(found) if json else "\n".join(lines))


def quick_lines(cli: CliContext, seconds: float = QUICK_SECONDS) -> list[str]:
    """Return lines about the service for `--version`; none if no address is configured or nothing answers in time."""
    if not _has_address(cli):
        return []
    answers: list[str | None] = []
    # A daemon ends with the process: the search for credentials alone can take longer than a person waits.
    asking = Thread(target=_ask, args=(cli, answers), daemon=True)
    asking.start()
    asking.join(seconds)
    return _lines(_report(answers[0]))[1:] if answers and answers[0] else []


def _has_address(cli: CliContext) -> bool:
    target = cli.target
    given = (target.api_url, target.api_id, target.stack)
    return any(given) or any(cli.environ.get(name) for name in (URL_VARIABLE, ID_VARIABLE, STACK_VARIABLE))


def _ask(cli: CliContext, answers: list[str | None]) -> None:
    with contextlib.suppress(Exception), cli.api() as api:
        # Refusals have the service's version too.
        with contextlib.suppress(Exception):
            api.manager()
        answers.append(api.service_version)


def _report(service: str | None) -> dict[str, Any]:
    problem = None if service is None else service_problem(service, __version__)
    known = None if service is None else one_line(service)
    return {"client": __version__, "service": known, "compatible": known and problem is None, "problem": problem}


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"client {found['client']}", f"service {found['service'] or 'unknown'}"]
    if found["service"]:
        lines.append(one_line(found["problem"]) if found["problem"] else "Client and service work together.")
    return lines
