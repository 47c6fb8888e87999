"""The options of elastic jobs on the command line, once for all commands that take them.

It must not check what they say together: the queue does, the same for every client.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from trainmaster.client.sdk.elastic import ElasticOptions

R = TypeVar("R")
_SPAN = "DURATION"
_HELP: dict[str, tuple[str, str]] = {
    "max-instances": (
        "N",
        "Make the job elastic: it may grow to so many instances. This and the following set the tags of their names.",
    ),
    "min-instances": ("N", "It starts with so many, and never has fewer; without it as many as the request has."),
    "instance-step": ("N", "Its sizes are so many instances apart."),
    "instance-values": ("N,N,...", "All its sizes, instead of a step: 2,4,8; makes it elastic by itself."),
    "resize-by": ("HOW", "How its size is changed: restart, members or custom."),
    "resize-target": ("ARN", "Who changes it, for custom: a Lambda function, or `event`."),
    "scaling-timeout": (_SPAN, "It grows only once its size has stayed as it is for so long."),
    "graceful-shutdown-timeout": (_SPAN, "Time to save and leave before force."),
    "faulty-scale-down-timeout": (_SPAN, "Wait for a replacement of a lost instance before it shrinks."),
    "scale-up-snooze": (_SPAN, "It does not grow for so long after a restart."),
    "max-restarts": ("N", "Restarts for failures within the period that it survives."),
    "eval-period": (_SPAN, "The window that restarts are counted in."),
    "max-total-restarts": ("N", "Restarts in all that it survives."),
    "restarts-before-full": ("N", "After so many within the period the next one is a new attempt."),
    "max-full-restarts": ("N", "More of those within the period fail the job."),
}
_LEAST = {"max-restarts": 0, "max-total-restarts": 0, "max-full-restarts": 0}


def elastic_options(command: Callable[..., R]) -> Callable[..., R]:
    """The command with these options in the place of its parameter `elastic`, which gets them all as one value."""
    signature = inspect.signature(command, eval_str=True)
    own = {name.replace("-", "_"): _parameter(name) for name in _HELP}

    @functools.wraps(command)
    def run(*args: Any, **given: Any) -> R:
        sizes = {name: given.pop(name) for name in own if name in given}
        return command(*args, **given, elastic=ElasticOptions(**sizes))

    # typer takes a command's options from its signature, and must not look behind this one.
    del run.__wrapped__
    run.__annotations__ = {}
    shown: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        shown += own.values() if each.name == "elastic" else [each]
    run.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return run


def _parameter(name: str) -> inspect.Parameter:
    metavar, told = _HELP[name]
    kind = int if metavar == "N" else str
    least = _LEAST.get(name, 1) if kind is int else None
    option = typer.Option(f"--{name}", metavar=metavar, help=told, min=least)
    own = name.replace("-", "_")
    return inspect.Parameter(
        own, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )
