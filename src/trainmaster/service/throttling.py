"""Stop calling a verb of SageMaker for the rest of a pass once it was throttled, and no other verb.

SageMaker limits the rate of each operation separately: a throttled CreateTrainingJob must not delay a StopTrainingJob.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.errors import Throttled
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation
from trainmaster.ports.sagemaker import CreateResult, Creator, Launcher, OpenJob, OpenJobsPage, StopResult
from trainmaster.ports.store import Request

_T = TypeVar("_T")


class VerbThrottled(Throttled):
    """SageMaker throttled this verb; calls of other verbs may succeed."""


@dataclass(frozen=True, slots=True)
class ThrottledVerbs:
    """A launcher for one pass, which fails a verb without a call after SageMaker has throttled it; see `Launcher`.

    Attributes:
        launcher: makes the calls.
        verbs: the verbs that were throttled in this pass.
    """

    launcher: Launcher
    verbs: set[str] = field(default_factory=set)

    def create(self, job: Job, attempt: Attempt, request: Request, *, retry: bool = False) -> CreateResult:
        """Create the attempt's training job."""
        return self._call("create", lambda: self.launcher.create(job, attempt, request, retry=retry))

    def creator(self, job: Job, attempt: Attempt) -> Creator:
        """Return the creator of the attempt's training job."""
        return self._call("describe", lambda: self.launcher.creator(job, attempt))

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> StopResult:
        """Request a training job's stop."""
        return self._call("stop", lambda: self.launcher.stop(training_job_name, end_warm_pool=end_warm_pool))

    def end_warm_pool(self, training_job_name: str) -> None:
        """End a warm pool."""
        self._call("end_warm_pool", lambda: self.launcher.end_warm_pool(training_job_name))

    def describe(self, training_job_name: str) -> Observation | None:
        """Return a training job's current state."""
        return self._call("describe", lambda: self.launcher.describe(training_job_name))

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return one page of the account's unfinished training jobs."""
        return self._call("list_open_jobs", lambda: self.launcher.list_open_jobs(since, token))

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """Return the state of a training plan."""
        return self._call("describe_training_plan", lambda: self.launcher.describe_training_plan(arn))

    def units_of(self, training_job_name: str) -> Units:
        """Return the instances that a training job holds."""
        return self._call("describe", lambda: self.launcher.units_of(training_job_name))

    def identify(self, training_job_name: str) -> OpenJob | None:
        """Return a training job and its owner."""
        return self._call("describe", lambda: self.launcher.identify(training_job_name))

    def _call(self, verb: str, call: Callable[[], _T]) -> _T:
        if verb in self.verbs:
            raise VerbThrottled(f"SageMaker has throttled {verb} in this pass; the next one continues")
        try:
            return call()
        except Throttled as error:
            self.verbs.add(verb)
            raise VerbThrottled(str(error)) from error
