"""Runs part of a day of jobs through the shipped queue, and counts what it costs and how near it is to AWS's limits.

Arrivals are random, run times exponential with a mean of an hour. Their remaining times have the same distribution, so
the part begins with as many running jobs as are usual then. API, events, passes and ticks run on the virtual clock with
the DynamoDB engine over HTTP and the simulated SageMaker.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import botocore.session

from benchmarks.common.engine import engine
from benchmarks.common.meter import WritesByPartition, total
from benchmarks.common.prices import dollars
from benchmarks.common.requests import request
from benchmarks.common.world import CALLER, MeteredWorld, make_table
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.policy.settings import Policy, Share

POOLS, SHARES = 200, 100
RUN_SECONDS, SHORTEST = 3_600, 60
USED = 0.8
"""Part of all units that the jobs need on average."""
OWN = 0.5
"""Part of the jobs that ask for one of the pools of which their share owns the units."""
AT_ONCE = 25
"""Jobs that are submitted before the manager runs, when the queue is filled."""
SETTLE_SECONDS = 300
DAY_SECONDS = 86_400
OnStep = Callable[[str], None]

DYNAMODB_SECONDS, SAGEMAKER_SECONDS = 0.005, 0.1
"""Assumed time of a call on AWS."""
SLOWER = 1_769 / 1_024
"""A function of 1,024 MB has this part less than one CPU (AWS Lambda Developer Guide, "Configure memory")."""
PER_GB_SECOND, PER_INVOCATION, PER_API_CALL = 0.0000133334, 0.2e-6, 3.5e-6
PER_SQS_REQUEST, SQS_REQUESTS, PER_LOG_GB, LOG_GB = 0.5e-6, 3, 0.5, 1.5e-6
"""Prices in us-east-1; requests for each message; gigabytes of logs for each invocation (docs/explanation/cost.md)."""


@dataclass(frozen=True, slots=True)
class Day:
    """A day of so many jobs, and the seconds that are run of it."""

    jobs: int
    seconds: int
    pools: int = POOLS
    shares: int = SHARES

    @property
    def running(self) -> int:
        """Jobs that run at the same time, on average."""
        return round(self.jobs * RUN_SECONDS / DAY_SECONDS)


DAYS = (Day(1_000, 7_200), Day(10_000, 900), Day(100_000, 60))


def measure(day: Day, on_step: OnStep = lambda _: None) -> dict[str, Any]:
    """Run a part of the day; return its cost, scaled to the whole day, and its greatest rates."""
    with engine() as client:
        make_table(client)
        run = _Run(day, client)
        run.fill()
        return run.measured(on_step)


class _Run:
    """A queue with the jobs of a day."""

    def __init__(self, day: Day, client: Any) -> None:
        self._day, self._rng, self._submitted = day, random.Random(1), 0
        self._names = _instance_types()[: day.pools]
        cap = ceil(day.running / USED / day.pools)
        owned = day.pools // day.shares
        self._owned = {f"team{n:02d}": self._names[n * owned : (n + 1) * owned] for n in range(day.shares)}
        shares = {name: Share(name=name, nominal=dict.fromkeys(pools, cap)) for name, pools in self._owned.items()}
        pools = ",".join(f"{name}={cap}" for name in self._names)
        self._world = _DayWorld(client, pools=pools, policy=Policy(shares=shares), ticks=True)
        self._writes = WritesByPartition(client)

    def fill(self) -> None:
        """Start the jobs that run when the part of the day begins."""
        world, settings = self._world, self._world.api_context.store.settings()
        for number in range(self._day.running):
            made = self._request()
            admitted = world.admission.admit(made, Caller(CALLER), settings.pools, world.now(), settings.policy)
            world.api_context.store.submit(admitted.job, made)
            if number % AT_ONCE == 0:
                world.wake_and_settle()
        self._world.run(SETTLE_SECONDS, step=5)

    def measured(self, on_step: OnStep) -> dict[str, Any]:
        """Run the part of the day."""
        world, day, rng = self._world, self._day, self._rng
        world.reset()
        self._writes.units.clear()
        first, peaks, before, running = self._submitted, Counter[str](), Counter[str](), 0
        arrives = rng.expovariate(day.jobs / DAY_SECONDS)
        for second in range(day.seconds):
            while arrives <= second:
                world.submit_request(self._request())
                arrives += rng.expovariate(day.jobs / DAY_SECONDS)
            world.run(1, step=1)
            now = self._writes.units + world.sagemaker_calls
            peaks |= now - before
            before = now
            if second % SHORTEST == 0:
                running += world.in_use().total()
                on_step(f"{second:,} of {day.seconds:,} s")
        return self._report(self._submitted - first, peaks, running / ceil(day.seconds / SHORTEST))

    def _report(self, jobs: int, peaks: Counter[str], running: float) -> dict[str, Any]:
        world, day, whole = self._world, self._day, DAY_SECONDS / self._day.seconds
        steps = world.meter.reset()
        units, submitting = total(steps.values()), total(cost for step, cost in steps.items() if step[:6] == "submit")
        api = world.api_seconds * SLOWER + submitting.calls * DYNAMODB_SECONDS
        manager = world.manager_seconds * SLOWER + (units.calls - submitting.calls) * DYNAMODB_SECONDS
        manager += world.sagemaker_calls.total() * SAGEMAKER_SECONDS
        spent = dollars(units) + (manager + api) * PER_GB_SECOND + jobs * PER_API_CALL
        spent += (world.invocations + jobs) * (PER_INVOCATION + LOG_GB * PER_LOG_GB)
        spent += (world.queue.sent - world.sent_before) * SQS_REQUESTS * PER_SQS_REQUEST
        each_day = {
            "write_units": units.writes,
            "read_units": units.reads,
            "invocations": world.invocations,
            "passes": world.passes,
            "manager_seconds": manager,
            "api_seconds": api,
        }
        each_second = {**self._writes.units, **world.sagemaker_calls, "reads": units.reads, "manager": manager}
        return {
            "jobs": day.jobs,
            "seconds": day.seconds,
            "submitted": jobs,
            "ended": world.ended,
            "running": round(running, 1),
            "pass_processor_ms": round(world.manager_seconds / max(world.passes, 1) * 1_000, 1),
            "dollars": round(spent * whole, 4),
            "each_day": {name: round(count * whole) for name, count in each_day.items()},
            "each_second": {name: round(count / day.seconds, 4) for name, count in sorted(each_second.items())},
            "most_in_a_second": dict(sorted(peaks.items())),
        }

    def _request(self) -> dict[str, Any]:
        """Return the request of the next job."""
        rng, name = self._rng, f"job-{self._submitted:06d}"
        share = rng.choice(sorted(self._owned))
        pool = rng.choice(self._owned[share] if rng.random() < OWN else self._names)
        seconds = max(SHORTEST, round(rng.expovariate(1 / RUN_SECONDS)))
        made = request(name, kind=pool, training_seconds=seconds)
        made["Tags"].append({"Key": "trainmaster:share", "Value": share})
        self._submitted += 1
        return made


class _DayWorld(MeteredWorld):
    """A world that measures the CPU time of the API and of the manager.

    The manager is one process throughout, as a Lambda function is that works all the time.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._process: Any = None
        super().__init__(*args, **options)
        self.reset()

    def reset(self) -> None:
        """Begin to count."""
        self.meter.reset()
        self.sagemaker_calls.clear()
        self.manager_seconds = self.api_seconds = 0.0
        self.invocations = self.ended = self.passes = 0
        self.sent_before = self.queue.sent

    def invoke(self) -> None:
        """Invoke the manager once."""
        began = time.process_time()
        super().invoke()
        self.manager_seconds += time.process_time() - began

    def application(self) -> Any:
        """Return the process of the manager."""
        if self._process is None:
            self._process = super().application()
        return self._process

    def submit_request(self, made: dict[str, Any]) -> Any:
        """Submit a request as the API's route does."""
        began = time.process_time()
        job = super().submit_request(made)
        self.api_seconds += time.process_time() - began
        return job

    def _measure(self) -> None:
        """Leave out the checks of the tests' world, which look at every job that ever ran."""


def _instance_types() -> list[str]:
    model = botocore.session.get_session().get_service_model("sagemaker")
    return list(model.shape_for("TrainingInstanceType").metadata["enum"])
