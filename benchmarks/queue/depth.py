"""Cost by the number of waiting jobs: a pass, the turn of a job, a submission, API responses, and their times.

It runs the shipped code on a table with this many waiting jobs. Times are those of this machine and its loopback; only
units and calls predict AWS.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from api_world import CONTEXT, rest_event
from benchmarks.common.meter import Cost, total
from benchmarks.common.requests import request
from benchmarks.common.timing import milliseconds, shown
from benchmarks.common.world import MeteredWorld
from benchmarks.queue.waiting import waiting_table
from builders import G5, P5
from trainmaster.handlers.api.app import build_app
from trainmaster.planner.schedule import schedule

CAPS = {P5: 40, G5: 40}
PASSES, TURNS, SUBMISSIONS = 20, 5, 20
OnStep = Callable[[str], None]


def measure(waiting: int, on_step: OnStep = lambda _: None) -> dict[str, Any]:
    """Measure one depth: 80 running jobs in two full pools, and the rest waiting in two lanes."""
    on_step("loading")
    with waiting_table(waiting + sum(CAPS.values())) as client:
        world = MeteredWorld(client, pools=",".join(f"{kind}={cap}" for kind, cap in CAPS.items()))
        on_step("starting 80 jobs")
        world.wake_and_settle()
        world.run(300, step=5)
        if len(world.in_use()) != len(CAPS) or world.in_use().total() != sum(CAPS.values()):
            raise RuntimeError(f"the pools are not full: {world.in_use()}")
        return {"waiting": waiting, **_measured(world, on_step)}


def _measured(world: MeteredWorld, on_step: OnStep) -> dict[str, Any]:
    snapshot = world.api_context.store.read_snapshot()
    on_step("planning")
    planner = milliseconds(lambda: schedule(snapshot, world.now(), random.Random(1)), times=200, at_most=10)
    on_step("passes")
    passes = _repeated(world, PASSES, lambda _: world.wake_and_settle())
    on_step("turns")
    turns = _repeated(world, TURNS, lambda number: _one_ends(world, number))
    on_step("answers")
    answered = answers(world)
    on_step("submissions")
    submissions = _repeated(world, SUBMISSIONS, lambda number: world.submit_request(_new(number)))
    return {
        "active": len(snapshot.active),
        "considered": len(snapshot.waiting),
        "planner": planner,
        "pass": passes,
        "turn": turns,
        "submit": submissions,
        "answers": answered,
    }


def _new(number: int) -> dict[str, Any]:
    """Return a request with the lowest priority, which is placed last."""
    return request(f"new-{number:04d}", priority=-number, kind=P5, training_seconds=86_000)


def _one_ends(world: MeteredWorld, number: int) -> None:
    """Stop a running job; process its end, and the start of the next job."""
    running = sorted(name for name, job in world.training_jobs.items() if job["TrainingJobStatus"] == "InProgress")
    world.simulator.call("StopTrainingJob", TrainingJobName=running[number])
    world.run(300, step=5)


def answers(world: MeteredWorld) -> dict[str, Any]:
    """Measure the API's responses, in a deployment without image jobs; some jobs must wait and some run."""
    app = build_app(SimpleNamespace(api_context=world.api_context, admission=world.admission, kinds={}))
    waits = world.api_context.store.read_snapshot().waiting[0].name
    runs = world.api_context.store.read_snapshot().active[0].name
    asked = {
        "GET /jobs/{waiting}": (f"/jobs/{waits}", {}),
        "GET /jobs/{running}": (f"/jobs/{runs}", {}),
        "GET /jobs": ("/jobs", {"limit": "50"}),
        "GET /queue": ("/queue", {"limit": "50"}),
        "GET /pools": ("/pools", {}),
    }
    return {name: _repeated(world, 5, partial(_ask, app, *where)) for name, where in asked.items()}


def _ask(app: Any, path: str, query: dict[str, Any], _: int) -> None:
    answer = app.resolve(rest_event("GET", path, query=query), CONTEXT)
    if answer["statusCode"] != 200:
        raise RuntimeError(f"{path}: {answer['body']}")


def _repeated(world: MeteredWorld, times: int, act: Callable[[int], Any]) -> dict[str, Any]:
    """Return the average cost of an action, the minimum and maximum reads, and its median time."""
    costs: list[Cost] = []
    taken: list[float] = []
    for number in range(times):
        world.meter.reset()
        begin = time.perf_counter()
        act(number)
        taken.append(time.perf_counter() - begin)
        costs.append(total(world.meter.reset().values()))
    mean = total(costs).over(times)
    return {
        "read_units": round(mean.reads, 2),
        "write_units": round(mean.writes, 2),
        "calls": round(mean.calls, 2),
        "refused": round(mean.refused, 2),
        "least_and_most_reads": [min(cost.reads for cost in costs), max(cost.reads for cost in costs)],
        **shown(taken),
    }
