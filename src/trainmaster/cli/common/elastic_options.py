"""Command-line options of elastic jobs. The queue validates their combination."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from trainmaster.cli.common.parameters import expand_parameter
from trainmaster.client.sdk.elastic import ElasticOptions

R = TypeVar("R")
_DURATION = "DURATION"
_HELP: dict[str, tuple[str, str]] = {
    "max-instances": (
        "N",
        "Make the job elastic, with at most N instances. This and the following options set the tags of their names.",
    ),
    "min-instances": ("N", "Minimum and initial number of instances. Default: the request's instance count."),
    "instance-step": ("N", "Difference between two sizes, in instances."),
    "instance-values": ("N,N,...", "All sizes, instead of a step: 2,4,8. Makes the job elastic by itself."),
    "resize-by": ("HOW", "How to resize the job: restart, members or custom."),
    "resize-target": ("ARN", "Target of custom resizes: a Lambda function, or `event`."),
    "scaling-timeout": (_DURATION, "Minimum time at one size before the job grows."),
    "graceful-shutdown-timeout": (_DURATION, "Time to save and exit before SageMaker stops it."),
    "faulty-scale-down-timeout": (
        _DURATION,
        "Time to wait for a replacement of a lost instance before the job shrinks.",
    ),
    "scale-up-snooze": (_DURATION, "Time after a restart in which the job does not grow."),
    "max-restarts": ("N", "Maximum restarts for failures within the period."),
    "eval-period": (_DURATION, "Period in which restarts are counted."),
    "max-total-restarts": ("N", "Maximum restarts over the job's lifetime."),
    "restarts-before-full": ("N", "Restarts within the period after which the next one is a new attempt."),
    "max-full-restarts": ("N", "Maximum new attempts within the period before the job fails."),
}
NAMES = frozenset(_HELP)
_MINIMUM = {"max-restarts": 0, "max-total-restarts": 0, "max-full-restarts": 0}


def elastic_options(command: Callable[..., R]) -> Callable[..., R]:
    """Replace the command's parameter `elastic` by these options, which the command receives as one value."""
    parameters = {name.replace("-", "_"): _parameter(name) for name in _HELP}
    return expand_parameter(command, "elastic", parameters, ElasticOptions)


def _parameter(name: str) -> inspect.Parameter:
    metavar, text = _HELP[name]
    kind = int if metavar == "N" else str
    minimum = _MINIMUM.get(name, 1) if kind is int else None
    option = typer.Option(f"--{name}", metavar=metavar, help=text, min=minimum)
    variable = name.replace("-", "_")
    return inspect.Parameter(
        variable, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )
