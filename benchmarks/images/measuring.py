"""Cost of a queue of image requests: starts, passes that can start nothing, and ends with the starts they allow.

Units are counted by the engine, times are of this machine and its loopback. It must not know how rows look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.common.meter import Cost, total
from benchmarks.common.timing import shown
from benchmarks.images.stage import Queue, Stage, filled

RUNNING = 100
"""Images that all endpoints together take at once."""
PASSES = 10
ROUNDS = 3
"""Of ends and next starts, where enough wait."""
Told = Callable[[str], None]
Figures = dict[str, Any]


def measure(outstanding: int, endpoints: int, told: Told = lambda _: None, *, running: int = RUNNING) -> Figures:
    """Everything at one size; so many wait besides those that run.

    Args:
        outstanding: requests that wait while the endpoints are full.
        endpoints: over so many endpoints.
        told: takes what is being done.
        running: images that the endpoints take together, a multiple of their number.
    """
    told("filling")
    rounds = min(ROUNDS, outstanding // running)
    queue = Queue(outstanding + running, endpoints, running, served=(1 + rounds) * running)
    with filled(queue) as client:
        stage = Stage(client)
        told("starts")
        starts = _starts(stage, running)
        told("passes")
        passes = _passes(stage)
        told("turns")
        turns = [_turn(stage, running) for _ in range(rounds)]
    return {
        "outstanding": outstanding,
        "endpoints": endpoints,
        "running": running,
        "starts": starts,
        "pass": passes,
        "turn": {**turns[0], "seconds": [round(turn["seconds"], 4) for turn in turns]},
    }


def _starts(stage: Stage, count: int) -> Figures:
    """Nothing runs, and one wake starts all that the endpoints take."""
    with _spending(stage) as spent:
        stage.wake_and_settle()
    _check(stage, count)
    return _each(spent, count)


def _passes(stage: Stage) -> Figures:
    """The endpoints are full, and the manager is woken: all that it reads it decides to have wait."""
    found = [_pass(stage) for _ in range(PASSES)]
    first = found[0]
    if any(each["cost"] != first["cost"] for each in found):
        raise RuntimeError(f"passes in which nothing happens cost differently: {found}")
    cost, decisions = first["cost"], len(stage.read)
    timed = shown([each["seconds"] for each in found])
    return {
        "decisions": decisions,
        "lanes": len({job.lane for job in stage.read}),
        "read_units": cost.reads,
        "write_units": cost.writes,
        "calls": cost.calls,
        "decisions_per_s": round(decisions / timed["median_ms"] * 1000, 1),
        **timed,
    }


def _pass(stage: Stage) -> Figures:
    with _spending(stage) as spent:
        stage.wake_and_settle()
    return spent


def _turn(stage: Stage, count: int) -> Figures:
    """All that run come to their end, each with a message that tells it, and as many others start."""
    ended = stage.ended
    if (done := stage.work()) != count:
        raise RuntimeError(f"{done} images were worked on, not {count}")
    with _spending(stage) as spent:
        stage.settle()
    if stage.ended - ended != count:
        raise RuntimeError(f"{stage.ended - ended} images have ended, not {count}")
    _check(stage, count)
    return _each(spent, count)


@contextmanager
def _spending(stage: Stage) -> Iterator[Figures]:
    """Measure the block: units as `cost`, seconds by the clock, and processor seconds of this process."""
    spent: Figures = {}
    stage.meter.reset()
    passes = stage.passes
    begin, processor = time.perf_counter(), time.process_time()
    yield spent
    spent["seconds"] = time.perf_counter() - begin
    spent["processor_s"] = time.process_time() - processor
    by_step = stage.meter.reset()
    spent["cost"] = total(by_step.values())
    spent["steps"] = by_step
    spent["passes"] = stage.passes - passes


def _each(spent: Figures, count: int) -> Figures:
    """The share of one image of so many."""
    one: Cost = spent["cost"].over(count)
    return {
        "images": count,
        "passes": spent["passes"],
        "read_units": round(one.reads, 2),
        "write_units": round(one.writes, 2),
        "calls": round(one.calls, 2),
        "refused": round(one.refused, 2),
        "seconds": round(spent["seconds"], 4),
        "per_s": round(count / spent["seconds"], 1),
        "processor_s": round(spent["processor_s"], 4),
        "per_processor_s": round(count / spent["processor_s"], 1),
        "steps": {
            name: {"read_units": cost.reads, "write_units": cost.writes, "calls": cost.calls}
            for name, cost in spent["steps"].items()
        },
    }


def _check(stage: Stage, count: int) -> None:
    """As many run as the endpoints take, and all of them really: their regions were dispatched."""
    active = stage.api_context.store.read_snapshot().active
    dispatched = {job for job, _, _ in stage.regions.messages}
    if len(active) != count or dispatched != {job.name for job in active} or stage.aside.letters:
        raise RuntimeError(f"{len(active)} run and {len(dispatched)} have regions, not {count}")
