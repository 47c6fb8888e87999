"""The commands of the program, each imported when it is called or its own help is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import typer
from typer.main import get_command

from trainmaster.cli.examples import add_examples

# Without this, click takes `-5` for an option; the number is still validated.
_NEGATIVE_NUMBERS: Final[Mapping[str, Any]] = {"ignore_unknown_options": True}
_FORWARD_ALL: Final[Mapping[str, Any]] = {"ignore_unknown_options": True, "allow_extra_args": True}


class Place(NamedTuple):
    """The definition of a command.

    Attributes:
        module: module below `trainmaster.cli`.
        attribute: the function, or the typer program of a command with commands of its own.
        summary: the first line of the command's help, which the program's help has without importing the command.
        context: settings of click's context.
    """

    module: str
    attribute: str
    summary: str
    context: Mapping[str, Any] = MappingProxyType({})


PLACES: Final[Mapping[str, Place]] = {
    "submit": Place("jobs.submit", "submit", "Submit a job to the queue."),
    "ls": Place("jobs.ls", "ls", "List unfinished jobs by priority."),
    "show": Place("jobs.show", "show", "Show a job with its attempts and its history."),
    "why": Place(
        "jobs.why",
        "why",
        "Explain why a job waits, when it is likely to start and what would help; for other jobs, explain their state.",
    ),
    "logs": Place("jobs.logs", "logs", "Print the logs of a job, attempt by attempt, from CloudWatch Logs."),
    "wait": Place("jobs.wait", "wait", "Wait until jobs have ended, and show their progress."),
    "cancel": Place("jobs.cancel", "cancel", "Cancel waiting jobs, and stop running jobs for good."),
    "hold": Place("jobs.hold", "hold", "Hold waiting jobs until they are released."),
    "release": Place("jobs.hold", "release", "Release held jobs."),
    "resized": Place("jobs.resized", "resized", "Report that a custom resize is done or refused."),
    "purge": Place("jobs.purge", "purge", "Delete ended jobs with their requests and their histories."),
    "priority": Place("jobs.priority", "priority", "Change the priority of a job.", _NEGATIVE_NUMBERS),
    "scale": Place("jobs.scale", "scale", "Change the size bounds of an elastic job."),
    "audit": Place("queue.audit", "audit", "List who changed jobs, settings and pools, newest first."),
    "export": Place("queue.export", "export", "Write settings, pools, and waiting and held jobs as a JSON document."),
    "import": Place("queue.export", "import_", "Import settings, pools and jobs from an export."),
    "pause": Place("queue.manager", "pause", "Pause the manager: no pass begins, and events are ignored."),
    "resume": Place("queue.manager", "resume", "Resume the manager."),
    "restore": Place(
        "queue.manager",
        "restore",
        "Compare a restored table with SageMaker, adopt the differences, and resume the manager.",
    ),
    "version": Place(
        "queue.versions",
        "version",
        "Show the versions of this client and of the service, and whether they work together.",
    ),
    "doctor": Place(
        "deployment.doctor",
        "doctor",
        "Examine the queue: address, credentials, permissions, quotas, alarms, versions.",
    ),
    "deploy": Place("deployment.deploy", "deploy", "Deploy the queue to your AWS account, or change its parameters."),
    "upgrade": Place(
        "deployment.upgrade", "upgrade", "Deploy the installed release to the stack, with its present parameters."
    ),
    "uninstall": Place("deployment.uninstall", "uninstall", "Delete the stack of the queue, and say what stays."),
    "plan": Place("jobs.plan", "plan", "Show what would happen if a request were submitted now."),
    "sweep": Place("sweeps.commands", "app", "Submit sweeps of hyperparameters, and show and cancel their trials."),
    "exec": Place("exec", "exec_", "Run a command whose training jobs go to the queue."),
    "console": Place("console", "console", "Open the queue's console in the browser."),
    "exporter": Place("exporter", "exporter", "Serve the queue's state to Prometheus."),
    "replay": Place("replay", "replay", "Replay a trace of jobs through the queue's planner."),
    "demo": Place("demo", "demo", "Run a demo of the queue on this machine.", _FORWARD_ALL),
    "pools": Place("queue.pools", "app", "Show, set, drain and remove pools."),
    "schedule": Place(
        "reports.schedule",
        "schedule",
        "Show past attempts, running jobs until their expected ends, and planned starts, by pool.",
    ),
    "shares": Place(
        "reports.shares", "shares", "Show what each share owns, uses, lends and borrows, with its usage and its budget."
    ),
    "usage": Place(
        "reports.usage",
        "usage",
        "Report what shares, pools or users used in a period, what it cost, and how long jobs waited.",
    ),
    "top": Place(
        "reports.top",
        "top",
        "Show the live queue on the whole terminal: pools, then unfinished jobs as in `trainmaster ls`.",
    ),
    "settings": Place("queue.settings", "app", "Show or change the settings."),
}


class Commands(MutableMapping[str, Any]):
    """Commands of click by name; those of PLACES are imported at first use.

    `others` are further ones, already built.
    """

    def __init__(self, others: MutableMapping[str, Any]) -> None:
        self._built: dict[str, Any] = dict(others)
        self._names = [*PLACES, *(name for name in others if name not in PLACES)]

    def __getitem__(self, name: str) -> Any:
        """Return the command, imported if it was not yet. Raises KeyError."""
        if name not in self._built:
            self._built[name] = _command(name, PLACES[name])
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        """Add a command, or replace it."""
        self._built[name] = command
        self._names += [name] if name not in self._names else []

    def __delitem__(self, name: str) -> None:
        """Remove a command. Raises ValueError."""
        self._names.remove(name)
        self._built.pop(name, None)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a command, without importing it."""
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, without importing the commands."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(self._names)

    def rows(self) -> list[tuple[str, str]]:
        """Return each command's name and the first line of its help, without importing those of PLACES."""
        return [(name, PLACES[name].summary if name in PLACES else self[name].help or "") for name in self]


def _command(name: str, place: Place) -> Any:
    """Import a command and build it for click."""
    found = getattr(import_module(f"trainmaster.cli.{place.module}"), place.attribute)
    program = found if isinstance(found, typer.Typer) else typer.Typer(add_completion=False, rich_markup_mode=None)
    if program is not found:
        program.command(name=name, context_settings=dict(place.context))(found)
    command = get_command(program)
    command.name = name
    add_examples(name, command)
    return command
