"""Plays the cells on all cores, one run at a time each.

A module of its own: a spawned process can import it, which it cannot do with a package's `__main__`. It must not know
any rule of the queue.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common.progress import Watch
from benchmarks.placement.experiments import EXPERIMENTS, NODES, Cell, cells, played
from benchmarks.placement.summary import summed

Task = tuple[str, str, int]
"""A cell's key, a policy, a seed: what a process is told."""


def one(task: Task) -> tuple[Task, dict[str, float]]:
    """Play one run, in a process of its own."""
    logging.disable(logging.CRITICAL)
    key, policy, seed = task
    return task, played(_all()[key], policy, seed)


def measure(options: argparse.Namespace, watch: Watch) -> list[dict[str, Any]]:
    """Every cell under every policy, over its seeds, on all cores; runs that `options.resume` has are not played."""
    chosen = cells(tuple(options.only), tuple(options.nodes))
    # The longest first, so that no core is left with one at the end.
    ordered = sorted(chosen, key=lambda cell: -cell.nodes * cell.x)
    tasks = [(c.key, policy, seed) for c in ordered for policy in options.policy for seed in range(options.seeds)]
    runs = dict(_kept(options.resume))
    watch.begin("runs")
    for task, figures in watch.over_cores(one, [task for task in tasks if task not in runs], options.processes):
        watch.say(f"{task[0]}, {task[1]}")
        runs[task] = figures
        _keep(options.resume, task, figures)
    return [
        summed(c, {p: [runs[c.key, p, seed] for seed in range(options.seeds)] for p in options.policy}) for c in chosen
    ]


def _kept(path: Path | None) -> Iterator[tuple[Task, dict[str, float]]]:
    """What a run before this one has written to a file, one run a line."""
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            task, figures = json.loads(line)
            yield tuple(task), figures


def _keep(path: Path | None, task: Task, figures: dict[str, float]) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps([task, figures]) + "\n")


@cache
def _all() -> dict[str, Cell]:
    return {cell.key: cell for cell in cells(tuple(EXPERIMENTS), NODES)}
