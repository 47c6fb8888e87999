"""`python -m benchmarks`: measures what the queue costs, and prints tables.

python -m benchmarks                          everything: 100, 10,000 and 1,000,000 waiting jobs
python -m benchmarks --sizes 100,10000        without the million
python -m benchmarks --only planner,life      some sections
python -m benchmarks --json figures.json      write the figures
python -m benchmarks --only kueue             the load of Kueue's baseline, which is not included by default
python -m benchmarks --save                   save the figures in benchmarks/results, and write the pages
python -m benchmarks --only days              days of 1,000 to 100,000 jobs, which are not included by default either
python -m benchmarks --again results/x.json   measure nothing: write the pages from saved figures
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.pages import DAYS_MARKS, KUEUE_MARKS, MARKS, write_pages
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import FIGURES, add_output_options, load_results, print_tables, save_results
from benchmarks.days import day
from benchmarks.kueue import run, workload
from benchmarks.queue import article_cost, depth, growth, life, planning
from benchmarks.queue.summary import summary
from benchmarks.queue.tables import make_tables
from benchmarks.startup import bundle, cold_start, command_line

USUAL = ("planner", "depth", "growth", "life", "idle", "baseline", "start")
OTHERS = {"kueue": KUEUE_MARKS, "days": DAYS_MARKS}
"""Sections with a page of their own, and its marks."""
SECTIONS = (*USUAL, *OTHERS)
Figures = dict[str, Any]
WIDTH = 160
"""Columns of tables in a file or a pipe."""


def main(arguments: list[str]) -> int:
    """Run the selected sections; return 0."""
    options = _options(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    if options.again is not None:
        found = load_results(options.again)
        for figures, page in _pages(found):
            write_pages(found["machine"], make_tables(figures), options.again, **page)
        return 0
    logging.disable(logging.CRITICAL)
    with ProgressBars(console) as progress:
        found = {"machine": machine.describe(), "options": {"burst": options.burst, "sizes": options.sizes}}
        for section in options.only:
            progress.begin(section)
            found[section] = _RUN[section](options, progress)
    print_tables(found, make_tables(found), options, console)
    if options.save:
        for figures, page in _pages(found):
            save_results(figures, make_tables(figures), console, **page)
    return 0


def _pages(found: Figures) -> Iterator[tuple[Figures, dict[str, Any]]]:
    """Yield the figures of each page, with the page's name, marks and summary."""
    rest = {section: figures for section, figures in found.items() if section not in OTHERS}
    if set(rest) & set(USUAL):
        yield rest, {"name": FIGURES, "marks": MARKS, "summary": summary(rest)}
    for section in [each for each in OTHERS if each in found]:
        yield {name: found[name] for name in ("machine", section)}, {"name": section, "marks": OTHERS[section]}


def _planner(options: argparse.Namespace, progress: ProgressBars) -> Any:
    return planning.measure(times=options.times, on_step=progress.update)


def _depth(options: argparse.Namespace, progress: ProgressBars) -> Any:
    return [depth.measure(size, progress.prefixed(f"{size:,} waiting")) for size in progress.over(options.sizes)]


def _growth(_: argparse.Namespace, progress: ProgressBars) -> Any:
    return [growth.measure(size) for size in progress.over(growth.SIZES)]


def _life(options: argparse.Namespace, progress: ProgressBars) -> Any:
    return [
        life.measure_life(story, progress.counting(story.name))
        for story in progress.over(life.scenarios(options.burst))
    ]


def _idle(_: argparse.Namespace, progress: ProgressBars) -> Any:
    return [life.measure_idle(running) for running in progress.over((0, 10, 100))]


def _baseline(options: argparse.Namespace, progress: ProgressBars) -> Any:
    progress.update("lives")
    return {
        "passes": [article_cost.measure(size) for size in progress.over(options.sizes)],
        "lives": [article_cost.life(1, 2), article_cost.life(options.burst, 8)],
    }


def _start(options: argparse.Namespace, progress: ProgressBars) -> Any:
    starts = cold_start.measure(options.times, progress.update)
    commands = command_line.measure(options.times, progress.update)
    progress.update("weighing the bundles")
    return {"bundle": bundle.weights(), "functions": starts, "commands": commands}


def _kueue(options: argparse.Namespace, progress: ProgressBars) -> Any:
    return run.measure(options.kueue_jobs, options.kueue_served or options.kueue_jobs, progress.update)


def _days(options: argparse.Namespace, progress: ProgressBars) -> Any:
    days = [one for one in day.DAYS if one.jobs in options.days]
    return [day.measure(one, progress.prefixed(f"{one.jobs:,} jobs")) for one in progress.over(days)]


_RUN: dict[str, Callable[[argparse.Namespace, ProgressBars], Any]] = {
    "planner": _planner,
    "depth": _depth,
    "growth": _growth,
    "life": _life,
    "idle": _idle,
    "baseline": _baseline,
    "start": _start,
    "kueue": _kueue,
    "days": _days,
}


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the queue costs.")
    parser.add_argument(
        "--sizes", type=_numbers, default=[100, 10_000, 1_000_000], help="waiting jobs, such as 100,10000"
    )
    parser.add_argument("--only", type=_sections, default=list(USUAL), help=f"sections to run, of {','.join(SECTIONS)}")
    parser.add_argument("--burst", type=int, default=100, help="jobs in a burst")
    parser.add_argument("--times", type=int, default=11, help="repetitions for each median")
    parser.add_argument("--kueue-jobs", type=int, default=workload.JOBS, help="jobs of Kueue's baseline")
    parser.add_argument("--kueue-served", type=int, help="how many of them run with the engine; default: all")
    parser.add_argument("--days", type=_numbers, default=[one.jobs for one in day.DAYS], help="jobs a day")
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
