"""The elastic scenario: a job of torch processes scales up and down without losing a step.

It starts with one instance beside two small jobs, scales up to three when they end, scales down to one for an urgent
job of two instances, and scales up again when that job has ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trainmaster.local.demo.elastic_requests import ELASTIC, IMMEDIATE_GROWTH, OTHERS, URGENT, Requests
from trainmaster.local.demo.queue import ENDED, Queue, Row
from trainmaster.local.demo.scenario import UnexpectedState

_STEPS_PER_WORLD = 25
"""Steps that a world must take before the scenario continues."""
_SCENE_SECONDS = 240.0
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the elastic job, as its first rank reported it.

    Attributes:
        at: seconds since 1970.
        world: processes that shared the step.
        round: round of the rendezvous.
    """

    at: float
    step: int
    loss: float
    world: int
    round: int


@dataclass(frozen=True, slots=True)
class TrainingJobRecord:
    """A training job of SageMaker: instances, start and end in seconds since 1970."""

    name: str
    status: str
    instances: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Record:
    """Record of a run.

    Attributes:
        steps: in the order of their time.
        training_jobs: all training jobs of the scenario, in the order of their creation.
        states: states of the elastic job as polled, without repetition.
        job: the elastic job at its end.
    """

    steps: tuple[Step, ...]
    training_jobs: tuple[TrainingJobRecord, ...]
    states: tuple[str, ...]
    job: Row

    @property
    def worlds(self) -> tuple[int, ...]:
        """Sizes of the worlds that have trained, in order."""
        return _without_repetition([step.world for step in self.steps])

    @property
    def lost(self) -> int:
        """Number of steps that were repeated."""
        return len(self.steps) - len({step.step for step in self.steps})

    @property
    def pauses(self) -> tuple[float, ...]:
        """Seconds from the last step of a world to the first step of the next, including that step."""
        return tuple(after.at - before.at for before, after in pairwise(self.steps) if before.round != after.round)


class ElasticScenario:
    """Runs the scenario on a local stack whose pool has three instances."""

    def __init__(self, queue: Queue, requests: Requests) -> None:
        self._queue = queue
        self._requests = requests
        self._states: list[str] = []

    def run(self) -> Iterator[str]:
        """Run the scenario; yield a sentence at the end of each scene. Raises `UnexpectedState`."""
        try:
            yield from self._scenes()
        finally:
            for name in (*OTHERS, URGENT):
                self._requests.release(name)

    def record(self) -> Record:
        """Return the record of the run so far."""
        training_jobs = [
            _record_of(row) for name in (ELASTIC, *OTHERS, URGENT) for row in self._queue.training_jobs(name)
        ]
        ordered = tuple(sorted(training_jobs, key=lambda each: each.start))
        return Record(self._steps(), ordered, _without_repetition(self._states), self._queue.job(ELASTIC))

    def _scenes(self) -> Iterator[str]:
        self._queue.change_settings(IMMEDIATE_GROWTH)
        for name in OTHERS:
            self._queue.submit(self._requests.other(name))
        self._wait_until(lambda: all(self._queue.job(name)["jobState"] == "running" for name in OTHERS), "run", OTHERS)
        self._queue.submit(self._requests.elastic())
        self._wait_until_trained(worlds=(1,))
        yield f"{ELASTIC} has started with the one free instance"
        for name in OTHERS:
            self._requests.release(name)
        self._wait_until_trained(worlds=(1, 3))
        yield "The other jobs have ended: it has scaled up to three"
        self._queue.submit(self._requests.urgent())
        self._wait_until(lambda: self._queue.job(URGENT)["jobState"] == "running", "run", (URGENT,))
        self._wait_until_trained(worlds=(1, 3, 1))
        yield f"{URGENT} needs two: it has scaled down to one"
        self._requests.release(URGENT)
        self._wait_until_trained(worlds=(1, 3, 1, 3))
        yield f"{URGENT} has ended: it has scaled up to three again"
        self._wait_until(lambda: self._state() == "completed", "complete", (ELASTIC,))
        yield f"{ELASTIC} has completed"

    def _wait_until_trained(self, worlds: tuple[int, ...]) -> None:
        """Wait until worlds of exactly these sizes have trained, the last one for some steps."""

        def reached() -> bool:
            if self._state() in ENDED:
                raise UnexpectedState(f"{ELASTIC} has ended too early: {self._queue.job(ELASTIC)}")
            sizes = [step.world for step in self._steps()]
            seen = _without_repetition(sizes)
            if seen != worlds[: len(seen)]:
                raise UnexpectedState(f"{ELASTIC} has trained in worlds of {seen}, not of {worlds}")
            return seen == worlds and sizes[-_STEPS_PER_WORLD:] == [worlds[-1]] * _STEPS_PER_WORLD

        self._wait_until(reached, f"train in worlds of {worlds}", (ELASTIC,))

    def _wait_until(self, reached: Callable[[], bool], what: str, names: tuple[str, ...]) -> None:
        deadline = time.monotonic() + _SCENE_SECONDS
        while not reached():
            if time.monotonic() > deadline:
                last_states = {name: self._queue.job(name) for name in names}
                raise UnexpectedState(
                    f"{' and '.join(names)} did not {what} within {_SCENE_SECONDS:.0f} seconds: {last_states}"
                )
            time.sleep(_POLL_SECONDS)

    def _state(self) -> str:
        state = str(self._queue.job(ELASTIC)["jobState"])
        self._states.append(state)
        return state

    def _steps(self) -> tuple[Step, ...]:
        steps = (_step(at, text) for at, text in self._queue.lines(ELASTIC) if text.startswith('{"step"'))
        return tuple(sorted(steps, key=lambda step: (step.round, step.at, step.step)))


def _step(at: float, text: str) -> Step:
    caption = json.loads(text)
    return Step(at, caption["step"], caption["loss"], caption["world"], caption["round"])


def _record_of(row: Row) -> TrainingJobRecord:
    return TrainingJobRecord(
        row["TrainingJobName"],
        row["TrainingJobStatus"],
        row["ResourceConfig"]["InstanceCount"],
        row["CreationTime"].timestamp(),
        row["TrainingEndTime"].timestamp() if "TrainingEndTime" in row else time.time(),
    )


def _without_repetition(values: list[Any]) -> tuple[Any, ...]:
    """Return the values without those that equal their predecessor."""
    return tuple(value for number, value in enumerate(values) if number == 0 or values[number - 1] != value)
