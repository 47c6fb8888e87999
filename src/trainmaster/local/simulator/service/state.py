"""All that the simulated service knows, in one place, and what it has to say to the outside.

The state that `course`, `ending` and `warm` change. It must not decide anything.
"""

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
"""From SIGTERM to SIGKILL (SageMaker API, StopTrainingJob)."""


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A job's status has changed; `detail` is what the event says, as of that moment; empty where nobody wants it."""

    name: str
    arn: str
    at: datetime
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartContainer:
    """A job's script is to be started."""

    job: TrainingJob
    run: int


@dataclass(frozen=True, slots=True)
class SignalContainer:
    """A job's script is to be told to end, or, with `kill`, to be ended."""

    name: str
    run: int
    kill: bool


Message = StatusChange | StartContainer | SignalContainer


@dataclass(slots=True)
class AccountState:
    """The simulated account.

    Attributes:
        runs_commands: whether a job's script is a real command; its end is then reported, not scripted.
        pace: how fast a script works that is none.
        waiting: jobs that EC2 has no instances for, in the order in which they will be asked about.
        pools: ended jobs whose instances are kept.
        plans: training plans by ARN.
        progress: how much of its script's work has been saved under a checkpoint URI.
        outbox: what the outside has not been told yet.
        capacity_changed: whether EC2 may have something for those that wait.
        with_details: whether changes are told with their details, which take long to make.
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

    def enter_stage(self, job: TrainingJob, stage: Stage) -> None:
        """Move a job's machinery on; timers of the stage before become void."""
        job.stage = stage
        job.stage_number += 1
        self.waiting.pop(job.name, None)

    def schedule(self, job: TrainingJob, seconds: float, then: Callable[[datetime], None], now: datetime) -> None:
        """Do this when the job has been so long in the stage that it is in now."""
        stage_number = job.stage_number

        def due(time: datetime) -> None:
            if job.stage_number == stage_number:
                then(time)

        self.timers.at(now + timedelta(seconds=seconds), due)

    def set_status(self, job: TrainingJob, status: str, secondary: str, message: str, now: datetime) -> None:
        """Change what SageMaker shows of a job, and say so. A message alone is no change of status."""
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
        """The job gets its instances; what counted for the other choices counts no longer."""
        self.ec2.allocate(units, job.market)
        self.quotas.release(job.quota_units, job.market)
        self.quotas.charge(units, job.market)
        job.instances = job.quota_units = units

    def release_instances(self, job: TrainingJob) -> None:
        """The job's instances go back to EC2; it goes on counting against the quotas."""
        self.ec2.release(job.instances, job.market)
        job.instances = {}
        self.capacity_changed = True

    def wait_for_instances(self, job: TrainingJob) -> None:
        """The job is among those that EC2 is asked for, from now on."""
        self.waiting[job.name] = job
        self.capacity_changed = True

    def release_all(self, job: TrainingJob) -> None:
        """Nothing of the job counts any longer."""
        self.release_instances(job)
        self.quotas.release(job.quota_units, job.market)
        self.quotas.release_warm(job.warm_quota_units)
        job.quota_units, job.warm_quota_units = {}, {}
