"""A launcher for machines whose tasks slow each other down, which SageMaker does not have.

If more CPUs are in use than a machine has cores, each task gets an equal part of the cores (processor sharing), times
the speed of the machine.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from benchmarks.placement.clusters import Machine
from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.local.simulator import VirtualClock
from trainmaster.ports.sagemaker import CreateResult, OpenJob, OpenJobsPage, StopResult
from trainmaster.ports.store import Request

WORK, USE = "SIMULATOR_TRAINING_SECONDS", "BENCH_CPUS_IN_USE"
"""Environment variables of a task's request: seconds of work on cores of its own at speed 1, and the CPUs that it keeps
busy, if they differ from those that it declares."""


@dataclass(slots=True)
class _Node:
    """One machine; its progress is the work that each of its tasks would have done since the beginning."""

    kind: Machine
    at: datetime
    progress: float = 0.0
    use: float = 0.0
    ends: list[tuple[float, str, float]] = field(default_factory=list)
    next_end: datetime | None = None

    def move_to(self, time: datetime) -> None:
        """Advance its tasks to this time."""
        self.progress += (time - self.at).total_seconds() * self._rate()
        self.at = time

    def add(self, name: str, work: float, use: float) -> None:
        """Add a task."""
        heapq.heappush(self.ends, (self.progress + work, name, use))
        self.use += use
        self._schedule_end()

    def take_finished(self) -> str:
        """Remove the task that ends at `next_end`, the current time, and return its name."""
        self.progress, name, use = heapq.heappop(self.ends)
        self.use = self.use - use if self.ends else 0.0
        self._schedule_end()
        return name

    def _rate(self) -> float:
        return self.kind.speed * min(1.0, self.kind.cores / self.use) if self.use else 0.0

    def _schedule_end(self) -> None:
        if not self.ends:
            self.next_end = None
            return
        seconds = max(0.0, self.ends[0][0] - self.progress) / self._rate()
        self.next_end = self.at + timedelta(microseconds=math.ceil(seconds * 1e6))


class Machines:
    """All machines of a cluster.

    Args:
        clock: is moved by `run_until`.
        kinds: by pool.
        on_change: takes the name of a task that has begun or ended.
    """

    def __init__(self, clock: VirtualClock, kinds: Mapping[str, Machine], on_change: Callable[[str], None]) -> None:
        self._clock, self._note = clock, on_change
        self._nodes = {name: _Node(kind, clock.now()) for name, kind in kinds.items()}
        self._seen: dict[str, Observation] = {}
        self._units: dict[str, Units] = {}

    def next_time(self) -> datetime | None:
        """Return the end of the next task."""
        return min((node.next_end for node in self._nodes.values() if node.next_end is not None), default=None)

    def run_until(self, time: datetime) -> None:
        """Advance to this time."""
        while (due := self.next_time()) is not None and due <= time:
            self._clock.move_to(due)
            for node in self._nodes.values():
                while node.next_end is not None and node.next_end <= due:
                    node.move_to(due)
                    self._report(node.take_finished(), Status.COMPLETED)
        self._clock.move_to(time)

    def create(
        self,
        job: Job,
        attempt: Attempt,
        request: Request,
        *,
        retry: bool = False,  # noqa: ARG002 -- part of the port
    ) -> CreateResult:
        """Add a task to the machine of its pool; see `ports.Launcher`."""
        (pool, count), name = next(iter(attempt.units.items())), attempt.training_job_name
        if name in self._seen:
            return CreateResult.ALREADY_THERE
        variables, node = request["Environment"], self._nodes[pool]
        node.move_to(self._clock.now())
        node.add(name, float(variables[WORK]), float(variables.get(USE, count)))
        self._units[name] = attempt.units
        self._report(name, Status.IN_PROGRESS, job.name)
        return CreateResult.NEW

    def describe(self, training_job_name: str) -> Observation | None:
        """Return the observation of a task; see `ports.Launcher`."""
        return self._seen.get(training_job_name)

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> StopResult:
        """Raise RuntimeError: jobs of equal priority are not preempted."""
        raise RuntimeError(
            f"{training_job_name} was stopped with end_warm_pool={end_warm_pool}, but no job is preempted here"
        )

    def end_warm_pool(self, training_job_name: str) -> None:
        """Do nothing: machines have no warm pools."""

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return no jobs: all tasks belong to the queue."""
        del since, token
        return OpenJobsPage(())

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """Return None: there are no training plans."""
        del arn

    def units_of(self, training_job_name: str) -> Units:
        """Return the units of a task; see `ports.Launcher`."""
        return self._units.get(training_job_name, {})

    def identify(self, training_job_name: str) -> OpenJob | None:
        """Return None: all tasks belong to the queue."""
        del training_job_name

    def _report(self, name: str, status: Status, job: str | None = None) -> None:
        began = self._seen.get(name)
        self._seen[name] = Observation(
            training_job_name=name,
            status=status,
            secondary="Training" if status is Status.IN_PROGRESS else str(status),
            job_name=job if began is None else began.job_name,
            started_at=self._clock.now() if began is None else began.started_at,
        )
        if status is Status.COMPLETED:
            del self._units[name]
        self._note(name)
