"""The shipped launcher and the service's clock over the simulator and its virtual clock, in one process.

For replays and benchmarks, where nothing travels and nobody sleeps. Their time is in seconds from `EPOCH`, with a tick
at every whole minute, as on AWS. It must not decide anything.
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
    """The time so many seconds after `EPOCH`."""
    return EPOCH + timedelta(seconds=seconds)


def seconds_at(time: datetime) -> float:
    """Seconds from `EPOCH` to that time."""
    return (time - EPOCH).total_seconds()


def next_tick(time: datetime | None, now: datetime) -> datetime | None:
    """The first tick at or after that time that is still to come; None for none."""
    if time is None:
        return None
    minutes = ceil(max(seconds_at(time), 0.0) / TICK_SECONDS)
    passed = int(seconds_at(now) // TICK_SECONDS)
    return at(max(minutes, passed + 1) * TICK_SECONDS)


def instant_profile(restart_cost: float = 0.0) -> Profile:
    """Jobs run, and nothing else takes time, but for a restart: so many seconds."""
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
