"""Image jobs' attempts to where their regions are, all others to SageMaker: one Launcher for both.

It must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation
from trainmaster.images.domain.work import is_run
from trainmaster.images.service.launcher import ImageLauncher
from trainmaster.ports.sagemaker import CreateResult, Launcher, OpenJobsPage
from trainmaster.ports.store import Request


@dataclass(frozen=True, slots=True)
class RoutedLauncher:
    """Runs go to `images`, training jobs to `training`; see `ports.Launcher` for what each call does and raises."""

    training: Launcher
    images: ImageLauncher

    def create(self, job: Job, attempt: Attempt, request: Request) -> CreateResult:
        """Create the attempt's training job, or its run."""
        if job.image_work is not None:
            return self.images.create(job, attempt)
        return self.training.create(job, attempt, request)

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> bool:
        """Ask it to stop."""
        if is_run(training_job_name):
            return self.images.stop(training_job_name)
        return self.training.stop(training_job_name, end_warm_pool=end_warm_pool)

    def end_warm_pool(self, training_job_name: str) -> None:
        """Set its keep-alive to 0; runs leave no warm pool."""
        if not is_run(training_job_name):
            self.training.end_warm_pool(training_job_name)

    def describe(self, training_job_name: str) -> Observation | None:
        """How it stands."""
        if is_run(training_job_name):
            return self.images.describe(training_job_name)
        return self.training.describe(training_job_name)

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """The account's unfinished training jobs; runs are nobody's but the queue's."""
        return self.training.list_open_jobs(since, token)

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """How a training plan stands."""
        return self.training.describe_training_plan(arn)

    def units_of(self, training_job_name: str) -> Units:
        """Which instances a training job holds."""
        return self.training.units_of(training_job_name)
