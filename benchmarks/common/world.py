"""The tests' world with a meter that counts every unit for its step."""

from __future__ import annotations

import importlib
import logging
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from benchmarks.common.meter import Meter
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.ports.store import Store
from trainmaster.service.submit import submit

_tests_world = importlib.import_module("world")
TABLE: str = _tests_world.TABLE
EPOCH = _tests_world.EPOCH
make_table: Callable[..., None] = _tests_world.make_table
CALLER = "arn:aws:sts::111122223333:assumed-role/research/ada"
_NEVER = timedelta(days=36_500)


class MeteredStore:
    """A store that sets the meter's step for each method."""

    def __init__(self, store: Store, world: MeteredWorld) -> None:
        self._store = store
        self._world = world

    def __getattr__(self, verb: str) -> Any:
        called = getattr(self._store, verb)

        def metered(*args: Any, **kwargs: Any) -> Any:
            if verb == "begin_pass":
                self._world.phase = "pass"
                self._world.passes += 1
            with self._world.meter.step(_step(self._world.phase, verb, args)):
                answer = called(*args, **kwargs)
            if verb == "transition" and answer:
                self._world.ended += sum(after.state in ENDED for _, after in args[0])
            return answer

        return metered


class MeteredWorld(_tests_world.World):  # type: ignore[misc, name-defined]
    """A world on a metered engine, by default without ticks.

    Args:
        dynamodb: a client of an engine with the table in it.
        ticks: whether the minute's tick comes.
        options: of the tests' world.
    """

    def __init__(self, dynamodb: Any, *, ticks: bool = False, **options: Any) -> None:
        logging.getLogger("manager").setLevel(logging.WARNING)
        self.meter = Meter(dynamodb)
        self.phase = "submit"
        self.ended = 0
        self.invocations = 0
        self.passes = 0
        self.sagemaker_calls: Counter[str] = Counter()
        super().__init__(dynamodb, rates={"ListTrainingJobs": None}, **options)
        self.sagemaker.meta.events.register("before-call.sagemaker.*", self._note_call)
        if not ticks:
            self.next_tick = EPOCH + _NEVER

    def submit_request(self, request: dict[str, Any]) -> Job:
        """Submit a request as the API's route does."""
        self.phase = "submit"
        job: Job = submit(self.api_context, Caller(CALLER), self.admission, request).job
        return job

    def invoke(self) -> None:
        """Invoke the manager once: events first, then passes."""
        self.phase = "event"
        self.invocations += 1
        super().invoke()

    def wake_and_settle(self) -> None:
        """Send a wake message that is not merged with another, and process everything that follows."""
        self.queue.send('{"kind":"wake","follows":0}')
        self.settle()

    def _note_call(self, model: Any, **_: Any) -> None:
        self.sagemaker_calls[model.name] += 1

    def _store(self) -> Any:
        return MeteredStore(super()._store(), self)


def _step(phase: str, verb: str, args: tuple[Any, ...]) -> str:
    if verb == "transition":
        return f"{phase}: {_change(args[0])}"
    return f"{phase}: {_VERBS.get(verb, verb)}"


_VERBS = {
    "pools": "read pools",
    "submit": "store job",
    "read_snapshot": "survey",
    "begin_pass": "fence and read",
    "request_of": "read request",
    "find": "find job",
}


def _change(changes: Any) -> str:
    """Return the step of a transition: the new state, or the event recorded in the same state."""
    before, after = changes[0]
    if after.state is not before.state:
        return str(after.state)
    if before.attempt is not None and after.attempt.launched and not before.attempt.launched:
        return "launched"
    if before.attempt is not None and after.attempt.stop_sent and not before.attempt.stop_sent:
        return "stop sent"
    return "noted"
