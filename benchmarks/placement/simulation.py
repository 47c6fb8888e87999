"""One run: a load on a cluster under a placement policy, through the shipped passes on a virtual clock.

The store is the one in memory. SageMaker is the simulator with the shipped launcher, or, where a setting has nodes
whose tasks slow each other down, `machines`. It must not decide anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from benchmarks.placement.clusters import Cluster
from benchmarks.placement.loads import Load, Task
from benchmarks.placement.machines import USE, WORK, Machines
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resolve import Offers, resolved
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.jobs.job import ENDED, Job, JobState
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.requests import Options
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
"""A pass draws by its number: every seed begins at another one."""
ROLE = "arn:aws:iam::111122223333:role/bench"
MAX_SECONDS_LENGTH = 86_400
"""What SageMaker takes where a request sets no limit: the queue learns nothing of how long a task will run."""


class RunFailed(RuntimeError):
    """Nothing will happen any more, and there are jobs that have not completed."""


@dataclass(frozen=True, slots=True)
class Done:
    """A task as it went; seconds from the beginning."""

    task: Task
    pool: str
    submitted: float
    started: float
    ended: float


class World(Protocol):
    """What stands in for SageMaker, as far as time passes in it."""

    def next_time(self) -> datetime | None:
        """When something happens in it next."""
        ...

    def run_until(self, time: datetime) -> object:
        """Let everything happen until then."""
        ...


class Run:
    """One run to the end.

    Args:
        load: what is submitted.
        cluster: on what.
        policy: the queue's settings.
        seed: where the draws begin.
        profile: how training jobs go in the simulator; None for jobs that run and do nothing else.
        catalogue: instance types that are known besides those that ship.
    """

    def __init__(  # noqa: PLR0913 -- a run has that many terms
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
        self._store = MemoryStore(default_pools=cluster.pools, policy=policy, table=table)
        if catalogue is not None:
            self._store.save_catalogue(catalogue)
        self._world, launcher = self._made(profile or instant_profile())
        self._hands = ManagerContext(self._store, launcher, VirtualTime(self._clock))
        self._submitted: list[float] = []
        self._demands: dict[tuple[Resources, int], Demand] = {}
        self._ended = 0
        self._look_again: datetime | None = None
        self.passes = 0
        self.waits: dict[str, str] = {}

    def play(self) -> list[Done]:
        """Bring every task to its end, in the load's order. Raises `RunFailed`."""
        while self._ended < len(self._load.tasks):
            time = self._next_time()
            if time is None:
                raise RunFailed(f"{len(self._load.tasks) - self._ended} jobs have not completed: {self.waits}")
            self._go_to(time)
        return [self._done(index) for index in range(len(self._load.tasks))]

    def play_until_idle(self) -> list[Done | None]:
        """The same as far as it goes; None for a task that will never run."""
        while self._ended < len(self._load.tasks) and (time := self._next_time()) is not None:
            self._go_to(time)
        jobs = (self._store.find(_name(index)) for index in range(len(self._load.tasks)))
        return [
            self._done(index) if job is not None and job.state is JobState.COMPLETED else None
            for index, job in enumerate(jobs)
        ]

    @property
    def store(self) -> MemoryStore:
        """The queue's memory, to look at afterwards."""
        return self._store

    def _go_to(self, time: datetime) -> None:
        self._world.run_until(time)
        looks = self._look_again is not None and self._look_again <= time
        # Ends first: whoever arrives at the instant in which capacity is freed may use it.
        freed = self._observe_changes()
        arrived = self._submit_due(time)
        while freed or arrived or looks:
            report = run_pass(self._hands)
            self.passes += 1
            self.waits = {wait.job.name: wait.reason.message() for wait in report.plan.waits}
            self._look_again = next_tick(report.plan.look_again, time)
            self._world.run_until(time)
            freed, looks = self._observe_changes(), report.more_to_do
            arrived = self._submit_due(time)

    def _next_time(self) -> datetime | None:
        times = [self._next_arrival(), self._world.next_time(), self._look_again]
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
        """As the door makes it of the request, which the door would read again for each of 400 pools."""
        asked = (task.resources, task.units)
        if asked not in self._demands:
            bare = Demand((), queue_selects_pool=True, resources=task.resources, instances=task.units)
            self._demands[asked] = resolved(bare, Offers(self._cluster.pools, self._store.settings().catalogue))
        return build_job(request, Options(), self._demands[asked], ROLE, time)

    def _observe_changes(self) -> bool:
        freed = False
        while self._changed:
            names = list(self._changed)
            self._changed.clear()
            for name in names:
                seen = self._hands.launcher.describe(name)
                if seen is not None and observe(self._hands, seen) and seen.terminal:
                    job = self._store.find(name)
                    self._ended += job is not None and job.state in ENDED
                    freed = True
        return freed

    def _made(self, profile: Profile) -> tuple[World, Launcher]:
        if self._cluster.machines:
            machines = Machines(self._clock, self._cluster.machines, self._note)
            return machines, machines
        simulator = SageMakerSimulator(
            self._clock, profile=profile, on_change=self._note, rates={"ListTrainingJobs": None}
        )
        return simulator, launcher_for(simulator)

    def _note(self, training_job_name: str) -> None:
        self._changed[training_job_name] = None

    def _done(self, index: int) -> Done:
        job = self._store.find(_name(index))
        if job is None or job.state is not JobState.COMPLETED or job.attempt is None or job.ended_at is None:
            raise RunFailed(f"{_name(index)} has not completed: {job and job.failure}")
        began = seconds_at(job.attempt.created_at)
        (pool,) = job.attempt.units
        return Done(self._load.tasks[index], pool, self._submitted[index], began, seconds_at(job.ended_at))


def names(tasks: Sequence[Task]) -> Iterator[str]:
    """The jobs' names, in the load's order."""
    return (_name(index) for index in range(len(tasks)))


def _name(index: int) -> str:
    return f"task-{index:06d}"


def _request(task: Task, index: int) -> dict[str, Any]:
    """What a user would submit."""
    return {
        "TrainingJobName": _name(index),
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": "bench/task:latest", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bench/output"},
        "ResourceConfig": {"VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": MAX_SECONDS_LENGTH},
        "Environment": {WORK: repr(task.work), USE: repr(task.uses or task.units)},
        "Tags": [
            {"Key": "trainmaster:resources", "Value": str(task.resources)},
            {"Key": "trainmaster:instances", "Value": str(task.units)},
        ],
    }
