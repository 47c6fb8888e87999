"""Registers other kinds of jobs on the command line; the only module of this layer that names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from trainmaster.cli.common.parameters import expand_parameter
from trainmaster.client.kinds import TRAINING

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView, JobView

R = TypeVar("R")
PlanOptions = Mapping[str, str | None]
"""Options of `plan` that kinds of jobs add, by the name of their parameter."""


class CliKind(Protocol):
    """A kind of jobs on the command line."""

    NAME: str
    """Name of the kind."""
    SUBMIT_HELP: str
    """Sentences that the help of `submit` has about the kind."""
    PLAN_HELP: str
    """Sentences that the help of `plan` has about the kind."""
    PLAN_OPTIONS: Mapping[str, tuple[str, str]]
    """Options that `plan` has for the kind: metavar and help by name."""
    ENTRY_HINT: str
    """Hint for a request that was received and has not become a job for a long time."""
    PARTS_HEADING: str
    """Heading of the progress bars."""
    RESUME: str
    """The end of a sentence about a preempted job that starts again."""

    def recognizes(self, request: Mapping[str, Any]) -> bool:
        """Return whether this is a request for a job of this kind."""
        ...

    def name_in(self, request: Mapping[str, Any]) -> str:
        """Return the name that the job of a request will have."""
        ...

    def with_options(
        self, request: Mapping[str, Any], priority: int | None, options: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the request with the priority and the options of the command line. Raises Refused."""
        ...

    def with_plan_options(self, request: Mapping[str, Any], options: PlanOptions) -> dict[str, Any]:
        """Return the request as `POST /plan` takes it. Raises typer.BadParameter."""
        ...

    def submit(self, api: ApiClient, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Submit a request. Raises ApiError.

        The answer has the members `jobName`, `warnings` and `state`, which is "received" if the request is new.
        """
        ...

    def received_sentence(self, answer: Mapping[str, Any]) -> str:
        """Return the answer to a submission as a sentence."""
        ...

    def progress(self, job: JobView) -> str:
        """Return how much of the job's work is done, for a column of a table."""
        ...

    def parts(self, job: JobView) -> tuple[int, int]:
        """Return the number of parts of the job's work that have ended, and of all."""
        ...

    def end_sentence(self, job: JobView, now: datetime) -> str:
        """Return when a running job is expected to end; empty if nothing is expected."""
        ...

    def facts(self, job: JobDetailView, now: datetime) -> list[tuple[str, str]]:
        """Return names and values about a job."""
        ...


def cli_kinds() -> tuple[CliKind, ...]:
    """Return the kinds that this installation has."""
    if find_spec("trainmaster.images") is None:
        return ()
    from trainmaster.images.cli import kind

    return (kind,)


def kind_of_job(job: JobView) -> CliKind | None:
    """Return a job's kind; None for a training job, and for a kind that this installation lacks."""
    name = job.get("kind", TRAINING)
    return None if name == TRAINING else next((kind for kind in cli_kinds() if name == kind.NAME), None)


def kind_of_request(request: Mapping[str, Any]) -> CliKind | None:
    """Return the kind of job that a request is for; None for a training job."""
    return next((kind for kind in cli_kinds() if kind.recognizes(request)), None)


def plan_options(command: Callable[..., R]) -> Callable[..., R]:
    """Replace the command's parameter `of_kinds` by the options that kinds of jobs add to `plan`."""
    parameters = {
        name.replace("-", "_"): _parameter(name, metavar, text)
        for kind in cli_kinds()
        for name, (metavar, text) in kind.PLAN_OPTIONS.items()
    }
    return expand_parameter(command, "of_kinds", parameters, lambda **options: options)


def with_help(sentences: Callable[[CliKind], str]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that adds each kind's sentences to the help of a command."""

    def add(command: Callable[..., R]) -> Callable[..., R]:
        command.__doc__ = " ".join([(command.__doc__ or "").rstrip(), *map(sentences, cli_kinds())])
        return command

    return add


def _parameter(name: str, metavar: str, text: str) -> Parameter:
    option = typer.Option(f"--{name}", metavar=metavar, help=text)
    annotation = Annotated[str | None, option]
    return Parameter(name.replace("-", "_"), Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
