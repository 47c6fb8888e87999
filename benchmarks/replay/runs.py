"""Replays one trace under one policy; each worker process of the replay benchmarks runs `measured`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common.machine import commit
from trainmaster.local.replay.runs import run_replay
from trainmaster.local.replay.trace.reading import read_trace
from trainmaster.local.replay.trace.trace import TraceJob, select_jobs

TRACES = ROOT / "benchmarks" / "traces"
CAP, SMALLER_CAP = 128, 64
SMALL_SHARE, SMALL_CAP, LONGEST = "0e4a51", 24, 200
"""A small pool with few, long jobs, wide for it: the longest of one cluster."""
WIDTH = 180
"""Columns of tables in a file or a pipe."""
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One trace under one policy.

    `share` None selects the whole file, `limit` its first jobs, `longest` the longest of those.
    """

    file: str
    share: str | None
    policy: str
    cap: int
    restart_cost: float
    limit: int | None = None
    questions: int = 0
    longest: int | None = None


def small_pool(file: str, share: str | None, policy: str, restart_cost: float, questions: int) -> Iterator[Task]:
    """Yield the replay on the small pool if this is its cluster."""
    if share == SMALL_SHARE:
        yield Task(file, share, policy, SMALL_CAP, restart_cost, questions=questions, longest=LONGEST)


@lru_cache(maxsize=4)
def trace(file: str) -> list[TraceJob]:
    """Read the jobs of a file, once in a process."""
    return read_trace(str(TRACES / f"{file}.csv.gz"))


def measured(task: Task) -> Figures:
    """Replay a task; return its figures."""
    jobs = _longest(select_jobs(trace(task.file), cap=task.cap, share=task.share, limit=task.limit), task.longest)
    run = run_replay(task.policy, jobs, task.cap, task.restart_cost, questions=task.questions)
    begin, end = jobs[0].submit, max(jobs[-1].submit, jobs[0].submit + 1)
    asked = sum(job.gpus * job.duration for job in jobs)
    load = asked / (task.cap * (end - begin))
    vc = task.share if task.longest is None else f"{task.share}, {task.longest} longest"
    return {"trace": task.file, "vc": vc, "load": round(load, 3), **run.figures(), "commit": commit()}


def saved_runs(path: Path | None) -> Iterator[tuple[Task, Figures]]:
    """Yield the runs of the file, one a line."""
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            task, figures = json.loads(line)
            yield Task(**task), figures


def save_run(path: Path | None, task: Task, figures: Figures) -> None:
    """Append a run to the file."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps([asdict(task), figures]) + "\n")


def _longest(jobs: Sequence[TraceJob], count: int | None) -> list[TraceJob]:
    return sorted(sorted(jobs, key=lambda job: -job.duration)[:count], key=lambda job: job.submit)
