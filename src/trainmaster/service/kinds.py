"""Kinds of jobs beside training jobs: their use cases, and the launcher and the pools of all kinds together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from trainmaster.domain.capacity.units import PlanWindow, Pool, Units
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation
from trainmaster.domain.jobs.work import kind_of_run
from trainmaster.ports.events import Recipient
from trainmaster.ports.kinds import PoolDiscovery, Runs
from trainmaster.ports.sagemaker import CreateResult, Creator, Launcher, OpenJob, OpenJobsPage, StopResult
from trainmaster.ports.store import Request

if TYPE_CHECKING:
    from trainmaster.service.apply_plan import PassReport


class JobKind(Protocol):
    """A kind of jobs in one Lambda environment (docs/explanation/kinds-of-jobs.md)."""

    @property
    def runs(self) -> Runs | None:
        """The runs of this kind; None in a function that starts none."""
        ...

    @property
    def reporters(self) -> Collection[str]:
        """Unique IDs of the IAM roles that may report about runs of this kind, and may wake the manager."""
        ...

    @property
    def recipients(self) -> Mapping[str, Recipient]:
        """The recipients that only events of this kind's jobs have, by the names that the outbox stores."""
        ...

    def discover(self) -> PoolDiscovery:
        """Return the discovery of the kind's pools, for one snapshot."""
        ...

    def observe(self, message: Mapping[str, Any]) -> Observation | None:
        """Return the state of the run that a reporter's message names; None if there is no such run.

        Such a message has the kind's name as its member `kind`. A kind may handle further messages of its reporters,
        and returns None then. Raises `InvalidRequest` if it names no run.
        """
        ...

    def after_pass(self, report: PassReport, started_at: datetime) -> None:
        """Publish the metrics of a pass that started at this time."""
        ...

    def on_tick(self, report: PassReport) -> None:
        """Refresh what the kind knows of its services, after the first pass of a tick. Raises `ServiceError`."""
        ...


@dataclass(frozen=True, slots=True)
class AllPools:
    """The discoveries of all kinds, for one snapshot; implements `ports.kinds.PoolDiscovery`."""

    discoveries: tuple[PoolDiscovery, ...]

    def of(self, jobs: Iterable[Job]) -> dict[str, Pool]:
        """Return the pools that these jobs need of any kind."""
        jobs = list(jobs)
        return {name: pool for discovery in self.discoveries for name, pool in discovery.of(jobs).items()}


@dataclass(frozen=True, slots=True)
class KindLauncher:
    """Calls `training` for training jobs, and the runs of their kind for all others; see `ports.sagemaker.Launcher`."""

    training: Launcher
    kinds: Mapping[str, Runs]

    def create(self, job: Job, attempt: Attempt, request: Request, *, retry: bool = False) -> CreateResult:
        """Create the attempt's training job, or its run."""
        if job.work is not None:
            return self.kinds[job.work.kind].create(job, attempt)
        return self.training.create(job, attempt, request, retry=retry)

    def creator(self, job: Job, attempt: Attempt) -> Creator:
        """Return the creator of the training job; only the queue creates runs."""
        if job.work is None:
            return self.training.creator(job, attempt)
        return Creator.NONE if self.describe(attempt.training_job_name) is None else Creator.ATTEMPT

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> StopResult:
        """Stop the training job, or the run."""
        if kind := kind_of_run(training_job_name):
            return StopResult.ACCEPTED if self.kinds[kind].stop(training_job_name) else StopResult.ENDED
        return self.training.stop(training_job_name, end_warm_pool=end_warm_pool)

    def end_warm_pool(self, training_job_name: str) -> None:
        """Set the keep-alive to 0; runs leave no warm pool."""
        if not kind_of_run(training_job_name):
            self.training.end_warm_pool(training_job_name)

    def describe(self, training_job_name: str) -> Observation | None:
        """Return the state of the training job, or of the run."""
        if kind := kind_of_run(training_job_name):
            return self.kinds[kind].describe(training_job_name)
        return self.training.describe(training_job_name)

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return the account's unfinished training jobs; only the queue makes runs."""
        return self.training.list_open_jobs(since, token)

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """Return the state of a training plan."""
        return self.training.describe_training_plan(arn)

    def units_of(self, training_job_name: str) -> Units:
        """Return the instances that a training job holds."""
        return self.training.units_of(training_job_name)

    def identify(self, training_job_name: str) -> OpenJob | None:
        """Return a training job and its owner; runs belong to their jobs."""
        return None if kind_of_run(training_job_name) else self.training.identify(training_job_name)
