"""`python -m benchmarks`: measures, shows tables, and keeps the figures where it is told to.

    python -m benchmarks                          everything: 100, 10,000 and 1,000,000 waiting jobs
    python -m benchmarks --sizes 100,10000        without the million
    python -m benchmarks --only planner,life      some sections
    python -m benchmarks --json figures.json      write the figures
    python -m benchmarks --only kueue             the load of Kueue's baseline, which runs only when it is asked for
    python -m benchmarks --save                   write them to benchmarks/results and into benchmarks/README.md
    python -m benchmarks --again results/x.json   measure nothing: write kept figures into benchmarks/README.md again

It must not measure anything itself.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import ROOT, baseline, bundle, cold_start, depth, growth, kueue, kueue_load, life, machine, planning
from benchmarks.meaning import meaning
from benchmarks.sheets import sheets
from benchmarks.showing import KUEUE_MARKS, MARKS, as_table, written
from benchmarks.watching import Watch

USUAL = ("planner", "depth", "growth", "life", "idle", "baseline", "start")
SECTIONS = (*USUAL, "kueue")
RESULTS = ROOT / "benchmarks" / "results"
Figures = dict[str, Any]
WIDTH = 160
"""Of tables that go to a file or a pipe."""


def main(arguments: list[str]) -> int:
    """Run the sections that are asked for; 0 when they all ran."""
    options = _options(arguments)
    if options.again is not None:
        kept = json.loads(options.again.read_text())
        written(kept["machine"], sheets(kept), options.again, MARKS, meaning(kept))
        return 0
    logging.disable(logging.CRITICAL)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    with Watch(console) as watch:
        figures: Figures = {"machine": machine.describe(), "options": {"burst": options.burst, "sizes": options.sizes}}
        for section in options.only:
            watch.begin(section)
            figures[section] = _RUN[section](options, watch)
    figures["machine"]["load_after"] = machine.load()
    for sheet in sheets(figures):
        console.print(as_table(sheet))
    _keep(figures, options, console)
    return 0


def _keep(figures: Figures, options: argparse.Namespace, console: Console) -> None:
    if options.json is not None:
        options.json.write_text(_text(figures))
    if options.save:
        apart = {name: found for name, found in figures.items() if name != "kueue"}
        if set(apart) & set(USUAL):
            _save(apart, "", MARKS, console)
        if "kueue" in figures:
            _save({name: figures[name] for name in ("machine", "kueue")}, "-kueue", KUEUE_MARKS, console)


def _save(figures: Figures, suffix: str, marks: tuple[str, str], console: Console) -> None:
    """Keep figures in a file of their own and in their part of the README."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{machine.label(figures['machine'])}{suffix}.json"
    path.write_text(_text(figures))
    written(figures["machine"], sheets(figures), path, marks, meaning(figures) if marks is MARKS else ())
    console.print(f"kept in {path.relative_to(ROOT)} and benchmarks/README.md")


def _text(figures: Figures) -> str:
    return json.dumps(figures, indent=1) + "\n"


def _planner(options: argparse.Namespace, watch: Watch) -> Any:
    return planning.measure(times=options.times, told=watch.say)


def _depth(options: argparse.Namespace, watch: Watch) -> Any:
    return [depth.measure(size, watch.about(f"{size:,} waiting")) for size in watch.over(options.sizes)]


def _growth(_: argparse.Namespace, watch: Watch) -> Any:
    return [growth.measure(size) for size in watch.over(growth.SIZES)]


def _life(options: argparse.Namespace, watch: Watch) -> Any:
    return [life.lived(story, watch.counting(story.name)) for story in watch.over(life.lives(options.burst))]


def _idle(_: argparse.Namespace, watch: Watch) -> Any:
    return [life.idle(running) for running in watch.over((0, 10, 100))]


def _baseline(options: argparse.Namespace, watch: Watch) -> Any:
    watch.say("lives")
    return {
        "passes": [baseline.measure(size) for size in watch.over(options.sizes)],
        "lives": [baseline.life(1, 2), baseline.life(options.burst, 8)],
    }


def _start(options: argparse.Namespace, watch: Watch) -> Any:
    watch.say("building the bundle")
    folder, how = bundle.built()
    starts = cold_start.measure(folder, options.times, watch.say)
    return {"built_by": how, "bundle": bundle.weights(folder), "functions": starts}


def _kueue(options: argparse.Namespace, watch: Watch) -> Any:
    return kueue.measure(options.kueue_jobs, options.kueue_served or options.kueue_jobs, watch.say)


_RUN: dict[str, Callable[[argparse.Namespace, Watch], Any]] = {
    "planner": _planner,
    "depth": _depth,
    "growth": _growth,
    "life": _life,
    "idle": _idle,
    "baseline": _baseline,
    "start": _start,
    "kueue": _kueue,
}


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the queue costs.")
    parser.add_argument("--sizes", type=_numbers, default=[100, 10_000, 1_000_000], help="depths, as 100,10000")
    parser.add_argument("--only", type=_sections, default=list(USUAL), help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--burst", type=int, default=100, help="jobs of a burst")
    parser.add_argument("--times", type=int, default=11, help="repetitions behind a median")
    parser.add_argument("--kueue-jobs", type=int, default=kueue_load.JOBS, help="jobs of Kueue's baseline")
    parser.add_argument("--kueue-served", type=int, help="of those, how many with the engine; all without it")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--save", action="store_true", help="keep the figures in benchmarks/results and the README")
    parser.add_argument("--again", type=Path, help="measure nothing: write the README again from these kept figures")
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[int]:
    return [int(part.replace("_", "")) for part in text.split(",")]


def _sections(text: str) -> list[str]:
    wanted = text.split(",")
    unknown = set(wanted) - set(SECTIONS)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return [section for section in SECTIONS if section in wanted]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
