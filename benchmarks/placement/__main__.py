"""`python -m benchmarks.placement`: the experiments of Liu et al. for each placement policy.

    python -m benchmarks.placement                              everything, 30 seeds
    python -m benchmarks.placement --only gangs --nodes 4,40    some of it
    python -m benchmarks.placement --seeds 5 --json some.json   fewer seeds; write the figures
    python -m benchmarks.placement --resume runs.jsonl          continue after Ctrl-C, without the runs in this file
    python -m benchmarks.placement --save                       save the figures, and write the pages

Each core runs one cell, policy and seed at a time.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import PLACEMENT_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import RESULTS, add_output_options, report, rewrite_pages
from benchmarks.placement import expansion
from benchmarks.placement.experiments import EXPERIMENTS, NODES, POLICIES
from benchmarks.placement.pictures import draw
from benchmarks.placement.runs import measure
from benchmarks.placement.tables import make_tables

SEEDS = 30
WIDTH = 200
"""Columns of tables in a file or a pipe."""


def main(arguments: list[str]) -> int:
    """Run the selected experiments; return 0."""
    options = _options(arguments)
    if rewrite_pages(options, make_tables, name="placement", marks=PLACEMENT_MARKS):
        return 0
    logging.disable(logging.CRITICAL)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    with ProgressBars(console) as progress:
        found: dict[str, Any] = {
            "machine": machine.describe(),
            "options": {"seeds": options.seeds, "nodes": options.nodes},
            "expansion": expansion.measure(),
            "cells": measure(options, progress),
        }
    pictures = lambda: draw(found["cells"], RESULTS / "placement")  # noqa: E731 -- one line
    report(found, make_tables(found), options, console, name="placement", marks=PLACEMENT_MARKS, draw=pictures)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement", description="Compare placement policies.")
    parser.add_argument("--only", type=_experiments, default=list(EXPERIMENTS), help=f"some of {','.join(EXPERIMENTS)}")
    parser.add_argument("--nodes", type=_numbers, default=list(NODES), help="numbers of nodes, such as 4,40")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only these")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many at once")
    parser.add_argument("--resume", type=Path, help="append each run to this file, and skip the runs that it has")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    options.policy = options.policy or list(POLICIES)
    return options


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _experiments(text: str) -> list[str]:
    wanted = [part.strip().replace("-", " ") for part in text.split(",")]
    unknown = set(wanted) - set(EXPERIMENTS)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return [name for name in EXPERIMENTS if name in wanted]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
