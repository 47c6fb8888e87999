"""`TrainingQueue` of the SageMaker SDK on the queue, with a `wait` that shows the job's progress and logs.

Import it only if the SDK is installed, version 3, or one of version 2 that has AWS Batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3

from trainmaster.client.batch.hook import DEFAULT_QUEUE, BatchRoute, include_queue
from trainmaster.client.batch.names import job_in
from trainmaster.client.batch.watching import AttemptLogLines, JobWatch
from trainmaster.client.sdk.session import SdkMissing

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient

_HINT = "pip install 'trainmaster[sdk3]', or sagemaker>=2.257,<3 and nest_asyncio."

try:
    from sagemaker.train.aws_batch import training_queue as _sdk  # type: ignore[import-not-found]
except ImportError:
    try:
        from sagemaker.aws_batch import training_queue as _sdk  # type: ignore[import-not-found]
    except ImportError as error:
        message = f"TrainingQueue extends the class of the SageMaker SDK, which is missing: {_HINT}"
        raise SdkMissing(message, name="sagemaker") from error


class QueuedJob(_sdk.TrainingQueuedJob):  # type: ignore[misc]
    """The SDK's TrainingQueuedJob, whose `wait` shows what happens."""

    def __init__(self, job: Any, queue: TrainingQueue) -> None:
        self.__dict__.update(job.__dict__)
        self._queue = queue

    def wait(self, timeout: float | None = None, *, logs: bool = True, poll: float = 5.0) -> Any:
        """Wait until the job has ended, at most `timeout` seconds, and return its description.

        While the job waits, its position, the reason and its estimated start are shown; then the logs of its
        containers, through all attempts. `poll` is the interval in seconds. As the SDK's, it does not raise if the job
        fails: `result` does.
        """
        route = self._queue.route()
        lines = AttemptLogLines(lambda: boto3.client("logs"))
        watch = JobWatch(route.jobs.find, lines if logs else lambda _: None)
        watch.wait(job_in(self.job_arn), timeout, poll)
        return self.describe()


class TrainingQueue(_sdk.TrainingQueue):  # type: ignore[misc]
    """The SDK's TrainingQueue, on the queue: jobs of boto3's default session that name it are the queue's.

    `queue_name` is any name that no queue of AWS Batch has which you still use. `api` is an ApiClient or the API's URL;
    None finds it as `ApiClient()` does. All methods are the SDK's; the jobs that they return are `QueuedJob`.
    """

    def __init__(self, queue_name: str = DEFAULT_QUEUE, *, api: ApiClient | str | None = None) -> None:
        super().__init__(queue_name)
        self._api = include_queue(queue_name, api).api

    def submit(self, *args: Any, **kwargs: Any) -> QueuedJob:
        """Submit a training job; the arguments are the SDK's."""
        self.route()
        return QueuedJob(super().submit(*args, **kwargs), self)

    def list_jobs(self, *args: Any, **kwargs: Any) -> list[QueuedJob]:
        """List jobs by name or status; the arguments are the SDK's."""
        self.route()
        return [QueuedJob(job, self) for job in super().list_jobs(*args, **kwargs)]

    def list_jobs_by_share(self, *args: Any, **kwargs: Any) -> list[QueuedJob]:
        """List jobs of a share; the arguments are the SDK's."""
        self.route()
        return [QueuedJob(job, self) for job in super().list_jobs_by_share(*args, **kwargs)]

    def route(self) -> BatchRoute:
        """Return the route of boto3's default session, which may be another than at the last call."""
        return include_queue(self.queue_name, self._api)
