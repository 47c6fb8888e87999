"""`python -m benchmarks.images`: what image jobs cost the queue, by how many wait and over how many endpoints.

    python -m benchmarks.images                                  100, 10,000 and 100,000 over 1, 10 and 100 endpoints
    python -m benchmarks.images --sizes 100,10000 --endpoints 1  some of it
    python -m benchmarks.images --save                           keep the figures in results/ and benchmarks/README.md
    python -m benchmarks.images --modelrunner CHECKOUT           measure the CPU of ModelRunner's scheduler, too

It must not measure anything itself.
"""

from __future__ import annotations

import argparse
import logging
import sys
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.engine import engine
from benchmarks.common.pages import IMAGES_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import add_output_options, report, rewrite_pages
from benchmarks.images import modelrunner
from benchmarks.images.measuring import RUNNING, measure
from benchmarks.images.sheets import sheets

SIZES = (100, 10_000, 100_000)
ENDPOINTS = (1, 10, 100)
MODELRUNNER_ROWS = (50, 1_000)
"""Requests in ModelRunner's table: its look-ahead, and the most that its authors expect."""
WIDTH = 180
"""Of tables that go to a file or a pipe."""


def main(arguments: list[str]) -> int:
    """Measure every size that is asked for; 0 when all of it ran."""
    options = _options(arguments)
    if rewrite_pages(options, sheets, name="images", marks=IMAGES_MARKS):
        return 0
    logging.disable(logging.CRITICAL)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    with ProgressBars(console) as progress:
        found: dict[str, Any] = {"machine": machine.describe(), "sizes": []}
        progress.begin("images")
        for waiting, endpoints in progress.over(list(product(options.sizes, options.endpoints))):
            told = progress.prefixed(f"{waiting:,} waiting, {endpoints} endpoints")
            found["sizes"].append(measure(waiting, endpoints, told, running=options.running))
        found["lone"] = measure(options.sizes[0], 1, progress.prefixed("one start alone"), running=1)["starts"]
        if options.modelrunner is not None:
            progress.begin("ModelRunner")
            found["modelrunner"] = [_modelrunner(options.modelrunner, rows) for rows in progress.over(MODELRUNNER_ROWS)]
    report(found, sheets(found), options, console, name="images", marks=IMAGES_MARKS)
    return 0


def _modelrunner(checkout: Path, rows: int) -> dict[str, Any]:
    with engine() as client:
        return modelrunner.measure(checkout, client.meta.endpoint_url, rows)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.images", description="Measure what image jobs cost.")
    parser.add_argument("--sizes", type=_numbers, default=list(SIZES), help="requests that wait, as 100,10000")
    parser.add_argument("--endpoints", type=_numbers, default=list(ENDPOINTS), help="over so many, as 1,10")
    parser.add_argument("--modelrunner", type=Path, help="a checkout of osml-model-runner, whose scheduler is run, too")
    parser.add_argument("--running", type=int, default=RUNNING, help="images that all endpoints take together")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    if any(options.running % each for each in options.endpoints) or min(options.sizes) < options.running:
        parser.error("--running must be a multiple of every number of endpoints, and at most the least size")
    return options


def _numbers(text: str) -> list[int]:
    return [int(part.replace("_", "")) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
