"""Tables 4 and 5: four nodes of 1 CPU and 512 MB, and tasks that no node can hold, with and without expansion.

A task is one instance, as the article's is one Pod; instance types are the article's three Pods.
"""

from __future__ import annotations

from typing import Any

from benchmarks.placement.clusters import Cluster
from benchmarks.placement.loads import Load, Task
from benchmarks.placement.simulation import Run, TaskResult
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.policy.settings import Expansion, Policy
from trainmaster.local.simulator import Profile

PODS = tuple(
    InstanceType(name=f"ml.pod{number}", vcpus=vcpus, memory_gib=memory, price=vcpus * 0.05 + memory * 0.01)
    for number, vcpus, memory in ((1, 1, 0.5), (2, 2, 0.5), (3, 2, 1.0))
)
TASKS = tuple(Resources(vcpus=pod.vcpus, memory_gib=pod.memory_gib) for pod in PODS)
COUNTS = (8, 2, 1)
"""The article submits "several" of its first task, two of the second, one of the third."""
SECONDS = 24.0
"""The article's tasks take 18 to 25 seconds from submission to end."""
NODES = 4


def measure() -> list[dict[str, Any]]:
    """Return a row for each kind of task, without expansion and with it."""
    return [row for enabled in (False, True) for row in _rows(enabled=enabled)]


def _rows(*, enabled: bool) -> list[dict[str, Any]]:
    pools = {f"ml.pod1-{number}": Pool(f"ml.pod1-{number}", 1, type_="ml.pod1") for number in range(NODES)}
    kinds = [kind for kind, count in enumerate(COUNTS) for _ in range(count)]
    load = Load([Task(0.0, 1, SECONDS, TASKS[kind]) for kind in kinds])
    policy = Policy(expansion=Expansion(enabled=enabled, types=("ml.pod*",)))
    catalogue = Catalogue(learned={pod.name: pod for pod in PODS})
    run = Run(load, Cluster(pools, {}), policy, profile=Profile(limited=False), catalogue=catalogue)
    done = run.play_until_idle()
    made = {name: pool.cap for name, pool in run.store.settings().pools.items() if name not in pools}
    return [_row(kind, kinds, done, made, enabled=enabled) for kind in range(len(TASKS))]


def _row(
    kind: int, kinds: list[int], done: list[TaskResult | None], made: dict[str, int], *, enabled: bool
) -> dict[str, Any]:
    mine = [each for each, other in zip(done, kinds, strict=True) if other == kind]
    ended = [each for each in mine if each is not None]
    on = {each.pool for each in ended}
    return {
        "expansion": enabled,
        "task": f"Task{kind + 1}, {TASKS[kind]}",
        "submitted": len(mine),
        "completed": len(ended),
        "started_after_s": max((each.started - each.submitted for each in ended), default=None),
        "ended_after_s": max((each.ended - each.submitted for each in ended), default=None),
        "pools_made": {name: cap for name, cap in made.items() if name in on},
    }
