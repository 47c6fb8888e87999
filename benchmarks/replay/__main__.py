"""`python -m benchmarks.replay`: replays every trace under the shipped orders and the reference policies.

    python -m benchmarks.replay                                       every trace, 128 and 64 GPUs, and a small pool
    python -m benchmarks.replay --policy backfill --trace ee9e8c      some of them; the references always run
    python -m benchmarks.replay --cap 96 --restart-cost 120           other settings
    python -m benchmarks.replay --resume runs.jsonl                   continue after Ctrl-C; skip the runs in the file
    python -m benchmarks.replay --json figures.json                   write the figures
    python -m benchmarks.replay --save                                save the figures, and write the pages

Each core replays one trace under one policy at a time. Each run names its commit, since a file of `--resume` can have
runs of several. The replay of 15,000 jobs is not among them: it is about time.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import REPLAY_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import add_output_options, report, rewrite_pages
from benchmarks.replay.runs import (
    CAP,
    SMALLER_CAP,
    TRACES,
    WIDTH,
    Figures,
    Task,
    measured,
    save_run,
    saved_runs,
    small_pool,
    trace,
)
from benchmarks.replay.tables import REFERENCES, make_tables
from trainmaster.local.replay.reference_policies import REFERENCE_POLICIES
from trainmaster.local.replay.runs import POLICIES
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS

SHIPPED = ("backfill", "gittins")
SPEED_JOBS = 15_000
SPEED_TRACE = "philly_2017"
QUESTIONS = 200


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Yield the replays to run."""
    for file in sorted(path.name.removesuffix(".csv.gz") for path in TRACES.glob("*.csv.gz")):
        for share in sorted({job.share for job in trace(file)}):
            if not options.trace or share in options.trace:
                for policy in dict.fromkeys((*options.policy, *REFERENCES)):
                    asked = 0 if policy in REFERENCE_POLICIES else options.eta
                    for cap in options.cap:
                        yield Task(file, share, policy, cap, options.restart_cost, questions=asked)
                    yield from small_pool(file, share, policy, options.restart_cost, asked)


def run_all(options: argparse.Namespace, progress: ProgressBars) -> list[Figures]:
    """Run every task in parallel, the longest first."""
    size = {(file, share): sum(job.share == share for job in trace(file)) for file, share in _places(options)}
    ordered = sorted(
        tasks(options), key=lambda task: (task.policy.startswith("baseline"), -size[task.file, task.share])
    )
    progress.begin("traces")
    found = dict(saved_runs(options.resume))
    left = [task for task in ordered if task not in found]
    for task, one in zip(left, progress.over_cores(measured, left, options.processes), strict=True):
        progress.update(f"{one['vc']} {one['policy']} {one['wall_s']:.0f} s")
        found[task] = one
        save_run(options.resume, task, one)
    runs = [found[task] for task in ordered]
    return sorted(runs, key=lambda one: (-one["cap"], one["trace"], one["vc"], POLICIES.index(one["policy"])))


def _places(options: argparse.Namespace) -> set[tuple[str, str | None]]:
    return {(task.file, task.share) for task in tasks(options)}


def speeds(options: argparse.Namespace, progress: ProgressBars) -> list[Figures]:
    """Replay 15,000 jobs as one trace, without parallel replays."""
    progress.begin("speed")
    wanted = [Task(SPEED_TRACE, None, policy, options.cap[0], options.restart_cost, SPEED_JOBS) for policy in SHIPPED]
    return [measured(task) for task in progress.over(wanted)]


def main(arguments: list[str]) -> int:
    """Run the selected replays; return 0."""
    options = _options(arguments)
    if rewrite_pages(options, make_tables, name="replay", marks=REPLAY_MARKS):
        return 0
    logging.disable(logging.CRITICAL)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    with ProgressBars(console) as progress:
        found: Figures = {
            "machine": machine.describe(),
            "options": {"cap": options.cap[0], "restart_cost": options.restart_cost},
            "speed": [] if options.no_speed else speeds(options, progress),
            "runs": run_all(options, progress),
        }
    report(found, make_tables(found), options, console, name="replay", marks=REPLAY_MARKS)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description="Replay real traces.")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only these, and the references")
    parser.add_argument("--trace", action="append", help="only these clusters (vc)")
    parser.add_argument("--cap", type=int, action="append", help="GPUs; several times for several pools")
    parser.add_argument("--restart-cost", type=float, default=RESTART_SECONDS, help="seconds")
    parser.add_argument("--eta", type=int, default=QUESTIONS, help="number of jobs whose estimated start is recorded")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many at once")
    parser.add_argument("--resume", type=Path, help="append each run to this file, and skip the runs that it has")
    parser.add_argument("--no-speed", action="store_true", help="omit the replay of 15,000 jobs")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    options.policy = options.policy or list(SHIPPED)
    options.cap = options.cap or [CAP, SMALLER_CAP]
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
