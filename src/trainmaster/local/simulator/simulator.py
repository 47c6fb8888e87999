"""The simulator as its users see it: operations, the passing of time, and what comes out of it.

One engine behind three ways in: the methods here, a boto3 client that never leaves the process, and HTTP. It lets
one caller into the engine at a time and hands events out only after it has let go of the engine, so that a sink may
call back. It must not know the rules of training jobs: `engine` does.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from botocore.config import Config

from trainmaster.local.simulator.clock import Clock, VirtualClock
from trainmaster.local.simulator.events.events import AWS_SOURCE, Envelope, Sink
from trainmaster.local.simulator.events.outbox import Containers, Outbox
from trainmaster.local.simulator.faults import DEFAULT_RATES, Faults, Throttle
from trainmaster.local.simulator.service.capacity import Ec2, Quotas
from trainmaster.local.simulator.service.demand import Market
from trainmaster.local.simulator.service.engine import Account, Engine
from trainmaster.local.simulator.service.profiles import Profile, Profiles
from trainmaster.local.simulator.service.state import GRACE, AccountState
from trainmaster.local.simulator.ticker import Ticker
from trainmaster.local.simulator.wire import client as clients
from trainmaster.local.simulator.wire.constraints import check_answer, check_request
from trainmaster.local.simulator.wire.direct import DirectClient
from trainmaster.local.simulator.wire.protocol import Reply, answer, service_model

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

Hook = Callable[[str, str], None]
"""Called as `on_call(operation, "before")` and `(operation, "after")` around each call; what it raises is raised."""


class SageMakerSimulator:
    """An account's SageMaker training jobs, as far as the queue sees them.

    Args:
        clock: a `VirtualClock` that `advance` moves, or a `WallClock`, under which time passes by itself.
        limits: the account's limit per instance type; types that are not named have none.
        spot_limits: the same for spot, counted apart; `limits` where it is not given.
        warm_limits: the same for warm pools; none where it is not given.
        capacity: EC2's instances per type; a type that is not named is never short.
        spot_capacity: the same for spot.
        profile: the course of every job that nothing else is said of.
        speed: divides the durations of all profiles, not the limits that requests set.
        rates: calls a second per operation, besides those known of AWS; None as a value lifts a limit.
        account: number, region, and the error for a job that does not exist.
        source: the events' source.
        sink: takes each event; called outside all locks, in order, before the call that caused it returns.
        on_change: takes the name of each training job whose status has changed; no events are made then.
        on_call: see `Hook`; for calls through `client()` and `direct()` only.
        rng: where the events' ids come from.
        grace: from SIGTERM to SIGKILL.
        containers: run real commands; needs a wall clock.
        check_responses: hold every answer against the service model too; for tests.
    """

    def __init__(  # noqa: PLR0913 - an account has that many knobs; all have defaults and names
        self,
        clock: Clock | None = None,
        *,
        limits: Mapping[str, int] | None = None,
        spot_limits: Mapping[str, int] | None = None,
        warm_limits: Mapping[str, int] | None = None,
        capacity: Mapping[str, int] | None = None,
        spot_capacity: Mapping[str, int] | None = None,
        profile: Profile | None = None,
        speed: float = 1,
        rates: Mapping[str, float | None] | None = None,
        account: Account | None = None,
        source: str = AWS_SOURCE,
        sink: Sink | None = None,
        on_change: Callable[[str], None] | None = None,
        on_call: Hook | None = None,
        rng: random.Random | None = None,
        grace: timedelta = GRACE,
        containers: Containers | None = None,
        check_responses: bool = False,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.account = account or Account()
        self.on_call = on_call
        self._check_responses = check_responses
        self.profiles = Profiles(profile or Profile(), speed)
        self.faults = Faults()
        self.throttle = Throttle(_rates(rates or {}))
        self.quotas = Quotas(limits or {}, limits or {} if spot_limits is None else spot_limits, warm_limits or {})
        self._ec2 = Ec2(capacity or {}, spot_capacity or {})
        runs_commands = lambda job: containers is not None and bool(job.argv)  # noqa: E731 -- one line of glue
        state = AccountState(
            self.quotas, self._ec2, runs_commands, grace, self.profiles.current_pace, with_details=on_change is None
        )
        self._engine = Engine(state, self.account, self.profiles.profile_for)
        self._lock = threading.Lock()
        self._containers = containers
        envelope = Envelope(self.account, rng or random.Random(0), source)  # noqa: S311 - ids, not secrets
        self._outbox = Outbox(state.outbox, envelope, sink, containers, on_change)
        if containers is not None:
            containers.set_exit_handler(self.exited)
        self._ticker = None if isinstance(self.clock, VirtualClock) else Ticker(self._seconds_left, self.tick)

    # --- time -----------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """The time now."""
        return self.clock.now()

    def advance(self, seconds: float) -> None:
        """Let that many seconds pass; virtual clock only."""
        self.run_until(self.now() + timedelta(seconds=seconds))

    def run_until(self, time: datetime) -> None:
        """Let time pass until then; each event is handed to the sink at its own time. Virtual clock only."""
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError("time passes by itself under a wall clock")
        while self._run_next(time, clock):
            self._outbox.drain()
        clock.move_to(time)

    def run_until_idle(self) -> None:
        """Let time pass until nothing is due any more; virtual clock only."""
        while (time := self.next_time()) is not None:
            self.run_until(time)

    def next_time(self) -> datetime | None:
        """When something will be due next; None where nothing will."""
        with self._lock:
            return self._engine.next_time()

    def tick(self) -> None:
        """Do what is due by now."""
        with self._lock:
            self._catch_up()
        self._outbox.drain()

    # --- operations -------------------------------------------------------------------------------------------------

    def call(self, operation: str, **members: Any) -> dict[str, Any]:
        """Carry out one operation. Raises `ApiError`, with nothing changed."""
        shape = service_model().operation_model(operation).input_shape
        if shape is not None:
            check_request(members, shape)
        return self._call(operation, members)

    def client(self, config: Config | None = None) -> SageMakerClient:
        """A boto3 client that this simulator answers; it retries only where `config` says so."""
        return clients.new_client(self._reply_with_hooks, self.account.region, config)

    def direct(self, *, checked: bool = True) -> DirectClient:
        """A client for which nothing is written down and read again: many times faster than `client()`.

        Unchecked, for callers whose requests are known to be well formed, it is faster still.
        """
        return DirectClient(lambda operation, members: self._call_with_hooks(operation, members, checked=checked))

    def attach(self, client: SageMakerClient) -> None:
        """Answer the training operations of a client that exists already."""
        clients.attach(client, self._reply_with_hooks)

    def handles(self, operation: str) -> bool:
        """Whether this is one of the simulator's operations."""
        return operation in self._engine.operations

    def reply(self, operation: str, body: bytes) -> Reply:
        """Answer a request body, throttling and injected faults included."""
        return answer(operation, body, self._call)

    # --- what people and tests do to it -------------------------------------------------------------------------------

    @property
    def sink(self) -> Sink | None:
        """Takes each event; may be set at any time."""
        return self._outbox.sink

    @sink.setter
    def sink(self, sink: Sink | None) -> None:
        self._outbox.sink = sink

    def set_profile(self, pattern: str, **changes: Any) -> None:
        """Give jobs whose names match (`job1`, `job1*`) a course of their own: fields of `Profile`."""
        self.profiles.set(pattern, replace(self.profiles.default, **changes))

    def set_capacity(self, instance_type: str, count: int | None, *, spot: bool = False) -> None:
        """Change how many instances EC2 has; None for never short. Those that wait are asked for."""
        self._ec2.set_capacity(instance_type, count, Market.SPOT if spot else Market.ON_DEMAND)
        self._change(self._engine.capacity_changed)

    def add_plan(self, name: str, instance_type: str, count: int, *blocks: tuple[datetime, datetime]) -> str:
        """Buy a training plan whose instances are reserved from the start to the end of each block; returns its ARN."""
        arns: list[str] = []
        self._change(lambda now: arns.append(self._engine.add_plan(name, instance_type, count, blocks, now)))
        return arns[0]

    def interrupt(self, training_job_name: str) -> None:
        """Take a spot job's instances away. Raises `ValueError` where it has none at work."""
        self._change(lambda now: self._engine.interrupt(training_job_name, now))

    def change_pace(self, training_job_name: str, pause_seconds: float = 0) -> None:
        """Ask `scripts.pace` again for a job that runs; it pauses for so long before it goes on."""
        self._change(lambda now: self._engine.change_pace(training_job_name, pause_seconds, now))

    def exited(self, training_job_name: str, run: int, failure: str | None) -> None:
        """A real command has ended; `failure` tells why it failed, None that it did not."""
        self._change(lambda now: self._engine.exited(training_job_name, run, failure, now))

    def close(self) -> None:
        """End all real commands and the simulator's threads."""
        if self._containers is not None:
            self._containers.close()
        if self._ticker is not None:
            self._ticker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            with self._lock:
                return self._call_locked(operation, request)
        finally:
            # Also after an injected error: the call may have been carried out.
            self._after_change()

    def _call_locked(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        self._catch_up()
        now = self.now()
        self.throttle.check(operation, now)
        fault = self.faults.next_for(operation)
        if fault is not None and not fault.executed:
            raise fault.error
        result = self._engine.call(operation, request, now)
        self._catch_up()
        if self._check_responses:
            check_answer(result, service_model().operation_model(operation).output_shape)
        if fault is not None:
            raise fault.error
        return result

    def _change(self, change: Callable[[datetime], None]) -> None:
        with self._lock:
            self._catch_up()
            change(self.now())
            self._catch_up()
        self._after_change()

    def _after_change(self) -> None:
        if self._ticker is not None:
            self._ticker.nudge()
        self._outbox.drain()

    def _catch_up(self) -> None:
        now = self.now()
        while self._engine.step(now):
            pass

    def _run_next(self, until: datetime, clock: VirtualClock) -> bool:
        with self._lock:
            time = self._engine.next_time()
            if time is None or time > until:
                return False
            clock.move_to(time)
            return self._engine.step(time)

    def _seconds_left(self) -> float | None:
        time = self.next_time()
        return None if time is None else (time - self.now()).total_seconds()

    def _reply_with_hooks(self, operation: str, body: bytes) -> Reply | None:
        if not self.handles(operation):
            return None
        self._hook(operation, "before")
        reply = self.reply(operation, body)
        self._hook(operation, "after")
        return reply

    def _call_with_hooks(self, operation: str, members: Mapping[str, Any], *, checked: bool) -> dict[str, Any]:
        self._hook(operation, "before")
        try:
            return self.call(operation, **members) if checked else self._call(operation, members)
        finally:
            self._hook(operation, "after")

    def _hook(self, operation: str, phase: str) -> None:
        if self.on_call is not None:
            self.on_call(operation, phase)


def _rates(changed: Mapping[str, float | None]) -> dict[str, float]:
    return {name: rate for name, rate in {**DEFAULT_RATES, **changed}.items() if rate is not None}
