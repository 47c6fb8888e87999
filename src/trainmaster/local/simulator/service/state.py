"""The state of the simulated account, and the messages that it has for the outside."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trainmaster.local.simulator.service.capacity import Ec2, Quotas
from trainmaster.local.simulator.service.demand import Units
from trainmaster.local.simulator.service.job import TERMINAL, Stage, TrainingJob, Transition
from trainmaster.local.simulator.service.timers import Timers
from trainmaster.local.simulator.wire.views import detail

GRACE = timedelta(seconds=120)
"""From SIGTERM to SIGKILL (StopTrainingJob, SageMaker API reference)."""


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A change of a job's status; `detail` is that of the event at that moment, if details are wanted."""

    name: str
    arn: str
    at: datetime
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartContainer:
    """The message to start a job's script."""

    job: TrainingJob
    run: int


@dataclass(frozen=True, slots=True)
class SignalContainer:
    """The message to stop a job's script, or, with `kill`, to kill it."""

    name: str
    run: int
    kill: bool


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A line in the log of a simulated script, on each of its `instances`; `start` is that of the run."""

    name: str
    instances: int
    start: datetime
    at: datetime
    text: str


Message = StatusChange | StartContainer | SignalContainer | ScriptLine


@dataclass(slots=True)
class AccountState:
    """The simulated account.

    Attributes:
        runs_commands: returns True if a job's script is a command, whose end is reported, not simulated.
        pace: returns the pace of a simulated script.
        waiting: jobs that wait for EC2 capacity, in the order of retries.
        pools: ended jobs with a warm pool.
        plans: training plans by ARN.
        progress: saved work by checkpoint URI.
        outbox: messages that have not been delivered.
        capacity_changed: True if waiting jobs must be retried.
        with_details: False to omit the details of status changes, which are slow to make.
        keeps_log: True to add messages with the log lines of simulated scripts.
    """

    quotas: Quotas
    ec2: Ec2
    runs_commands: Callable[[TrainingJob], bool]
    grace: timedelta = GRACE
    pace: Callable[[Mapping[str, Any]], float] = lambda _request: 1.0
    timers: Timers = field(default_factory=Timers)
    jobs: dict[str, TrainingJob] = field(default_factory=dict)
    waiting: dict[str, TrainingJob] = field(default_factory=dict)
    pools: dict[str, TrainingJob] = field(default_factory=dict)
    plans: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, timedelta] = field(default_factory=dict)
    outbox: deque[Message] = field(default_factory=deque)
    capacity_changed: bool = False
    with_details: bool = True
    keeps_log: bool = False

    def enter_stage(self, job: TrainingJob, stage: Stage) -> None:
        """Change a job's stage; timers of the earlier stage become void."""
        job.stage = stage
        job.stage_number += 1
        self.waiting.pop(job.name, None)

    def schedule(self, job: TrainingJob, seconds: float, then: Callable[[datetime], None], now: datetime) -> None:
        """Call `then` after `seconds`, if the job is still in its current stage."""
        stage_number = job.stage_number

        def due(time: datetime) -> None:
            if job.stage_number == stage_number:
                then(time)

        self.timers.at(now + timedelta(seconds=seconds), due)

    def set_status(self, job: TrainingJob, status: str, secondary: str, message: str, now: datetime) -> None:
        """Change a job's status, and add a message; a change of the status message alone adds none."""
        if (job.status, job.secondary) == (status, secondary) and job.transitions:
            job.transitions[-1].message = message
            return
        self._add_transition(job, secondary, message, now)
        if status in TERMINAL:
            job.transitions[-1].end = now
        job.status, job.secondary, job.last_modified = status, secondary, now
        self.outbox.append(StatusChange(job.name, job.arn, now, detail(job, now) if self.with_details else {}))

    def _add_transition(self, job: TrainingJob, secondary: str, message: str, now: datetime) -> None:
        last = job.transitions[-1] if job.transitions else None
        if last and last.status == secondary and last.end is None:
            last.message = message
            return
        if last:
            last.end = last.end or now
        job.transitions.append(Transition(secondary, now, message))

    def allocate_instances(self, job: TrainingJob, units: Units) -> None:
        """Allocate the job's instances, and release the quotas of the other alternatives."""
        self.ec2.allocate(units, job.market)
        self.quotas.release(job.quota_units, job.market)
        self.quotas.charge(units, job.market)
        job.instances = job.quota_units = units

    def release_instances(self, job: TrainingJob) -> None:
        """Release the job's EC2 instances; it still counts against the quotas."""
        self.ec2.release(job.instances, job.market)
        job.instances = {}
        self.capacity_changed = True

    def wait_for_instances(self, job: TrainingJob) -> None:
        """Add the job to those that wait for capacity."""
        self.waiting[job.name] = job
        self.capacity_changed = True

    def release_all(self, job: TrainingJob) -> None:
        """Release the job's instances and quotas."""
        self.release_instances(job)
        self.quotas.release(job.quota_units, job.market)
        self.quotas.release_warm(job.warm_quota_units)
        job.quota_units, job.warm_quota_units = {}, {}
