"""`trainmaster replay`: plays a trace of jobs through the queue's own planner, to see what a policy would make of it.

It must not import the replay, which is a program of its own: it becomes that program.
"""

# ruff: noqa: ARG001 -- the options are handed on all together, from the context

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.client.api.errors import NotConfigured

MODULE = "trainmaster.local.replay"

_Trace = Annotated[
    str | None, typer.Argument(metavar="TRACE", help="A CSV file of jobs, plain or gzipped; - reads standard input.")
]
_Cap = Annotated[int | None, typer.Option(metavar="GPUS", min=1, help="How many GPUs the pool has.")]
_Policy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="fifo, backfill, least-attained-service, fair; or one that knows every duration: baseline-fifo, "
        "baseline-skip, baseline-easy, baseline-sjf, baseline-srpt. May be repeated with --compare. "
        "Without it backfill, and all of them with --compare.",
    ),
]
_Compare = Annotated[bool, typer.Option("--compare", help="Play several policies and show them beside baseline-skip.")]
_Vc = Annotated[str | None, typer.Option(metavar="NAME", help="Only jobs of this share (the column vc).")]
_Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs.")]
_RestartCost = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0, help="What it costs a preempted job to go on. Without it 300."),
]
_Eta = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Ask of about N waiting jobs when they will start, and say how right it was."
    ),
]
_Out = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Draw the queue and the Gantt chart into this directory, as SVG and PNG."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")]
_FromAccount = Annotated[
    bool, typer.Option("--from-account", help="Take the training jobs of your AWS account in the place of a TRACE.")
]
_Days = Annotated[
    float | None, typer.Option(metavar="N", min=0, help="With --from-account: of the last N days. Without it 90.")
]
_SaveTrace = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write the jobs that were read to a CSV file (.gz is gzipped).")
]


def replay(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    trace: _Trace = None,
    cap: _Cap = None,
    policy: _Policy = None,
    compare: _Compare = False,
    vc: _Vc = None,
    limit: _Limit = None,
    restart_cost: _RestartCost = None,
    eta: _Eta = None,
    out: _Out = None,
    json: _Json = False,
    from_account: _FromAccount = False,
    days: _Days = None,
    save_trace: _SaveTrace = None,
) -> None:
    """Play a trace of jobs through the queue's planner.

    The shipped passes run on a virtual clock, with the in-memory store and a simulated SageMaker: nothing is started,
    and no queue is needed. It shows completion times, waits, utilisation, and what preemption costs.
    """
    tools = tools_of(context)
    if out is not None and not tools.installed("matplotlib"):
        raise NotConfigured(
            "Pictures need a package that is not installed (matplotlib).",
            type="NotInstalled",
            hint='`pip install "trainmaster[replay]"` installs it.',
        )
    account = {"region": tools.where.region, "profile": tools.where.profile}
    options = {name: value for name, value in context.params.items() if name != "trace"}
    # Behind `--` a file may have any name.
    file = [] if trace is None else ["--", trace]
    tools.become([sys.executable, "-m", MODULE, *_arguments(options | account), *file])


def _arguments(options: Mapping[str, Any]) -> Iterator[str]:
    """The options that were given, as one writes them."""
    for name, value in sorted(options.items()):
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif isinstance(value, list | tuple):
            yield from (f"{option}={each}" for each in value)
        elif value is not None and value is not False:
            yield f"{option}={value}"
