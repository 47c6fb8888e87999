"""Runs a job of the queue as a step of another program: submits it, waits, and cancels it if that is interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import ApiError
from trainmaster.client.sdk.describe import model_location
from trainmaster.client.sdk.job_cache import JobCache
from trainmaster.client.views.changes import JobChanges
from trainmaster.client.views.states import ENDED
from trainmaster.client.views.wording import attempt_count, sentence_of
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView

POLL_SECONDS: Final = 15.0
"""Default polling interval."""
_INTERRUPTED: Final = "the program that waited for it was interrupted"


class JobFailed(Exception):
    """A job ended without completing.

    Attributes:
        job: its last view.
    """

    def __init__(self, job: JobDetailView) -> None:
        reason = f": {job['failureReason']}" if job["failureReason"] else ""
        super().__init__(one_line(f"Training job {job['jobName']} is {job['jobState']}{reason}"))
        self.job = job


def run_job(  # noqa: PLR0913 - the last two are for tests
    queue: ApiClient,
    request: Mapping[str, Any],
    *,
    show: Callable[[str], object] = lambda _: None,
    poll_seconds: float = POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> JobDetailView:
    """Submit a CreateTrainingJob request, wait until its job has ended, and return the job.

    `show` is called with a sentence at each change. The same request finds its job again, so a step that is run a
    second time continues to wait for the job of the first. An interruption of the program (KeyboardInterrupt, or what
    else is no `Exception`) cancels the job; an error of the API does not.

    Raises JobFailed if the job did not complete, ApiError.
    """
    name = queue.submit(request)["jobName"]
    cache, changes = JobCache(queue, clock=clock), JobChanges(clock)
    try:
        while True:
            job = cache.look_up(name) or queue.job(name)
            if changes.is_due(job):
                show(one_line(f"{name}: {sentence_of(job)}"))
            if job["jobState"] in ENDED:
                break
            sleep(poll_seconds)
    except BaseException as error:
        if not isinstance(error, Exception):
            with suppress(ApiError):
                queue.cancel(name, _INTERRUPTED)
        raise
    if job["jobState"] != "completed":
        raise JobFailed(job)
    return job


def job_facts(job: JobDetailView) -> dict[str, str | int]:
    """Return short values that link the record of another tool, such as MLflow or Dagster, with the job."""
    facts: dict[str, str | int | None] = {
        "trainmaster.job": job["jobName"],
        "trainmaster.state": job["jobState"],
        "trainmaster.attempts": attempt_count(job),
        "trainmaster.priority": job["priority"],
        "trainmaster.share": job["share"],
        "sagemaker.training_job": job["trainingJobName"],
        "sagemaker.model_artifacts": model_location(job),
    }
    return {name: value for name, value in facts.items() if value is not None and value != ""}
