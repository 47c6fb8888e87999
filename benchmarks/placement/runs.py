"""Runs the cells in parallel.

A module of its own, because a spawned process can import it, unlike the `__main__` of a package.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common.progress import ProgressBars
from benchmarks.placement.experiments import EXPERIMENTS, NODES, Cell, cells, run_cell
from benchmarks.placement.summary import summarize

Task = tuple[str, str, int]
"""Key of a cell, policy, seed."""


def run_task(task: Task) -> tuple[Task, dict[str, float]]:
    """Run one task in a process of its own."""
    key, policy, seed = task
    return task, run_cell(_all()[key], policy, seed)


def measure(options: argparse.Namespace, progress: ProgressBars) -> list[dict[str, Any]]:
    """Run every cell under every policy and seed in parallel; runs in the file `options.resume` are skipped."""
    chosen = cells(tuple(options.only), tuple(options.nodes))
    # The longest first, so that no core is left with one at the end.
    ordered = sorted(chosen, key=lambda cell: -cell.nodes * cell.x)
    tasks = [(c.key, policy, seed) for c in ordered for policy in options.policy for seed in range(options.seeds)]
    runs = dict(_saved_runs(options.resume))
    progress.begin("runs")
    for task, figures in progress.over_cores(run_task, [task for task in tasks if task not in runs], options.processes):
        progress.update(f"{task[0]}, {task[1]}")
        runs[task] = figures
        _save_run(options.resume, task, figures)
    return [
        summarize(c, {p: [runs[c.key, p, seed] for seed in range(options.seeds)] for p in options.policy})
        for c in chosen
    ]


def _saved_runs(path: Path | None) -> Iterator[tuple[Task, dict[str, float]]]:
    """Yield the runs of the file, one a line."""
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            task, figures = json.loads(line)
            yield tuple(task), figures


def _save_run(path: Path | None, task: Task, figures: dict[str, float]) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps([task, figures]) + "\n")


@cache
def _all() -> dict[str, Cell]:
    return {cell.key: cell for cell in cells(tuple(EXPERIMENTS), NODES)}
