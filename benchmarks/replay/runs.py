"""Replays one trace under one policy; each worker process of the replay benchmarks runs `measured`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from benchmarks import ROOT
from trainmaster.local.replay.runs import run_replay
from trainmaster.local.replay.trace.trace import TraceJob, read_trace, select_jobs

TRACES = ROOT / "benchmarks" / "traces"
CAP = 128
WIDTH = 180
"""Columns of tables in a file or a pipe."""
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One trace under one policy. `share` None selects the whole file, `limit` its first jobs."""

    file: str
    share: str | None
    policy: str
    cap: int
    restart_cost: float
    limit: int | None = None
    questions: int = 0


@lru_cache(maxsize=4)
def trace(file: str) -> list[TraceJob]:
    """Read the jobs of a file, once in a process."""
    return read_trace(str(TRACES / f"{file}.csv.gz"))


def measured(task: Task) -> Figures:
    """Replay a task; return its figures."""
    jobs = select_jobs(trace(task.file), cap=task.cap, share=task.share, limit=task.limit)
    run = run_replay(task.policy, jobs, task.cap, task.restart_cost, questions=task.questions)
    begin, end = jobs[0].submit, max(jobs[-1].submit, jobs[0].submit + 1)
    asked = sum(job.gpus * job.duration for job in jobs)
    load = asked / (task.cap * (end - begin))
    return {"trace": task.file, "vc": task.share, "load": round(load, 3), **run.figures()}
