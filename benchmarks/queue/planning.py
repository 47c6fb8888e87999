"""Time of the planner: `schedule` alone, on snapshots of given sizes and several expensive kinds.

Python looks for garbage as rarely as in the functions.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import builders as b
from benchmarks.common.timing import milliseconds
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.handlers import GARBAGE_THRESHOLD
from trainmaster.planner.schedule import schedule

KINDS = {
    "nothing starts": "every waiting job has a lower priority than every running one",
    "mixed": "ten priorities among both; gangs of 1 to 4 instances",
    "starts": "half of each pool is free",
    "ladder": "every job has its own priority, and all waiting jobs precede all running ones",
    "stopping": "half of the pools are full of stopping jobs, and every waiting job has its own priority",
}
GOALS_MS = {1_000: 30, 10_000: 400}


def measure(times: int = 15, on_step: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
    """Measure every kind with 1,000 + 1,000 and 10,000 + 10,000 jobs, in 1 pool and in 10."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    found = []
    for size in GOALS_MS:
        for kind in KINDS:
            for pools in (1, 10):
                snapshot = a_snapshot(kind, size, pools)
                on_step(f"{size:,} + {size:,} {kind}")
                taken = milliseconds(partial(plan, snapshot), times=times, at_most=5)
                found.append({"active": size, "considered": size, "pools": pools, "kind": kind, **taken})
    return found


def plan(snapshot: Snapshot) -> int:
    """Plan once; return the number of decisions."""
    return len(schedule(snapshot, b.NOW, random.Random(1)).decisions)


def a_snapshot(kind: str, size: int, pools: int) -> Snapshot:
    """Return a snapshot with as many active jobs as waiting ones."""
    rng = random.Random(1)
    active = [_active(kind, number, pools, rng) for number in range(size)]
    waiting = [_waiting(kind, number, size, pools, rng) for number in range(size)]
    caps = dict.fromkeys(map(_pool, range(pools)), 0)
    for job in active:
        for pool, count in job.units.items():
            caps[pool] += count
    spare = 2 if kind == "starts" else 1
    listed = [b.a_pool(pool, cap * spare) for pool, cap in caps.items()]
    return b.a_snapshot(pools=listed, active=active, waiting=waiting)


def _pool(number: int) -> str:
    return f"ml.p{number}.48xlarge"


def _active(kind: str, number: int, pools: int, rng: random.Random) -> Job:
    priority = {"mixed": rng.randrange(10), "ladder": number}.get(kind, 5)
    name, since = f"running-{number:05d}", b.at(-rng.uniform(0, 80_000))
    units = {_pool(number % pools): rng.choice((1, 1, 1, 2, 4))}
    if kind == "stopping":
        # A higher priority than that of every waiting job, so that no other job is preempted.
        make = b.a_preempting_job if number % pools < pools / 2 else b.a_running_job
        return make(name, priority=100_000, now=b.at(-10), units=units)
    return b.a_running_job(name, priority=priority, entry_time=since, now=since, units=units)


def _waiting(kind: str, number: int, size: int, pools: int, rng: random.Random) -> Job:
    own = 10_000 + size - number
    priority = {"nothing starts": 0, "mixed": rng.randrange(10), "ladder": own, "stopping": own}.get(kind, 5)
    units = {_pool(number % pools): rng.choice((1, 1, 1, 2, 4))}
    return b.a_job(f"waiting-{number:05d}", priority=priority, entry_time=b.at(number - size), units=units)
