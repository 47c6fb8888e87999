"""The table of the load of Kueue's baseline, with Kueue's published figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Figures = dict[str, Any]
TITLE = "Kueue's baseline: 30 shares over 5 pools of 120 units"
COLUMNS = (
    *("queue", "jobs", "the queue's own time", "jobs a second", "jobs a CPU second"),
    *("mean wait: large, s", "medium", "small", "makespan, s", "utilization", "passes", "preemptions"),
)
PUBLISHED = (
    *("Kueue at ff69552e (0.20-devel), as published: API server and etcd, 50 requests a second", "15,000", "included"),
    *("42.7", "", "16.5", "76.8", "215.5", "351.1", "0.559 (the lowest of its queues)", "", ""),
)
"""`kubernetes-sigs/kueue: test/performance/scheduler/README.md` and `configs/baseline`: means of its own runs."""
EXPECTED = (
    "Jobs arrive at 250 a second for a minute, at first 1.18 times what the pools can process: at best the last job "
    "ends after 66 s, and small jobs wait, since they have the lowest priority. Where the queue's own time is "
    "excluded, the virtual clock stops while the queue works: that row shows the quality of the decisions alone. "
    "Where it is included, jobs wait for it as well, and submissions, events and passes take turns in one process; "
    "on AWS they run in parallel. Kueue's figures measure a throttle as much as a scheduler: the client of its "
    "runner may make 50 requests a second (burst 100), where the default is 300 since 0.19, and they include durable "
    "writes and the work of a real API server. So the rows in memory are not comparable with them. The row over HTTP "
    "writes all decisions before it acts, as Kueue does, but its engine is on the same machine, keeps the table in "
    "memory and does not replicate it. Both simulate the execution. No row predicts the behavior on AWS: SageMaker "
    "takes minutes to start a job, and its limits on calls are far below any of these rates. With fewer jobs than "
    "15,000 the backlog is shorter, and so are the waits. If other processes use the machine, the CPU time is more "
    "reliable; over HTTP it does not include the engine's."
)


def rows(figures: Figures) -> Iterator[Sequence[str]]:
    """Yield a row for each run, then Kueue's."""
    for one in figures["kueue"]["runs"]:
        waits, time = one["waits_s"], "included" if one["timed"] else "excluded"
        yield (
            one["store"],
            f"{one['jobs']:,}",
            time,
            f"{one['jobs_per_s']:,.1f}",
            f"{one['jobs_per_processor_s']:,.1f}",
            *(f"{waits[job_class]:.1f}" for job_class in ("large", "medium", "small")),
            f"{one['makespan_s']:,.1f}",
            f"{one['used']:.3f}",
            f"{one['passes']:,}",
            f"{one['preemptions']:,}",
        )
    if "skipped" in figures["kueue"]:
        yield (f"DynamoDB over HTTP: skipped, {figures['kueue']['skipped']}", *[""] * (len(COLUMNS) - 1))
    yield PUBLISHED
