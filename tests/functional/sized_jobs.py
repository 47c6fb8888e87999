"""Jobs of several sizes for tests of the benchmark with elastic jobs, and an allocator that is told what to say."""

from __future__ import annotations

from benchmarks.elastic.pool_simulation import PoolSettings, PoolSimulation
from benchmarks.elastic.workload import SizedJob, linear

from trainmaster.local.replay.trace.trace import TraceJob


def a_job(name="a", *, submit=0.0, duration=100.0, gpus=2, sizes=(1, 2, 3, 4), speed=linear):
    return SizedJob(TraceJob(name, submit, duration, gpus), tuple(sizes), speed)


def rigid(name="r", **members):
    return a_job(name, **members, sizes=(members.get("gpus", 2),))


def terms(cap=4, resize_cost=0.0, restart_cost=0.0):
    return PoolSettings(cap=cap, resize_cost=resize_cost, restart_cost=restart_cost)


class ScriptedAllocator:
    """An allocator that is told what to say from which second on."""

    period = 0.0

    def __init__(self, *table, idle=float("inf")):
        self.table, self.idle = table, idle

    def allocate(self, pool):
        said = [sizes for since, sizes in self.table if since <= pool.now][-1]
        return {index: size for index, size in said.items() if index in pool.left}


def spans(jobs, allocator, **changed):
    return [result.spans for result in PoolSimulation(jobs, terms(**changed), allocator).run()]
