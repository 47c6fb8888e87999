"""The launcher of all kinds of jobs: training jobs at SageMaker, and the runs of other kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation
from trainmaster.domain.jobs.work import kind_of_run
from trainmaster.ports.kinds import Runs
from trainmaster.ports.sagemaker import CreateResult, Launcher, OpenJobsPage
from trainmaster.ports.store import Request


@dataclass(frozen=True, slots=True)
class KindLauncher:
    """Calls `training` for training jobs, and the runs of their kind for all others; see `ports.sagemaker.Launcher`."""

    training: Launcher
    kinds: Mapping[str, Runs]

    def create(self, job: Job, attempt: Attempt, request: Request) -> CreateResult:
        """Create the attempt's training job, or its run."""
        if job.work is not None:
            return self.kinds[job.work.kind].create(job, attempt)
        return self.training.create(job, attempt, request)

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> bool:
        """Stop the training job, or the run."""
        if kind := kind_of_run(training_job_name):
            return self.kinds[kind].stop(training_job_name)
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
