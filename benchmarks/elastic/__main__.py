"""`python -m benchmarks.elastic`: replays with elastic jobs under the shipped queue and the papers' allocations.

    python -m benchmarks.elastic                                         every trace, curve, cost and hook
    python -m benchmarks.elastic --trace ee9e8c --curve linear --cost 5  some of it
    python -m benchmarks.elastic --policy pollux-style --json some.json  some policies; write the figures
    python -m benchmarks.elastic --resume runs.jsonl                     continue after Ctrl-C, without these runs
    python -m benchmarks.elastic --save                                  save the figures, and write the pages

Each core replays one trace with one policy, curve and cost at a time.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import ELASTIC_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import RESULTS, add_output_options, report, rewrite_pages
from benchmarks.elastic.pictures import draw
from benchmarks.elastic.runs import (
    ORDERS,
    PAPER_POLICIES,
    POLICIES,
    SHIPPED,
    TRACES,
    Task,
    measured,
    save_run,
    saved_runs,
    trace,
)
from benchmarks.elastic.tables import make_tables
from benchmarks.elastic.workload import CURVES
from trainmaster.domain.elastic.sizes import Hook

NAMED = ("ee9e8c", "cluster02", "7f04ca")
"""Loads of 0.91, 0.67 and 0.49 on 128 GPUs; elasticity matters where jobs wait or GPUs are idle."""
COSTS = (5.0, 300.0)
HOOKS = (Hook.RESTART.value, Hook.MEMBERS.value)
CAP, RESTART_SECONDS = 128, 300.0
WIDTH = 200
"""Columns of tables in a file or a pipe."""


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Yield the replays to run: those of the queue first, which take longest."""
    places = [
        (file, share)
        for file in sorted(path.name.removesuffix(".csv.gz") for path in TRACES.glob("*.csv.gz"))
        for share in sorted({job.share for job in trace(file)} & set(options.trace))
    ]
    rest = (options.cap, options.restart_cost, options.seed, options.limit, options.reports)
    wanted = [policy for policy in POLICIES if policy in options.policy]
    for policy in sorted(wanted, key=lambda policy: policy in PAPER_POLICIES):
        hooks = [Hook(hook) for hook in options.hook] if policy in SHIPPED else [None]
        cases = [(None, None, None)] if policy in ORDERS else list(product(options.curve, options.cost, hooks))
        for (file, share), case in product(places, cases):
            yield Task(file, share, policy, *case, *rest)


def run_all(options: argparse.Namespace, progress: ProgressBars) -> list[dict[str, Any]]:
    """Run every task, in parallel; runs in the file `options.resume` are skipped."""
    ordered, runs = list(tasks(options)), dict(saved_runs(options.resume))
    progress.begin("elastic")
    left = [task for task in ordered if task not in runs]
    for task, one in zip(left, progress.over_cores(measured, left, options.processes), strict=True):
        progress.update(f"{one['vc']} {one['policy']} {one['wall_s']:.0f} s")
        runs[task] = one
        save_run(options.resume, task, one)
    return sorted((runs[task] for task in ordered), key=_place)


def _place(one: dict[str, Any]) -> tuple[str, int, str, float, str]:
    return one["vc"], POLICIES.index(one["policy"]), one["curve"] or "", one["resize_cost"] or 0.0, one["hook"] or ""


def main(arguments: list[str]) -> int:
    """Run the selected replays; return 0."""
    options = _options(arguments)
    if rewrite_pages(options, make_tables, name="elastic", marks=ELASTIC_MARKS):
        return 0
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    terms = {name: getattr(options, name) for name in ("cap", "restart_cost", "seed", "limit", "reports")}
    with ProgressBars(console) as progress:
        found: dict[str, Any] = {
            "machine": machine.describe(),
            "options": terms,
            "runs": run_all(options, progress),
        }
    pictures = lambda: draw(found["runs"], options.cap, RESULTS / "elastic")  # noqa: E731 -- one line
    report(found, make_tables(found), options, console, name="elastic", marks=ELASTIC_MARKS, draw=pictures)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.elastic", description="Replay traces with elastic jobs."
    )
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only these")
    parser.add_argument("--trace", action="append", help=f"these clusters (vc); else {', '.join(NAMED)}")
    parser.add_argument("--curve", action="append", choices=tuple(CURVES), help="how jobs get faster with size")
    parser.add_argument("--cost", action="append", type=float, help="seconds that a resize costs")
    parser.add_argument("--cap", type=int, default=CAP, help="GPUs")
    parser.add_argument("--restart-cost", type=float, default=RESTART_SECONDS, help="seconds, after a preemption")
    parser.add_argument("--seed", type=int, default=0, help="which jobs are elastic, and ElasticFlow's deadlines")
    parser.add_argument("--limit", type=int, help="only the first so many jobs of a trace")
    parser.add_argument("--hook", action="append", choices=HOOKS, help="how the queue resizes jobs")
    parser.add_argument("--no-reports", dest="reports", action="store_false", help="workers report no speeds")
    parser.add_argument("--resume", type=Path, help="append each run to this file, and skip the runs that it has")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many at once")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name, default in (
        ("policy", POLICIES),
        ("trace", NAMED),
        ("curve", tuple(CURVES)),
        ("cost", COSTS),
        ("hook", HOOKS),
    ):
        setattr(options, name, getattr(options, name) or list(default))
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
