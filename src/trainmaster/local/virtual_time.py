"""The shipped launcher and the service's clock over the simulator with a virtual clock, in one process.

For replays and benchmarks. Times are seconds from `EPOCH`, with a tick at every whole minute, as on AWS.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any, cast

from trainmaster.bootstrap import Application, Settings
from trainmaster.local.simulator import Profile, SageMakerSimulator, VirtualClock
from trainmaster.local.simulator.clock import EPOCH
from trainmaster.ports.runtime import Clock
from trainmaster.ports.sagemaker import Launcher

TICK_SECONDS = 60


def at(seconds: float) -> datetime:
    """Return the time this many seconds after `EPOCH`."""
    return EPOCH + timedelta(seconds=seconds)


def seconds_at(time: datetime) -> float:
    """Return the seconds from `EPOCH` to this time."""
    return (time - EPOCH).total_seconds()


def next_tick(time: datetime | None, now: datetime) -> datetime | None:
    """Return the first tick at or after this time that is still in the future; None for None."""
    if time is None:
        return None
    minutes = ceil(max(seconds_at(time), 0.0) / TICK_SECONDS)
    passed = int(seconds_at(now) // TICK_SECONDS)
    return at(max(minutes, passed + 1) * TICK_SECONDS)


def instant_profile(restart_cost: float = 0.0) -> Profile:
    """Return a profile in which only training, and a restart from a checkpoint, take time."""
    return Profile(
        requesting_seconds=0,
        starting_seconds=0,
        warm_starting_seconds=0,
        downloading_seconds=0,
        uploading_seconds=0,
        stopping_seconds=0,
        restarting_seconds=restart_cost,
        limited=False,
    )


def launcher_for(simulator: SageMakerSimulator) -> Launcher:
    """Return the shipped launcher over the simulator."""
    settings = Settings(queue="virtual", table="none", pools="")
    return Application(settings, cast(Any, _Session(simulator))).launcher


@dataclass(frozen=True, slots=True)
class _Session:
    """A boto3 session for the SageMaker client only."""

    simulator: SageMakerSimulator

    def client(self, _service: str, **_: Any) -> Any:
        return self.simulator.direct(checked=False)


@dataclass(frozen=True, slots=True)
class VirtualTime(Clock):
    """The virtual clock as the clock of the service."""

    clock: VirtualClock

    def now(self) -> datetime:
        """Return the time of the virtual clock, UTC."""
        return self.clock.now()

    def sleep(self, seconds: float) -> None:
        """Return at once."""
