"""`trainmaster replay`: replaces itself with the replay, a program of its own."""

# ruff: noqa: ARG001 -- the options are passed on together, from the context

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.client.api.errors import NotConfigured

MODULE = "trainmaster.local.replay"

_Trace = Annotated[
    str | None,
    typer.Argument(
        metavar="TRACE",
        help="A CSV file of jobs with the columns submit_time_s, duration_s and num_gpus, or the output of Slurm's "
        "sacct --parsable2; plain or gzipped. - reads standard input.",
    ),
]
_Cap = Annotated[int | None, typer.Option(metavar="GPUS", min=1, help="Number of GPUs of the pool.")]
_Policy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="fifo, backfill, gittins, fair; or a baseline that knows every duration: baseline-fifo, "
        "baseline-skip, baseline-easy, baseline-sjf, baseline-srpt. May be repeated with --compare. "
        "Default: backfill; all policies with --compare.",
    ),
]
_Compare = Annotated[bool, typer.Option("--compare", help="Compare several policies with baseline-skip.")]
_Vc = Annotated[str | None, typer.Option(metavar="NAME", help="Only jobs of this share (the column vc).")]
_Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs.")]
_RestartCost = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0, help="Time that a preempted job loses when it resumes. Default: 300."),
]
_GuaranteedLane = Annotated[
    float | None,
    typer.Option(
        metavar="PART",
        min=0,
        max=1,
        help="With gittins, the part of the GPUs for the jobs of 8 GPUs and more that waited longest. Default: 0.",
    ),
]
_Eta = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Estimate the starts of at most N jobs, evenly spaced in the trace, as they arrive; report the accuracy.",
    ),
]
_Out = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Write charts of the queue and a Gantt chart to this directory, as SVG and PNG."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the results as one JSON object.")]
_FromAccount = Annotated[
    bool, typer.Option("--from-account", help="Replay the training jobs of your AWS account instead of a TRACE.")
]
_Days = Annotated[
    float | None, typer.Option(metavar="N", min=0, help="With --from-account, jobs of the last N days. Default: 90.")
]
_SaveTrace = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write the selected jobs to a CSV file (.gz compresses it); - writes to standard output, without --cap.",
    ),
]


def replay(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    trace: _Trace = None,
    cap: _Cap = None,
    policy: _Policy = None,
    compare: _Compare = False,
    vc: _Vc = None,
    limit: _Limit = None,
    restart_cost: _RestartCost = None,
    guaranteed_lane: _GuaranteedLane = None,
    eta: _Eta = None,
    out: _Out = None,
    json: _Json = False,
    from_account: _FromAccount = False,
    days: _Days = None,
    save_trace: _SaveTrace = None,
) -> None:
    """Replay a trace of jobs through the queue's planner.

    The passes run on a virtual clock, with the in-memory store and a simulated SageMaker: the command starts nothing
    and needs no queue. It reports completion times, waiting times, utilization and the cost of preemption.
    """
    cli = cli_context(context)
    if out is not None and not cli.is_installed("matplotlib"):
        raise NotConfigured(
            "Charts need a package that is not installed (matplotlib).",
            type="NotInstalled",
            hint='`pip install "trainmaster[replay]"` installs it.',
        )
    account = {"region": cli.target.region, "profile": cli.target.profile}
    options = {name: value for name, value in context.params.items() if name != "trace"}
    # After `--`, a file may have any name.
    file = [] if trace is None else ["--", trace]
    cli.exec_program([sys.executable, "-m", MODULE, *_arguments(options | account), *file])


def _arguments(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that were set, in command-line form."""
    for name, value in sorted(options.items()):
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif isinstance(value, list | tuple):
            yield from (f"{option}={item}" for item in value)
        elif value is not None and value is not False:
            yield f"{option}={value}"
