"""`python -m benchmarks.console`: measures the console's pages and polls over a small and a large queue.

python -m benchmarks.console                          10 running and 100 waiting jobs, then 1,000 and 10,000
python -m benchmarks.console --sizes 10:100           one size
python -m benchmarks.console --save                   save the figures in benchmarks/results, and write the pages
"""

from __future__ import annotations

import argparse
import logging
import sys
from typing import Any

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import CONSOLE_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import add_output_options, report, rewrite_pages
from benchmarks.console.measuring import measure
from benchmarks.console.tables import make_tables

SIZES = ((10, 100), (1_000, 10_000))
WIDTH = 180
"""Columns of tables in a file or a pipe."""


def main(arguments: list[str]) -> int:
    """Measure every size, and return 0."""
    options = _options(arguments)
    if rewrite_pages(options, make_tables, name="console", marks=CONSOLE_MARKS):
        return 0
    logging.disable(logging.CRITICAL)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    with ProgressBars(console) as progress:
        found: dict[str, Any] = {"machine": machine.describe(), "sizes": []}
        progress.begin("console")
        for running, waiting in progress.over(options.sizes):
            found["sizes"].append(measure(running, waiting, progress.prefixed(f"{running:,} running")))
    report(found, make_tables(found), options, console, name="console", marks=CONSOLE_MARKS)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description="Measure the console.")
    sizes = "running and waiting jobs, such as 10:100,1000:10000; the first is the one to compare with"
    parser.add_argument("--sizes", type=_sizes, default=list(SIZES), help=sizes)
    add_output_options(parser)
    return parser.parse_args(arguments)


def _sizes(text: str) -> list[tuple[int, int]]:
    return [(int(running), int(waiting)) for running, waiting in (each.split(":") for each in text.split(","))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
