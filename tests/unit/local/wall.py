"""A simulator under a wall clock for tests, with events that can be waited for and lines that can be read."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from builders import a_request
from processes import alive
from trainmaster.local.simulator import Profile, SageMakerSimulator, WallClock
from trainmaster.local.simulator.containers.factory import ContainerFactory
from trainmaster.local.simulator.containers.runner import CommandRunner
from trainmaster.local.simulator.events.log_lines import LogLine

AT_ONCE = Profile(
    requesting_seconds=0, starting_seconds=0, downloading_seconds=0, uploading_seconds=0, training_seconds=30
)
PATIENCE_SECONDS = 20
COUNTER = Path(__file__).with_name("counter_script.py")


class Stream:
    """Things that arrive from other threads."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._arrived = threading.Condition()

    def put(self, thing: Any) -> None:
        with self._arrived:
            self.things.append(thing)
            self._arrived.notify_all()

    def wait_for(self, wanted: Callable[[Any], bool]) -> Any:
        """The first thing that is wanted, waiting for it."""
        with self._arrived:
            self._arrived.wait_for(lambda: any(map(wanted, self.things)), PATIENCE_SECONDS)
            return next(thing for thing in self.things if wanted(thing))


class WallAccount:
    """A simulator that runs commands in a directory of the test's own."""

    def __init__(
        self,
        root: Path,
        *,
        inherited: dict[str, str] | None = None,
        containers: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.events, self.lines = Stream(), Stream()
        clock = WallClock()
        inherited = {"PATH": os.environ["PATH"], **(inherited or {})}
        self.root = root
        self.runner = CommandRunner(ContainerFactory(root, inherited, **(containers or {})), clock, logs=self.lines.put)
        settings = {"profile": AT_ONCE, "grace": timedelta(seconds=10), **settings}
        self.simulator = SageMakerSimulator(
            clock,
            sink=self.events.put,
            containers=self.runner,
            logs=self.lines.put,
            check_responses=True,
            **settings,
        )
        self.client: Any = self.simulator.client()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.simulator.close()

    def create(self, name: str, *argv: str, arguments: tuple[str, ...] = (), **members: Any) -> None:
        self.client.create_training_job(**a_command(name, *argv, arguments=arguments, **members))

    def python(self, name: str, program: str, **members: Any) -> None:
        # SageMaker takes 256 characters an argument, so the program goes into a file.
        path = self.root / f"{name}.py"
        path.write_text(program)
        self.create(name, sys.executable, str(path), **members)

    def describe(self, name: str) -> dict[str, Any]:
        return self.client.describe_training_job(TrainingJobName=name)

    def wait_for(self, name: str, secondary: str) -> dict[str, Any]:
        """The event's detail that told it."""
        event = self.events.wait_for(
            lambda event: event["detail"]["TrainingJobName"] == name and event["detail"]["SecondaryStatus"] == secondary
        )
        return event["detail"]

    def wait_for_line(self, text: str) -> LogLine:
        return self.lines.wait_for(lambda line: text in line.text)


def a_command(name: str, *argv: str, arguments: tuple[str, ...] = (), **members: Any) -> dict[str, Any]:
    """A request whose script is this command."""
    algorithm = {"TrainingImage": "local", "TrainingInputMode": "File", "ContainerEntrypoint": list(argv)}
    if arguments:
        algorithm["ContainerArguments"] = list(arguments)
    return a_request(name, AlgorithmSpecification=algorithm, **members)


def wait_until_gone(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    waiting = threading.Event()
    for _ in range(PATIENCE_SECONDS * 50):
        if not alive(pid):
            return
        waiting.wait(0.02)
    raise AssertionError(f"process {pid} is still there")
