"""The load of Kueue's baseline as a sheet, beside what Kueue has published. It must not round in anybody's favour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Figures = dict[str, Any]
TITLE = "Kueue's baseline: 30 shares over 5 pools of 120 units"
COLUMNS = (
    *("queue", "jobs", "the queue's own time", "jobs a second", "a second of our processor"),
    *("mean wait: large, s", "medium", "small", "from first to last, s", "used", "passes", "preemptions"),
)
PUBLISHED = (
    *("Kueue at ff69552e (0.20-devel), as published: API server and etcd, 50 requests a second", "15,000", "passes"),
    *("42.7", "", "16.5", "76.8", "215.5", "351.1", "0.559 (the least of its queues)", "", ""),
)
"""Kueue, `test/performance/scheduler/README.md` and `configs/baseline`: means of its own runs."""
EXPECTED = (
    "250 jobs a second are offered for a minute, at first 1.18 times what the pools can do: at best the last ends "
    "after 66 s, and small jobs wait, since they have the lowest priority. Where time stands still for the queue, "
    "its own time is in no wait: that row judges the decisions alone. Where its time passes, jobs wait for it as "
    "well, and submissions, events and passes take turns in one process; on AWS they run side by side. Kueue's "
    "figures are a throttle's as much as a scheduler's: its runner's client may make 50 requests a second (burst "
    "100), where its default is 300 since 0.19, and they include durable writes and a real API server's work. So "
    "the rows in memory must not be held against them. The one over HTTP writes all that is decided before it "
    "acts, as Kueue does, but its engine is on the same machine, keeps the table in memory and copies it nowhere. "
    "Both fake the execution. None says what AWS would do: SageMaker takes minutes to start a job, and its limits "
    "on calls are far below any of these. With fewer jobs than 15,000 the backlog is shorter, so are the waits. "
    "Where others use the machine, the processor's time is the truer figure; over HTTP it has not the engine's in "
    "it."
)


def rows(figures: Figures) -> Iterator[Sequence[str]]:
    """One for each run, then Kueue's."""
    for one in figures["kueue"]["runs"]:
        waits, time = one["waits_s"], "passes" if one["timed"] else "stands still"
        yield (
            one["store"],
            f"{one['jobs']:,}",
            time,
            f"{one['jobs_per_s']:,.1f}",
            f"{one['jobs_per_processor_s']:,.1f}",
            *(f"{waits[kind]:.1f}" for kind in ("large", "medium", "small")),
            f"{one['makespan_s']:,.1f}",
            f"{one['used']:.3f}",
            f"{one['passes']:,}",
            f"{one['preemptions']:,}",
        )
    if "skipped" in figures["kueue"]:
        yield (f"DynamoDB over HTTP: skipped, {figures['kueue']['skipped']}", *[""] * (len(COLUMNS) - 1))
    yield PUBLISHED
