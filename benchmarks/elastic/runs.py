"""Replays one trace under one policy by its name, with one curve and one cost of a resize."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common.machine import commit
from benchmarks.elastic.elasticflow import ElasticFlow, deadlines
from benchmarks.elastic.pollux import Pollux
from benchmarks.elastic.pool_simulation import PoolSettings, PoolSimulation
from benchmarks.elastic.results import JobResult, figures, timeline
from benchmarks.elastic.shipped_queue import ElasticReplay
from benchmarks.elastic.workload import CURVES, SizedJob, workload
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.policy.settings import Order, Policy, Resizes
from trainmaster.local.replay.trace.reading import read_trace
from trainmaster.local.replay.trace.trace import TraceJob, select_jobs

TRACES = ROOT / "benchmarks" / "traces"
ORDERS = ("backfill", "gittins")
ELASTIC, EQUALS = "elastic", "elastic, equals shrink"
ELASTICFLOW, POLLUX = "elasticflow-style", "pollux-style"
PAPER_POLICIES = (ELASTICFLOW, POLLUX)
SHIPPED = tuple(f"{order}, {how}" for order in ORDERS for how in (ELASTIC, EQUALS))
POLICIES = (*ORDERS, *SHIPPED, *PAPER_POLICIES)
"""Under an order alone no job is elastic, so curve and cost do not matter."""
Play = Callable[[Sequence[SizedJob], PoolSettings, int], list[JobResult]]


@dataclass(frozen=True, slots=True)
class Task:
    """One trace under one policy; `limit` selects its first jobs. Without curve and cost no job is elastic.

    `hook` is the way in which the shipped queue resizes jobs, None for other policies. `reports` tells whether workers
    report their speed, from which that queue learns the curves.
    """

    file: str
    share: str
    policy: str
    curve: str | None
    resize_cost: float | None
    hook: Hook | None
    cap: int
    restart_cost: float
    seed: int
    limit: int | None = None
    reports: bool = True


@lru_cache(maxsize=4)
def trace(file: str) -> list[TraceJob]:
    """Read the jobs of a file, once in a process."""
    return read_trace(str(TRACES / f"{file}.csv.gz"))


def measured(task: Task) -> dict[str, Any]:
    """Replay a task; return its figures with its parameters."""
    jobs = select_jobs(trace(task.file), cap=task.cap, share=task.share, limit=task.limit)
    cost = task.restart_cost if task.resize_cost is None else task.resize_cost
    settings = PoolSettings(cap=task.cap, resize_cost=cost, restart_cost=task.restart_cost)
    began = time.perf_counter()
    sized = workload(jobs, task.cap, CURVES[task.curve or "linear"], task.seed)
    hook = task.hook or Hook.RESTART
    results = run_replay(task.policy, sized, settings, task.seed, hook, reports=task.reports)
    names = {"vc": task.share, "policy": task.policy, "curve": task.curve, "resize_cost": task.resize_cost}
    names["hook"] = task.hook and task.hook.value
    found = names | figures(results, task.cap) | {"wall_s": round(time.perf_counter() - began, 3), "commit": commit()}
    return found | {"timeline": timeline(results)}


def saved_runs(path: Path | None) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Yield the runs of a file, one a line."""
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            task, found = json.loads(line)
            yield Task(**task | {"hook": task["hook"] and Hook(task["hook"])}), found


def save_run(path: Path | None, task: Task, found: dict[str, Any]) -> None:
    """Append a run to a file, if there is one."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps([asdict(task), found]) + "\n")


def run_replay(  # noqa: PLR0913 -- what a run varies
    policy: str,
    jobs: Sequence[SizedJob],
    settings: PoolSettings,
    seed: int = 0,
    hook: Hook = Hook.RESTART,
    *,
    reports: bool = True,
) -> list[JobResult]:
    """Return the results of the jobs under one of `POLICIES`.

    `hook` is the way in which the queue resizes them; `reports` tells whether it hears how fast they are.
    """
    if policy == ELASTICFLOW:
        return PoolSimulation(jobs, settings, ElasticFlow(deadlines(jobs, seed))).run()
    if policy == POLLUX:
        return PoolSimulation(jobs, settings, Pollux()).run()
    order, _, how = policy.partition(", ")
    resizes = Resizes(shrink_equals=how == EQUALS)
    played = jobs if how else [replace(job, sizes=(job.trace.gpus,)) for job in jobs]
    results = ElasticReplay(played, settings, Policy(order=Order(order), resizes=resizes), hook, reports=reports).run()
    # The same jobs count as elastic in every run.
    return [replace(result, job=job) for result, job in zip(results, jobs, strict=True)]
