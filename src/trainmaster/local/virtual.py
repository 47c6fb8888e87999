"""The shipped launcher and the service's clock over the simulator and its virtual clock, in one process.

For replays and benchmarks, where nothing travels and nobody sleeps. It must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from trainmaster.bootstrap import Application, Settings
from trainmaster.local.simulator import SageMakerSimulator, VirtualClock
from trainmaster.ports import Clock, Launcher


def launcher_over(simulator: SageMakerSimulator) -> Launcher:
    """The shipped launcher over the simulator."""
    settings = Settings(queue="virtual", table="none", pools="")
    return Application(settings, cast(Any, _Session(simulator))).launcher


@dataclass(frozen=True, slots=True)
class _Session:
    """A boto3 session, as far as it is asked for the SageMaker client."""

    simulator: SageMakerSimulator

    def client(self, _service: str, **_: Any) -> Any:
        return self.simulator.direct(checked=False)


@dataclass(frozen=True, slots=True)
class VirtualTime(Clock):
    """The virtual clock as the service's: nobody sleeps."""

    clock: VirtualClock

    def now(self) -> datetime:
        """The time on the virtual clock, UTC."""
        return self.clock.now()

    def sleep(self, seconds: float) -> None:
        """Nothing waits."""
