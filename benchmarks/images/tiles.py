"""`python -m benchmarks.images.tiles`: tiles a second of the region worker, beside a loop over rasterio.

    python -m benchmarks.images.tiles               an image of 20,000 x 20,000 pixels, 5 and 50 features a tile
    python -m benchmarks.images.tiles --side 5000   a smaller one
    python -m benchmarks.images.tiles --save        keep the figures in results/ and benchmarks/README.md

Each run is a process of its own, on two cores, with AWS keys in its environment. It must not measure anything itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import TILES_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import add_output_options, report, rewrite_pages
from benchmarks.common.table import ReportTable
from benchmarks.images.tile_image import make_image
from benchmarks.images.tile_runs import CORES

Figures = dict[str, Any]
SIDE = 20_000
COUNTS = (5, 50)
GOALS = {5: 30, 50: 25}
"""Tiles a second by the features of a tile."""
MAX_MB = 350
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example", "AWS_DEFAULT_REGION": "us-east-1"}
MEMORY = Path("/dev/shm")
WIDTH = 180
EXPECTED = {
    "goals": (
        "Rates are by the clock, and so by what else runs on the machine; CPU milliseconds and ratios depend on it "
        "less. The rate that two cores allow is 2,000 ms divided by the CPU milliseconds of a tile, at most 80 a "
        "second: the model takes 50 ms and four requests at once."
    ),
    "runs": (
        "The loop does the least that is possible, as well as rasterio does it: an environment and a handle for each "
        "of four threads, all points of a tile at once. It neither validates what the model says, nor keeps progress, "
        "nor cuts shapes at the antimeridian. `decode` reads on two threads, and does nothing else."
    ),
    "stages": (
        "CPU milliseconds of a tile on one thread, stage after stage, over the first region. `ask` parses the model's "
        "answer; `write` is the region's GeoJSON."
    ),
}


def main(arguments: list[str]) -> int:
    """Measure everything; return 0 if all of it ran."""
    options = _options(arguments)
    if rewrite_pages(options, sheets, name="tiles", marks=TILES_MARKS):
        return 0
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    found: Figures = {"machine": machine.describe(), "side": options.side}
    with ProgressBars(console) as progress, tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as at:
        path = Path(at) / "large.tif"
        progress.begin("tiles")
        progress.prefixed("image")("making it")
        make_image(path, options.side)
        found["image_mb"] = path.stat().st_size // 2**20
        found["decode"] = _run("decode", path, 0)
        found["runs"] = [_figures(path, count) for count in progress.over(list(COUNTS))]
    report(found, sheets(found), options, console, name="tiles", marks=TILES_MARKS)
    return 0


def _figures(path: Path, count: int) -> Figures:
    return {"features": count, **{what: _run(what, path, count) for what in ("worker", "rasterio", "stages")}}


def _run(what: str, path: Path, count: int) -> Figures:
    command = [sys.executable, "-m", "benchmarks.images.tile_runs", what, str(path), str(count)]
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    answer = subprocess.run(
        ["taskset", "-c", ",".join(map(str, cores)), *command],
        env=os.environ | KEYS,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    figures: Figures = json.loads(answer.stdout)
    return figures


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.images.tiles", description="Measure a region's tiles.")
    parser.add_argument("--side", type=int, default=SIDE, help="pixels of the image on each side")
    add_output_options(parser)
    return parser.parse_args(arguments)


def sheets(found: Figures) -> list[ReportTable]:
    """Return all tables of the report."""
    runs, side = found["runs"], f"{found['side']:,}"
    size = f"an image of {side} x {side} pixels, {found['image_mb']:,} MB"
    return [
        ReportTable(
            f"Tiles: goals for {size}",
            ("goal", "wanted", "measured", "met", "rate that two cores allow"),
            list(goals(runs)),
            EXPECTED["goals"],
            headline=True,
        ),
        ReportTable(
            "Tiles: the worker beside a loop over rasterio",
            ("features a tile", "run", "tiles", "tiles a second", "CPU ms a tile", "peak MB", "CPU of the loop's"),
            list(_runs(found)),
            EXPECTED["runs"],
            headline=True,
        ),
        ReportTable(
            "Tiles: CPU milliseconds of each stage",
            ("features a tile", *runs[0]["stages"], "together"),
            [_stages(one) for one in runs],
            EXPECTED["stages"],
        ),
    ]


def goals(runs: Sequence[Figures]) -> Iterator[Sequence[str]]:
    """Yield each goal: what, wanted, measured, yes or no, and the rate that the CPU time allows."""
    for one in runs:
        count, worker = one["features"], one["worker"]
        rate, allowed = _rate(worker), min(80.0, CORES / (worker["cpu_s"] / worker["tiles"]))
        met = "yes" if rate >= GOALS[count] else "NO"
        yield (f"tiles a second, {count} features a tile", f"{GOALS[count]}", f"{rate:.1f}", met, f"{allowed:.0f}")
        met = "yes" if worker["peak_mb"] < MAX_MB else "NO"
        yield (f"peak memory, {count} features a tile", f"under {MAX_MB} MB", f"{worker['peak_mb']} MB", met, "")


def _runs(found: Figures) -> Iterator[Sequence[str]]:
    for one in found["runs"]:
        for what in ("worker", "rasterio"):
            ratio = f"{_cpu(one[what]) / _cpu(one['rasterio']):.2f}"
            yield (str(one["features"]), what, *_row(one[what]), ratio)
    yield ("-", "decode", *_row(found["decode"]), "-")


def _row(run: Figures) -> Sequence[str]:
    return f"{run['tiles']}", f"{_rate(run):.1f}", f"{_cpu(run):.1f}", f"{run['peak_mb']}"


def _stages(one: Figures) -> Sequence[str]:
    spent = one["stages"]
    return str(one["features"]), *(f"{each:.1f}" for each in spent.values()), f"{sum(spent.values()):.1f}"


def _rate(run: Figures) -> float:
    return float(run["tiles"] / run["seconds"])


def _cpu(run: Figures) -> float:
    return float(run["cpu_s"] / run["tiles"] * 1000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
