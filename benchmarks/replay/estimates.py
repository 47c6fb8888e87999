"""`python -m benchmarks.replay.estimates`: how right the estimated starts are, on every trace and under several orders.

    python -m benchmarks.replay.estimates                                   600 questions for each trace and order
    python -m benchmarks.replay.estimates --trace ee9e8c --questions 2000   more of one of them
    python -m benchmarks.replay.estimates --save                            save the figures, and write the pages

Every so many'th job is asked about on its arrival, as `trainmaster why` asks, and what it was told is held against when
it really started. It must not know how a start is estimated.
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
from benchmarks.common.progress import Watch
from benchmarks.common.results import add_output_options, report, rewrite_pages
from benchmarks.common.table import ReportTable
from benchmarks.replay.runs import CAP, TRACES, WIDTH, Figures, Task, measured, trace
from benchmarks.replay.tables import foretold
from trainmaster.local.replay.queue import RESTART_SECONDS

ORDERS = ("backfill", "fifo", "least-attained-service")
QUESTIONS = 600


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """What is to be played."""
    for file in sorted(path.name.removesuffix(".csv.gz") for path in TRACES.glob("*.csv.gz")):
        for share in sorted({job.share for job in trace(file)}):
            if not options.trace or share in options.trace:
                for policy in options.policy or ORDERS:
                    yield Task(file, share, policy, options.cap, RESTART_SECONDS, questions=options.questions)


def main(arguments: list[str]) -> int:
    """Ask, and show how right the answers were; 0 when all of it ran."""
    options = _options(arguments)
    if rewrite_pages(options, make_tables, name="eta", marks=ETA_MARKS):
        return 0
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    asked = list(tasks(options))
    with Watch(console) as watch:
        found: Figures = {"machine": machine.describe(), "runs": []}
        watch.begin("traces")
        for one in watch.over_cores(measured, asked, options.processes):
            found["runs"].append(one)
            watch.say(f"{one['vc']} {one['policy']} {one['wall_s']:.0f} s")
    report(found, make_tables(found), options, console, name="eta", marks=ETA_MARKS)
    return 0


def make_tables(found: Figures) -> list[ReportTable]:
    """The one that there is."""
    return [replace(foretold(found["runs"]), headline=True)]


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replay.estimates", description="Measure the estimated starts."
    )
    parser.add_argument("--policy", action="append", choices=(*ORDERS, "fair"), help="only these orders")
    parser.add_argument("--trace", action="append", help="only these clusters (vc)")
    parser.add_argument("--cap", type=int, default=CAP, help="GPUs")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of about how many jobs it is asked")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many at once")
    add_output_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
