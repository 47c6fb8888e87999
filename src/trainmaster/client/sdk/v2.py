"""QueueSession for SageMaker SDK 2: estimators submit to the queue, and `fit` waits for the whole job.

Import it only if `sagemaker<3` is installed. All calls except those for training jobs are the SDK's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from sagemaker.session import Session  # type: ignore[import-not-found]

from trainmaster.client.api.errors import ApiError
from trainmaster.client.sdk.hook import Route, client_for, is_for_queue
from trainmaster.client.sdk.response_codec import to_client_error
from trainmaster.client.sdk.waiting import Progress, QueueWait, SteadyMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.sdk.elastic import ElasticOptions


class QueueSession(Session):  # type: ignore[misc]
    """SageMaker Session whose training jobs go through the queue; every other call is the SDK's.

    `api` is an ApiClient or the API's URL (None: found as `ApiClient()` finds it). With `resources`, such as
    `accelerators=8,vcpus=96`, jobs request these instead of the instance type that they name; with `elastic` they are
    elastic. All other arguments are the SDK's. `queue` is the API client.
    Only this session's own SageMaker client is routed: other clients of the same boto session start jobs at once.
    """

    def __init__(
        self,
        boto_session: boto3.session.Session | None = None,
        *args: Any,
        api: ApiClient | str | None = None,
        resources: str | None = None,
        elastic: ElasticOptions | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(boto_session, *args, **kwargs)
        self.queue: ApiClient = client_for(api, self.boto_session)
        self._route = Route(self.boto_session, self.queue)
        self._route.resources = resources
        self._route.elastic = elastic
        self._route.message_of = SteadyMessage()
        self._route.attach(self.sagemaker_client.meta.events)
        self._route.attach_readers(self.boto_session.events)

    def _intercept_create_request(
        self, request: dict[str, Any], create: Callable[..., Any], func_name: str | None = None
    ) -> Any:
        """Submit training jobs to the queue (the article's section on intercepting the create request)."""
        if func_name != "train" or not is_for_queue(request) or self._route.is_elsewhere(self.boto_region_name):
            return super()._intercept_create_request(request, create, func_name)
        try:
            return self._route.submit(request)
        except ApiError as error:
            raise to_client_error(error, "CreateTrainingJob") from error

    def logs_for_job(
        self,
        job_name: str,
        wait: bool = False,  # noqa: FBT001, FBT002 - the SDK's own signature
        poll: int = 10,
        log_type: str = "All",
        timeout: int | None = None,
    ) -> None:
        """Show the logs of all attempts; with `wait`, first show the job's progress in the queue.

        Raises the SDK's UnexpectedStatusException if the job fails.
        """
        remaining = self._wait_in_queue(job_name, poll, timeout) if wait else timeout
        super().logs_for_job(job_name, wait, poll, log_type, remaining)

    def wait_for_job(self, job: str, poll: int = 5) -> Any:
        """Wait until the job has ended, through the queue and all attempts, and return its description.

        Raises the SDK's UnexpectedStatusException if the job fails.
        """
        self._wait_in_queue(job, poll, None)
        return super().wait_for_job(job, poll)

    def _wait_in_queue(self, job_name: str, poll: int, timeout: int | None) -> int | None:
        """Wait until the job has left the queue; return the rest of the timeout in seconds."""
        progress = Progress()
        try:
            elapsed = QueueWait(self._route.cache, progress, poll).wait(job_name, timeout)
        finally:
            progress.finish()
        # The SDK treats 0 as no timeout.
        return None if timeout is None else max(1, timeout - int(elapsed))
