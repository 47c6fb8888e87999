"""Plays one trace under one policy by its name, with one curve and one cost of a resize.

It must not print anything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from benchmarks import ROOT
from benchmarks.elastic.elasticflow import ElasticFlow, deadlines
from benchmarks.elastic.pollux import Pollux
from benchmarks.elastic.pool_simulation import Terms, Yard
from benchmarks.elastic.results import Course, figures, timeline
from benchmarks.elastic.shipped_queue import ElasticReplay
from benchmarks.elastic.workload import CURVES, SizedJob, workload
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.policy.settings import Order, Policy, Resizes
from trainmaster.local.replay.trace.trace import TraceJob, read_trace, select_jobs

TRACES = ROOT / "benchmarks" / "traces"
ORDERS = ("backfill", "least-attained-service")
ELASTIC, EQUALS = "elastic", "elastic, equals shrink"
ELASTICFLOW, POLLUX = "elasticflow-style", "pollux-style"
PAPERS = (ELASTICFLOW, POLLUX)
OURS = tuple(f"{order}, {how}" for order in ORDERS for how in (ELASTIC, EQUALS))
POLICIES = (*ORDERS, *OURS, *PAPERS)
"""An order alone: nobody is elastic, so neither curve nor cost matters."""
Play = Callable[[Sequence[SizedJob], Terms, int], list[Course]]


@dataclass(frozen=True, slots=True)
class Task:
    """One trace under one policy; `limit` its first jobs. Without curve and cost nobody is elastic."""

    file: str
    share: str
    policy: str
    curve: str | None
    resize_cost: float | None
    cap: int
    restart_cost: float
    seed: int
    limit: int | None = None
    hook: Hook = Hook.RESTART


@lru_cache(maxsize=4)
def trace(file: str) -> list[TraceJob]:
    """The jobs of a file, read once in a process."""
    return read_trace(str(TRACES / f"{file}.csv.gz"))


def measured(task: Task) -> dict[str, Any]:
    """Play it; its figures, and what was played."""
    logging.disable(logging.CRITICAL)
    jobs = select_jobs(trace(task.file), cap=task.cap, share=task.share, limit=task.limit)
    cost = task.restart_cost if task.resize_cost is None else task.resize_cost
    terms = Terms(cap=task.cap, resize_cost=cost, restart_cost=task.restart_cost)
    began = time.perf_counter()
    courses = play(
        task.policy, workload(jobs, task.cap, CURVES[task.curve or "linear"], task.seed), terms, task.seed, task.hook
    )
    names = {"vc": task.share, "policy": task.policy, "curve": task.curve, "resize_cost": task.resize_cost}
    found = names | figures(courses, task.cap) | {"wall_s": round(time.perf_counter() - began, 3)}
    return found | {"timeline": timeline(courses)}


def play(policy: str, jobs: Sequence[SizedJob], terms: Terms, seed: int = 0, hook: Hook = Hook.RESTART) -> list[Course]:
    """The jobs' courses under one of `POLICIES`; `hook` is how the queue resizes them."""
    if policy == ELASTICFLOW:
        return Yard(jobs, terms, ElasticFlow(deadlines(jobs, seed))).play()
    if policy == POLLUX:
        return Yard(jobs, terms, Pollux()).play()
    order, _, how = policy.partition(", ")
    resizes = Resizes(shrink_equals=how == EQUALS)
    played = jobs if how else [replace(job, sizes=(job.trace.gpus,)) for job in jobs]
    courses = ElasticReplay(played, terms, Policy(order=Order(order), resizes=resizes), hook).play()
    # So that the same jobs count as elastic in every run: these could have been.
    return [replace(course, job=job) for course, job in zip(courses, jobs, strict=True)]
