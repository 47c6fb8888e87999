"""What jobs cost from submit to finish, step by step: alone, in a burst, preempted, with other requests.

Whole lives through the shipped use cases, events and passes on the real engine. It must not compute what it can count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.common.engine import engine
from benchmarks.common.meter import Cost, total
from benchmarks.common.prices import dollars
from benchmarks.common.requests import request
from benchmarks.common.world import MeteredWorld, make_table
from builders import G5, P5

P4 = "ml.p4d.24xlarge"
G5_LARGE = "ml.g5.12xlarge"
_LONGEST = 200_000
_PHASES = ("submit", "pass", "event")


@dataclass(frozen=True, slots=True)
class Life:
    """A story of jobs that all come to their end.

    Attributes:
        name: what the table calls it.
        pools: caps by instance type.
        jobs: how many are submitted at once; those of a burst take the pools in turn.
        asked: further arguments of each request.
        later: jobs of a higher priority, submitted once the first ones run.
    """

    name: str
    pools: Mapping[str, int]
    jobs: int = 1
    asked: Mapping[str, Any] = field(default_factory=dict)
    later: int = 0


def lives(burst: int) -> list[Life]:
    """The stories of the report."""
    four = dict.fromkeys((P5, P4, G5, G5_LARGE), 8)
    return [
        Life("alone", {P5: 2}),
        Life("alone, text that does not compress", {P5: 2}, asked={"dense": True}),
        Life("alone, a 64 KB request", {P5: 2}, asked={"size": 65_536, "dense": True}),
        Life("two, one preempted by the other", {P5: 1}, later=1),
        Life("burst, one pool of 8", {P5: 8}, burst),
        Life("burst, four pools of 8", four, burst),
        Life("burst, one pool of 64", {G5: 64}, burst),
    ]


def lived(life: Life, told: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
    """The costs of a story: of an average job, by step.

    Args:
        life: the story.
        told: how many jobs have ended by now.
    """
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=",".join(f"{kind}={cap}" for kind, cap in life.pools.items()))
        count = life.jobs + life.later
        spent = _play(world, life, told)
    whole = total(spent.values())
    steps = {step: _shown(cost.over(count)) for step, cost in sorted(spent.items(), key=lambda item: _place(item[0]))}
    return {
        "name": life.name,
        "jobs": count,
        "steps": steps,
        "job": _shown(whole.over(count)),
        "messages": round(world.queue.sent / count, 2),
        "invocations": round(world.invocations / count, 2),
        "sagemaker_calls": {name: round(calls / count, 2) for name, calls in world.asked_of_sagemaker.items()},
        "dollars_per_1000_jobs": dollars(whole.over(count)) * 1000,
    }


def idle(active: int) -> dict[str, Any]:
    """What a tick costs, with so many running jobs and nothing that waits: ten minutes' average."""
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=f"{G5}={max(active, 1)}", ticks=True)
        for number in range(active):
            world.hand_in(request(f"job{number:04d}", kind=G5, training_seconds=80_000))
        world.run(600)
        world.meter.reset()
        world.run(600, step=30)
        spent = total(world.meter.reset().values()).over(10)
    return {"running": active, "tick": _shown(spent), "dollars_per_month": dollars(spent) * 60 * 24 * 30}


def _play(world: MeteredWorld, life: Life, told: Callable[[int], None]) -> dict[str, Cost]:
    rng = random.Random(1)
    kinds = list(life.pools)
    for number in range(life.jobs):
        kind = kinds[number % len(kinds)]
        seconds = rng.randint(300, 900)
        world.hand_in(request(f"job{number:04d}", kind=kind, training_seconds=seconds, **life.asked))
    if life.later:
        world.run(200, step=1)
    for number in range(life.later):
        world.hand_in(request(f"urgent{number:04d}", priority=1, kind=kinds[0], training_seconds=300, **life.asked))
    _to_the_end(world, life.jobs + life.later, told)
    return world.meter.reset()


def _to_the_end(world: MeteredWorld, count: int, told: Callable[[int], None]) -> None:
    """A second at a time, so that no more events come together than would."""
    for _ in range(_LONGEST // 60):
        world.run(60, step=1)
        done = world.ended
        told(done)
        if done >= count:
            return
    raise RuntimeError("the jobs do not end")


def _place(step: str) -> tuple[int, str]:
    phase = step.partition(":")[0]
    return (_PHASES.index(phase) if phase in _PHASES else len(_PHASES), step)


def _shown(cost: Cost) -> dict[str, float]:
    return {
        "read_units": round(cost.reads, 2),
        "write_units": round(cost.writes, 2),
        "calls": round(cost.calls, 2),
        "refused": round(cost.refused, 2),
    }
