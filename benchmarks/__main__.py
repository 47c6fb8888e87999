"""`python -m benchmarks`: measures, shows tables, and keeps the figures where it is told to.

    python -m benchmarks                          everything: 100, 10,000 and 1,000,000 waiting jobs
    python -m benchmarks --sizes 100,10000        without the million
    python -m benchmarks --only planner,life      some sections
    python -m benchmarks --json figures.json      write the figures
    python -m benchmarks --only kueue             the load of Kueue's baseline, which runs only when it is asked for
    python -m benchmarks --save                   keep them in benchmarks/results, and write its page and the README
    python -m benchmarks --again results/x.json   measure nothing: write these again from kept figures

It must not measure anything itself.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import KUEUE_MARKS, MARKS, write_pages
from benchmarks.common.progress import Watch
from benchmarks.common.results import FIGURES, add_output_options, load_results, print_tables, save_results
from benchmarks.kueue import run, workload
from benchmarks.queue import article_cost, depth, growth, life, planning
from benchmarks.queue.summary import summary
from benchmarks.queue.tables import make_tables
from benchmarks.startup import bundle, cold_start

USUAL = ("planner", "depth", "growth", "life", "idle", "baseline", "start")
SECTIONS = (*USUAL, "kueue")
Figures = dict[str, Any]
WIDTH = 160
"""Of tables that go to a file or a pipe."""


def main(arguments: list[str]) -> int:
    """Run the sections that are asked for; 0 when they all ran."""
    options = _options(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    if options.again is not None:
        found = load_results(options.again)
        for figures, page in _pages(found):
            write_pages(found["machine"], make_tables(figures), options.again, **page)
        return 0
    logging.disable(logging.CRITICAL)
    with Watch(console) as watch:
        found = {"machine": machine.describe(), "options": {"burst": options.burst, "sizes": options.sizes}}
        for section in options.only:
            watch.begin(section)
            found[section] = _RUN[section](options, watch)
    print_tables(found, make_tables(found), options, console)
    if options.save:
        for figures, page in _pages(found):
            save_results(figures, make_tables(figures), console, **page)
    return 0


def _pages(found: Figures) -> Iterator[tuple[Figures, dict[str, Any]]]:
    """What has a page of its own, with how it is called: Kueue's load is not kept with the rest."""
    rest = {section: figures for section, figures in found.items() if section != "kueue"}
    if set(rest) & set(USUAL):
        yield rest, {"name": FIGURES, "marks": MARKS, "summary": summary(rest)}
    if "kueue" in found:
        yield {name: found[name] for name in ("machine", "kueue")}, {"name": "kueue", "marks": KUEUE_MARKS}


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
        "passes": [article_cost.measure(size) for size in watch.over(options.sizes)],
        "lives": [article_cost.life(1, 2), article_cost.life(options.burst, 8)],
    }


def _start(options: argparse.Namespace, watch: Watch) -> Any:
    starts = cold_start.measure(options.times, watch.say)
    watch.say("weighing the bundles")
    return {"bundle": bundle.weights(), "functions": starts}


def _kueue(options: argparse.Namespace, watch: Watch) -> Any:
    return run.measure(options.kueue_jobs, options.kueue_served or options.kueue_jobs, watch.say)


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
    parser.add_argument("--kueue-jobs", type=int, default=workload.JOBS, help="jobs of Kueue's baseline")
    parser.add_argument("--kueue-served", type=int, help="of those, how many with the engine; all without it")
    add_output_options(parser)
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
