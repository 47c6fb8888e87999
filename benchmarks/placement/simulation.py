"""Runs a load on a cluster under a placement policy, with the shipped passes on a virtual clock.

The store is in memory. SageMaker is the simulator with the shipped launcher, or `machines` in settings where tasks slow
each other down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from benchmarks.placement.clusters import Cluster
from benchmarks.placement.loads import Load, Task
from benchmarks.placement.machines import USE, WORK, Machines
from trainmaster.domain.access.caller import UNKNOWN
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resolve import Offers, resolved
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.jobs.job import ENDED, Job, JobState
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.requests.options import Options
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.memory.table import MemoryTable
from trainmaster.local.simulator import Profile, SageMakerSimulator, VirtualClock
from trainmaster.local.virtual_time import VirtualTime, at, instant_profile, launcher_for, next_tick, seconds_at
from trainmaster.ports.sagemaker import Launcher
from trainmaster.service.admission.build_job import build_job
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe
from trainmaster.service.run_pass import run_pass

PASSES_OF_A_SEED = 1_000_000
"""A pass draws random numbers by its number, so seeds begin at different numbers."""
ROLE = "arn:aws:iam::111122223333:role/bench"
MAX_RUNTIME_SECONDS = 86_400
"""SageMaker's default limit: the queue learns nothing of how long a task will run."""


class RunFailed(RuntimeError):
    """No event is due, but jobs have not completed."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a task; seconds from the beginning."""

    task: Task
    pool: str
    submitted: float
    started: float
    ended: float


class SimulatedService(Protocol):
    """A replacement of SageMaker in which time passes."""

    def next_time(self) -> datetime | None:
        """Return the time of its next event."""
        ...

    def run_until(self, time: datetime) -> object:
        """Advance to this time."""
        ...


class Run:
    """One run.

    Args:
        load: what is submitted.
        cluster: on what.
        policy: the queue's settings.
        seed: where the draws begin.
        profile: how training jobs go in the simulator; None for jobs that run and do nothing else.
        catalogue: instance types that are known besides those that ship.
    """

    def __init__(  # noqa: PLR0913 -- the parameters of a run
        self,
        load: Load,
        cluster: Cluster,
        policy: Policy,
        seed: int = 0,
        *,
        profile: Profile | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self._load, self._cluster = load, cluster
        self._clock = VirtualClock(at(0))
        self._changed: dict[str, None] = {}
        table = MemoryTable(passes=seed * PASSES_OF_A_SEED)
        self._store = MemoryStore(default_pools=cluster.pools, policy=policy, table=table, now=self._clock.now)
        if catalogue is not None:
            self._store.save_catalogue(catalogue)
        self._service, launcher = self._make_service(profile or instant_profile())
        self._context = ManagerContext(self._store, launcher, VirtualTime(self._clock))
        self._submitted: list[float] = []
        self._demands: dict[tuple[Resources, int], Demand] = {}
        self._ended = 0
        self._next_wake: datetime | None = None
        self.passes = 0
        self.waits: dict[str, str] = {}

    def play(self) -> list[TaskResult]:
        """Run until every task has ended; return the results in the load's order. Raises `RunFailed`."""
        while self._ended < len(self._load.tasks):
            time = self._next_time()
            if time is None:
                raise RunFailed(f"{len(self._load.tasks) - self._ended} jobs have not completed: {self.waits}")
            self._advance_to(time)
        return [self._result(index) for index in range(len(self._load.tasks))]

    def play_until_idle(self) -> list[TaskResult | None]:
        """Run as far as possible; the result of a task that cannot run is None."""
        while self._ended < len(self._load.tasks) and (time := self._next_time()) is not None:
            self._advance_to(time)
        jobs = (self._store.find(_name(index)) for index in range(len(self._load.tasks)))
        return [
            self._result(index) if job is not None and job.state is JobState.COMPLETED else None
            for index, job in enumerate(jobs)
        ]

    @property
    def store(self) -> MemoryStore:
        """The store of the queue."""
        return self._store

    def _advance_to(self, time: datetime) -> None:
        self._service.run_until(time)
        due = self._next_wake is not None and self._next_wake <= time
        # Ends precede arrivals: a job that arrives when capacity is freed may use it.
        freed = self._observe_changes()
        arrived = self._submit_due(time)
        while freed or arrived or due:
            report = run_pass(self._context)
            self.passes += 1
            self.waits = {wait.job.name: wait.reason.message() for wait in report.plan.waits}
            self._next_wake = next_tick(report.plan.recheck_at, time)
            self._service.run_until(time)
            freed, due = self._observe_changes(), report.more_to_do
            arrived = self._submit_due(time)

    def _next_time(self) -> datetime | None:
        times = [self._next_arrival(), self._service.next_time(), self._next_wake]
        return min((time for time in times if time is not None), default=None)

    def _next_arrival(self) -> datetime | None:
        if not self._may_submit():
            return None
        return max(at(self._load.tasks[len(self._submitted)].at), self._clock.now())

    def _may_submit(self) -> bool:
        count, most = len(self._submitted), self._load.in_flight
        return count < len(self._load.tasks) and (most is None or count - self._ended < most)

    def _submit_due(self, time: datetime) -> bool:
        first = len(self._submitted)
        while self._may_submit() and at(self._load.tasks[len(self._submitted)].at) <= time:
            index = len(self._submitted)
            task, request = self._load.tasks[index], _request(self._load.tasks[index], index)
            self._store.submit(self._admitted(request, task, time), request)
            self._submitted.append(seconds_at(time))
        return len(self._submitted) > first

    def _admitted(self, request: dict[str, Any], task: Task, time: datetime) -> Job:
        """Build the job of the request; admission would read all pools again for each request."""
        asked = (task.resources, task.units)
        if asked not in self._demands:
            bare = Demand((), queue_selects_pool=True, resources=task.resources, instances=task.units)
            self._demands[asked] = resolved(bare, Offers(self._cluster.pools, self._store.settings().catalogue))
        return build_job(request, Options(), self._demands[asked], UNKNOWN, time)

    def _observe_changes(self) -> bool:
        freed = False
        while self._changed:
            names = list(self._changed)
            self._changed.clear()
            for name in names:
                seen = self._context.launcher.describe(name)
                if seen is not None and observe(self._context, seen) and seen.terminal:
                    job = self._store.find(name)
                    self._ended += job is not None and job.state in ENDED
                    freed = True
        return freed

    def _make_service(self, profile: Profile) -> tuple[SimulatedService, Launcher]:
        if self._cluster.machines:
            machines = Machines(self._clock, self._cluster.machines, self._note)
            return machines, machines
        simulator = SageMakerSimulator(
            self._clock, profile=profile, on_change=self._note, rates={"ListTrainingJobs": None}
        )
        return simulator, launcher_for(simulator)

    def _note(self, training_job_name: str) -> None:
        self._changed[training_job_name] = None

    def _result(self, index: int) -> TaskResult:
        job = self._store.find(_name(index))
        if job is None or job.state is not JobState.COMPLETED or job.attempt is None or job.ended_at is None:
            raise RunFailed(f"{_name(index)} has not completed: {job and job.failure}")
        began = seconds_at(job.attempt.created_at)
        (pool,) = job.attempt.units
        return TaskResult(self._load.tasks[index], pool, self._submitted[index], began, seconds_at(job.ended_at))


def names(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the names of the jobs, in the load's order."""
    return (_name(index) for index in range(len(tasks)))


def _name(index: int) -> str:
    return f"task-{index:06d}"


def _request(task: Task, index: int) -> dict[str, Any]:
    """Return the request that a user would submit."""
    return {
        "TrainingJobName": _name(index),
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": "bench/task:latest", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bench/output"},
        "ResourceConfig": {"VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": MAX_RUNTIME_SECONDS},
        "Environment": {WORK: repr(task.work), USE: repr(task.uses or task.units)},
        "Tags": [
            {"Key": "trainmaster:resources", "Value": str(task.resources)},
            {"Key": "trainmaster:instances", "Value": str(task.units)},
        ],
    }
