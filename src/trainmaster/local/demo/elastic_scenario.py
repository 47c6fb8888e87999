"""The elastic story: one job of real torch processes that grows, makes room, and grows back, and loses no step.

It starts with one instance beside two small jobs, grows to three when they end, is shrunk to one by an urgent job of
two, and grows back when that has ended. It must show what happened, never what should have; and where the queue does
something else, fail.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trainmaster.local.demo.elastic_requests import ALWAYS, ELASTIC, OTHERS, URGENT, Requests
from trainmaster.local.demo.queue import ENDED, Queue, Row
from trainmaster.local.demo.scenario import NotAsTold

_ENOUGH = 25
"""Steps that a world takes before the story goes on."""
_SCENE_SECONDS = 240.0
_ASK_EVERY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the elastic job, as its first rank has told.

    Attributes:
        at: when, in seconds since 1970.
        world: processes that shared it.
        round: of their rendezvous.
    """

    at: float
    step: int
    loss: float
    world: int
    round: int


@dataclass(frozen=True, slots=True)
class Held:
    """A training job as SageMaker had it: instances, from its creation to its end, in seconds since 1970."""

    name: str
    status: str
    instances: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Record:
    """What has happened.

    Attributes:
        steps: in the order of their time.
        held: all training jobs of the story, in the order of their creation.
        states: of the elastic job, whenever it was asked, without repetition.
        job: the elastic job at its end.
    """

    steps: tuple[Step, ...]
    held: tuple[Held, ...]
    states: tuple[str, ...]
    job: Row

    @property
    def worlds(self) -> tuple[int, ...]:
        """Sizes of the worlds that have trained, one after another."""
        return _changes([step.world for step in self.steps])

    @property
    def lost(self) -> int:
        """Steps that were taken more than once."""
        return len(self.steps) - len({step.step for step in self.steps})

    @property
    def pauses(self) -> tuple[float, ...]:
        """Seconds from the last step of a world to the first of the next; what a step takes is among them."""
        return tuple(after.at - before.at for before, after in pairwise(self.steps) if before.round != after.round)


class ElasticStory:
    """Plays the story on a running stack whose pool has three instances."""

    def __init__(self, queue: Queue, requests: Requests) -> None:
        self._queue = queue
        self._requests = requests
        self._states: list[str] = []

    def play(self) -> Iterator[str]:
        """Play; yields a sentence at each scene's end, while the queue stands as it says. Raises `NotAsTold`."""
        try:
            yield from self._scenes()
        finally:
            for name in (*OTHERS, URGENT):
                self._requests.release(name)

    def record(self) -> Record:
        """What has happened so far."""
        held = [_held(row) for name in (ELASTIC, *OTHERS, URGENT) for row in self._queue.training_jobs(name)]
        ordered = tuple(sorted(held, key=lambda each: each.start))
        return Record(self._steps(), ordered, _changes(self._states), self._queue.job(ELASTIC))

    def _scenes(self) -> Iterator[str]:
        self._queue.settle(ALWAYS)
        for name in OTHERS:
            self._queue.submit(self._requests.other(name))
        self._until(lambda: all(self._queue.job(name)["jobState"] == "running" for name in OTHERS), "run", OTHERS)
        self._queue.submit(self._requests.elastic())
        self._trained(worlds=(1,))
        yield f"{ELASTIC} has started with the one instance that was left"
        for name in OTHERS:
            self._requests.release(name)
        self._trained(worlds=(1, 3))
        yield "The others have ended: it has grown to three"
        self._queue.submit(self._requests.urgent())
        self._until(lambda: self._queue.job(URGENT)["jobState"] == "running", "run", (URGENT,))
        self._trained(worlds=(1, 3, 1))
        yield f"{URGENT} needs two: it has gone on with one"
        self._requests.release(URGENT)
        self._trained(worlds=(1, 3, 1, 3))
        yield f"{URGENT} has ended: it has grown back to three"
        self._until(lambda: self._state() == "completed", "complete", (ELASTIC,))
        yield f"{ELASTIC} has completed"

    def _trained(self, worlds: tuple[int, ...]) -> None:
        """Wait until worlds of these sizes, and no others, have trained, the last one for some steps."""

        def so() -> bool:
            if self._state() in ENDED:
                raise NotAsTold(f"{ELASTIC} has ended too early: {self._queue.job(ELASTIC)}")
            sizes = [step.world for step in self._steps()]
            seen = _changes(sizes)
            if seen != worlds[: len(seen)]:
                raise NotAsTold(f"{ELASTIC} has trained in worlds of {seen}, not of {worlds}")
            return seen == worlds and sizes[-_ENOUGH:] == [worlds[-1]] * _ENOUGH

        self._until(so, f"train in worlds of {worlds}", (ELASTIC,))

    def _until(self, so: Callable[[], bool], what: str, names: tuple[str, ...]) -> None:
        deadline = time.monotonic() + _SCENE_SECONDS
        while not so():
            if time.monotonic() > deadline:
                stand = {name: self._queue.job(name) for name in names}
                raise NotAsTold(f"{' and '.join(names)} did not {what} within {_SCENE_SECONDS:.0f} seconds: {stand}")
            time.sleep(_ASK_EVERY_SECONDS)

    def _state(self) -> str:
        state = str(self._queue.job(ELASTIC)["jobState"])
        self._states.append(state)
        return state

    def _steps(self) -> tuple[Step, ...]:
        said = (_step(at, text) for at, text in self._queue.lines(ELASTIC) if text.startswith('{"step"'))
        return tuple(sorted(said, key=lambda step: (step.round, step.at, step.step)))


def _step(at: float, text: str) -> Step:
    told = json.loads(text)
    return Step(at, told["step"], told["loss"], told["world"], told["round"])


def _held(row: Row) -> Held:
    return Held(
        row["TrainingJobName"],
        row["TrainingJobStatus"],
        row["ResourceConfig"]["InstanceCount"],
        row["CreationTime"].timestamp(),
        row["TrainingEndTime"].timestamp() if "TrainingEndTime" in row else time.time(),
    )


def _changes(values: list[Any]) -> tuple[Any, ...]:
    """The values without those that equal the one before."""
    return tuple(value for number, value in enumerate(values) if number == 0 or values[number - 1] != value)
