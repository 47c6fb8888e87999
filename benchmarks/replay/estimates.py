"""`python -m benchmarks.replay.estimates`: the accuracy of estimated starts, on every trace and with several orders.

    python -m benchmarks.replay.estimates                                   600 estimates for each trace and order
    python -m benchmarks.replay.estimates --trace ee9e8c --questions 2000   more estimates for one of them
    python -m benchmarks.replay.estimates --save                            save the figures, and write the pages

The estimated starts of a sample of jobs at their arrival, as `trainmaster why` reports them, are compared with the
actual starts.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import ETA_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import add_output_options, report, rewrite_pages
from benchmarks.common.table import ReportTable
from benchmarks.replay.runs import CAP, TRACES, WIDTH, Figures, Task, measured, trace
from benchmarks.replay.tables import estimates_table
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS

ORDERS = ("backfill", "fifo", "gittins")
QUESTIONS = 600


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Yield the replays to run."""
    for file in sorted(path.name.removesuffix(".csv.gz") for path in TRACES.glob("*.csv.gz")):
        for share in sorted({job.share for job in trace(file)}):
            if not options.trace or share in options.trace:
                for policy in options.policy or ORDERS:
                    yield Task(file, share, policy, options.cap, RESTART_SECONDS, questions=options.questions)


def main(arguments: list[str]) -> int:
    """Run the replays and print the accuracy; return 0."""
    options = _options(arguments)
    if rewrite_pages(options, make_tables, name="eta", marks=ETA_MARKS):
        return 0
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    asked = list(tasks(options))
    with ProgressBars(console) as progress:
        found: Figures = {"machine": machine.describe(), "runs": []}
        progress.begin("traces")
        for one in progress.over_cores(measured, asked, options.processes):
            found["runs"].append(one)
            progress.update(f"{one['vc']} {one['policy']} {one['wall_s']:.0f} s")
    report(found, make_tables(found), options, console, name="eta", marks=ETA_MARKS)
    return 0


def make_tables(found: Figures) -> list[ReportTable]:
    """Return the table."""
    return [replace(estimates_table(found["runs"]), headline=True)]


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replay.estimates", description="Measure the estimated starts."
    )
    parser.add_argument("--policy", action="append", choices=(*ORDERS, "fair"), help="only these orders")
    parser.add_argument("--trace", action="append", help="only these clusters (vc)")
    parser.add_argument("--cap", type=int, default=CAP, help="GPUs")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="number of estimated starts")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many at once")
    add_output_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
