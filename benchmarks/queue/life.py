"""Cost of jobs from submission to end, by step: alone, in a burst, preempted, with other requests.

Jobs run through the shipped use cases, events and passes on the engine, which counts the units.
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
_MAX_SECONDS = 200_000
_PHASES = ("submit", "pass", "event")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of jobs that all end.

    Attributes:
        name: name in the table.
        pools: caps by instance type.
        jobs: number of jobs submitted at once; a burst uses the pools in turn.
        options: further arguments of each request.
        later: number of jobs with a higher priority, submitted once the first ones run.
        events: types of the events that the deployment puts on an event bus.
    """

    name: str
    pools: Mapping[str, int]
    jobs: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    later: int = 0
    events: str = "none"


def scenarios(burst: int) -> list[Scenario]:
    """Return the scenarios of the report."""
    four = dict.fromkeys((P5, P4, G5, G5_LARGE), 8)
    return [
        Scenario("alone", {P5: 2}),
        Scenario("alone, text that does not compress", {P5: 2}, options={"dense": True}),
        Scenario("alone, a 64 KB request", {P5: 2}, options={"size": 65_536, "dense": True}),
        Scenario("two, one preempted by the other", {P5: 1}, later=1),
        Scenario("burst, one pool of 8", {P5: 8}, burst),
        Scenario("burst, four pools of 8", four, burst),
        Scenario("burst, one pool of 64", {G5: 64}, burst),
    ]


def measure_life(scenario: Scenario, on_progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
    """Return the cost of an average job, by step.

    Args:
        scenario: the scenario.
        on_progress: called with the number of ended jobs.
    """
    with engine() as client:
        make_table(client)
        pools = ",".join(f"{kind}={cap}" for kind, cap in scenario.pools.items())
        world = MeteredWorld(client, pools=pools, published=scenario.events)
        count = scenario.jobs + scenario.later
        spent = _play(world, scenario, on_progress)
    whole = total(spent.values())
    steps = {step: _shown(cost.over(count)) for step, cost in sorted(spent.items(), key=lambda item: _place(item[0]))}
    return {
        "name": scenario.name,
        "jobs": count,
        "steps": steps,
        "job": _shown(whole.over(count)),
        "messages": round(world.queue.sent / count, 2),
        "invocations": round(world.invocations / count, 2),
        "sagemaker_calls": {name: round(calls / count, 2) for name, calls in world.sagemaker_calls.items()},
        "dollars_per_1000_jobs": dollars(whole.over(count)) * 1000,
    }


def measure_idle(active: int) -> dict[str, Any]:
    """Measure a tick with this many running jobs and no waiting ones: the average of ten minutes."""
    with engine() as client:
        make_table(client)
        world = MeteredWorld(client, pools=f"{G5}={max(active, 1)}", ticks=True)
        for number in range(active):
            world.submit_request(request(f"job{number:04d}", kind=G5, training_seconds=80_000))
        world.run(600)
        world.meter.reset()
        world.run(600, step=30)
        spent = total(world.meter.reset().values()).over(10)
    return {"running": active, "tick": _shown(spent), "dollars_per_month": dollars(spent) * 60 * 24 * 30}


def _play(world: MeteredWorld, scenario: Scenario, on_progress: Callable[[int], None]) -> dict[str, Cost]:
    rng = random.Random(1)
    kinds = list(scenario.pools)
    for number in range(scenario.jobs):
        kind = kinds[number % len(kinds)]
        seconds = rng.randint(300, 900)
        world.submit_request(request(f"job{number:04d}", kind=kind, training_seconds=seconds, **scenario.options))
    if scenario.later:
        world.run(200, step=1)
    for number in range(scenario.later):
        world.submit_request(
            request(f"urgent{number:04d}", priority=1, kind=kinds[0], training_seconds=300, **scenario.options)
        )
    _run_to_end(world, scenario.jobs + scenario.later, on_progress)
    return world.meter.reset()


def _run_to_end(world: MeteredWorld, count: int, on_progress: Callable[[int], None]) -> None:
    """Run in steps of a second, so that no more events arrive together than in reality."""
    for _ in range(_MAX_SECONDS // 60):
        world.run(60, step=1)
        done = world.ended
        on_progress(done)
        if done >= count:
            return
    raise RuntimeError("the jobs have not ended")


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
