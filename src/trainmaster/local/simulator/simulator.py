"""The simulator: operations, time, and events.

The engine has three interfaces: the methods of `SageMakerSimulator`, a boto3 client in this process, and HTTP. A lock
serializes calls to the engine. Events are delivered after the lock is released, so that a sink may call back.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.config import Config

from trainmaster.local.simulator.clock import Clock, VirtualClock
from trainmaster.local.simulator.events.events import AWS_SOURCE, Envelope, Sink
from trainmaster.local.simulator.events.log_lines import LogSink
from trainmaster.local.simulator.events.outbox import Containers, Outbox
from trainmaster.local.simulator.faults import DEFAULT_RATES, Faults, Throttle
from trainmaster.local.simulator.hostility.hostility import Hostility
from trainmaster.local.simulator.hostility.layer import HostileLayer, Operation
from trainmaster.local.simulator.service.capacity import Ec2, Quotas
from trainmaster.local.simulator.service.demand import Market
from trainmaster.local.simulator.service.engine import Account, Engine
from trainmaster.local.simulator.service.job import TrainingJob
from trainmaster.local.simulator.service.profiles import Profile, Profiles
from trainmaster.local.simulator.service.state import GRACE, AccountState
from trainmaster.local.simulator.ticker import Ticker
from trainmaster.local.simulator.wire import client as clients
from trainmaster.local.simulator.wire.constraints import check_answer, check_request
from trainmaster.local.simulator.wire.direct import DirectClient
from trainmaster.local.simulator.wire.protocol import Reply, answer, service_model

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient
    from typing_extensions import Self

Hook = Callable[[str, str], None]
"""Called as `on_call(operation, "before")` and `(operation, "after")` around each call; may raise."""


class SageMakerSimulator:
    """The SageMaker training jobs of an account.

    Args:
        clock: a `VirtualClock` that `advance` moves, or a `WallClock`.
        limits: account quota by instance type; other types have none.
        spot_limits: the same for spot, counted separately; default `limits`.
        warm_limits: the same for warm pools; default none.
        capacity: EC2 instances by type; other types are always available.
        spot_capacity: the same for spot.
        profile: default profile of jobs.
        speed: divides the durations of all profiles, not the limits of requests.
        rates: calls per second by operation, besides AWS's; None removes a limit.
        account: number, Region, and the error code for a job that does not exist.
        source: source of the events.
        sink: called with each event, outside all locks, in order, before the call that caused it returns.
        on_change: called with the name of each training job whose status has changed, instead of the sink.
        on_call: see `Hook`; for calls through `client()` and `direct()` only.
        hostility: misbehavior towards callers of `client()`, `direct()` and HTTP; default none. See `Hostility`.
        rng: source of event ids and of the misbehavior.
        grace: from SIGTERM to SIGKILL.
        containers: runs commands; needs a wall clock.
        logs: called with each log line of jobs that are simulated, outside all locks.
        check_responses: validate every response with the service model, for tests.

    Attributes:
        misbehaved: how often each setting of `hostility` took effect; for lags, how often an answer was behind.
    """

    def __init__(  # noqa: PLR0913 - options of an account, all with defaults
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
        hostility: Hostility | None = None,
        rng: random.Random | None = None,
        grace: timedelta = GRACE,
        containers: Containers | None = None,
        logs: LogSink | None = None,
        check_responses: bool = False,
    ) -> None:
        self.clock, self.account, self.on_call = clock or VirtualClock(), account or Account(), on_call
        self._check_responses = check_responses
        self.profiles = Profiles(profile or Profile(), speed)
        self.faults, self.throttle = Faults(), Throttle(_rates(rates or {}))
        self.quotas = Quotas(limits or {}, limits or {} if spot_limits is None else spot_limits, warm_limits or {})
        self._ec2 = Ec2(capacity or {}, spot_capacity or {})
        state = self._new_state(containers, grace)
        state.with_details, state.keeps_log = on_change is None, logs is not None
        self._engine = Engine(state, self.account, self.profiles.profile_for)
        self._lock = threading.Lock()
        self._layer: HostileLayer | None = None
        self.misbehaved: Counter[str] = Counter()
        self._carry_out = self._call
        self._containers = containers
        self._rng = rng or random.Random(0)  # noqa: S311 - ids, not secrets
        self._outbox = Outbox(state.outbox, Envelope(self.account, self._rng, source), sink, containers, on_change)
        self._outbox.logs = logs
        if containers is not None:
            containers.set_exit_handler(self.exited)
        self._ticker = None if isinstance(self.clock, VirtualClock) else Ticker(self._seconds_left, self.tick)
        if hostility is not None:
            self.hostility = hostility

    # --- time -----------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()

    def advance(self, seconds: float) -> None:
        """Advance the virtual clock by this many seconds."""
        self.run_until(self.now() + timedelta(seconds=seconds))

    def run_until(self, time: datetime) -> None:
        """Advance the virtual clock to this time; each event is delivered at its own time."""
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError("only a virtual clock can be advanced")
        while self._run_next(time, clock):
            self._outbox.drain()
        clock.move_to(time)

    def run_until_idle(self) -> None:
        """Advance the virtual clock until no timer is left."""
        while (time := self.next_time()) is not None:
            self.run_until(time)

    def next_time(self) -> datetime | None:
        """Return the time of the next timer; None without one."""
        with self._lock:
            return self._engine.next_time()

    def tick(self) -> None:
        """Run the timers that are due."""
        with self._lock:
            self._catch_up()
        self._outbox.drain()

    # --- operations -------------------------------------------------------------------------------------------------

    def call(self, operation: str, **members: Any) -> dict[str, Any]:
        """Carry out one operation, without any hostility. Raises `ApiError`, in which case nothing has changed."""
        _check(operation, members)
        return self._call(operation, members)

    def client(self, config: Config | None = None) -> SageMakerClient:
        """Return a boto3 client for this simulator; it retries only if `config` says so."""
        return clients.new_client(self._reply_with_hooks, self.account.region, config)

    def direct(self, *, checked: bool = True) -> DirectClient:
        """Return a client without serialization, many times faster than `client()`.

        Unchecked, for callers whose requests are well formed, it is faster still.
        """
        return DirectClient(lambda operation, members: self._call_with_hooks(operation, members, checked=checked))

    def attach(self, client: SageMakerClient) -> None:
        """Have the simulator answer the training operations of an existing client."""
        clients.attach(client, self._reply_with_hooks)

    def handles(self, operation: str) -> bool:
        """Return True if the simulator has this operation."""
        return operation in self._engine.operations

    def reply(self, operation: str, body: bytes) -> Reply:
        """Answer a request body, with throttling, injected faults and hostility.

        Raises the errors of botocore for a lost connection.
        """
        return answer(operation, body, self._carry_out)

    # --- controls for tests and operators -----------------------------------------------------------------------------

    @property
    def sink(self) -> Sink | None:
        """Called with each event; may be set at any time."""
        return self._outbox.sink

    @sink.setter
    def sink(self, sink: Sink | None) -> None:
        self._outbox.sink = sink

    @property
    def hostility(self) -> Hostility:
        """Misbehavior towards callers; may be replaced at any time. Without any, all answers are consistent at once."""
        return Hostility() if self._layer is None else self._layer.hostility

    @hostility.setter
    def hostility(self, hostility: Hostility) -> None:
        self._change(lambda now: self._replace_hostility(hostility, now))

    def set_profile(self, pattern: str, **changes: Any) -> None:
        """Set fields of the `Profile` of jobs whose names match (`job1`, `job1*`)."""
        self.profiles.set(pattern, replace(self.profiles.default, **changes))

    def set_limit(self, instance_type: str, limit: int | None, *, spot: bool = False) -> None:
        """Change the account quota of a type, None for none; running jobs continue."""
        market = Market.SPOT if spot else Market.ON_DEMAND
        self._change(lambda _now: self.quotas.set_limit(instance_type, limit, market))

    def set_capacity(self, instance_type: str, count: int | None, *, spot: bool = False) -> None:
        """Change the EC2 capacity of a type, None for unlimited, and retry waiting jobs."""
        self._ec2.set_capacity(instance_type, count, Market.SPOT if spot else Market.ON_DEMAND)
        self._change(self._engine.capacity_changed)

    def add_plan(self, name: str, instance_type: str, count: int, *blocks: tuple[datetime, datetime]) -> str:
        """Add a training plan whose instances are reserved during each block; return its ARN."""
        arns: list[str] = []
        self._change(lambda now: arns.append(self._engine.add_plan(name, instance_type, count, blocks, now)))
        return arns[0]

    def interrupt(self, training_job_name: str) -> None:
        """Interrupt a spot job. Raises `ValueError` if it has no running instances."""
        self._change(lambda now: self._engine.interrupt(training_job_name, now))

    def fail(self, training_job_name: str) -> None:
        """End a run of a job's script with `InternalServerError`. Raises `ValueError` if it does not train."""
        self._change(lambda now: self._engine.fail(training_job_name, now))

    def change_pace(self, training_job_name: str, pause_seconds: float = 0) -> None:
        """Read `profiles.pace` again for a running job, which pauses first."""
        self._change(lambda now: self._engine.change_pace(training_job_name, pause_seconds, now))

    def exited(self, training_job_name: str, run: int, failure: str | None) -> None:
        """Process the exit of a command; `failure` is the reason, or None if it succeeded."""
        self._change(lambda now: self._engine.exited(training_job_name, run, failure, now))

    def close(self) -> None:
        """End all commands and the simulator's threads."""
        if self._containers is not None:
            self._containers.close()
        if self._ticker is not None:
            self._ticker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _new_state(self, containers: Containers | None, grace: timedelta) -> AccountState:
        def runs_commands(job: TrainingJob) -> bool:
            return containers is not None and containers.runs(job)

        pace = self.profiles.current_pace
        return AccountState(self.quotas, self._ec2, runs_commands, grace, pace)

    def _call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            with self._lock:
                return self._call_locked(operation, request, self._engine.call)
        finally:
            # Also after an injected error, since the call may have been carried out.
            self._after_change()

    def _call_hostile(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            with self._lock:
                self._catch_up()
                if self._layer is None:  # it ended while this call waited for the lock
                    return self._call_locked(operation, request, self._engine.call)
                proceed = partial(self._call_locked, operation)
                return self._layer.call(operation, request, self.now(), proceed)
        finally:
            self._after_change()

    def _replace_hostility(self, hostility: Hostility, now: datetime) -> None:
        layer = self._layer or HostileLayer(self._engine, self._rng, now, self.misbehaved)
        layer.replace(hostility, now)
        ideal = hostility == Hostility()
        self._layer = None if ideal else layer
        self._engine = layer.ideal if ideal else layer.engine
        self._carry_out = self._call if ideal else self._call_hostile
        self._outbox.envelope = replace(self._outbox.envelope, offset=layer.offset)

    def _call_locked(self, operation: str, request: Mapping[str, Any], carry_out: Operation) -> dict[str, Any]:
        self._catch_up()
        now = self.now()
        self.throttle.check(operation, now)
        fault = self.faults.next_for(operation)
        if fault is not None and not fault.executed:
            raise fault.error
        result = carry_out(operation, request, now)
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
            if checked:
                _check(operation, members)
            return self._carry_out(operation, members)
        finally:
            self._hook(operation, "after")

    def _hook(self, operation: str, phase: str) -> None:
        if self.on_call is not None:
            self.on_call(operation, phase)


def _check(operation: str, members: Mapping[str, Any]) -> None:
    shape = service_model().operation_model(operation).input_shape
    if shape is not None:
        check_request(members, shape)


def _rates(changed: Mapping[str, float | None]) -> dict[str, float]:
    return {name: rate for name, rate in {**DEFAULT_RATES, **changed}.items() if rate is not None}
