"""SageMaker training jobs, as `ports.Launcher`.

Builds each attempt's request (`request`), reads answers (`observation`) and translates errors (`errors`). It neither
waits nor retries: the client retries short failures, the service long ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, AwsError
from trainmaster.adapters.sagemaker.errors import call_error, create_error, is_in_use, is_missing, is_refusal
from trainmaster.adapters.sagemaker.observation import observation_of_answer, open_job_of_answer, units_of_answer
from trainmaster.adapters.sagemaker.request import Request, attempt_request, own_tags
from trainmaster.adapters.sagemaker.training_plan import window_of_answer
from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.errors import CapacityExhausted, InvalidRequest, NotPermitted, ServiceError, Unavailable
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.ports.sagemaker import CreateResult, OpenJob, OpenJobsPage

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

log = logging.getLogger(__name__)

PAGE = 100
"""Training jobs in one answer, at most (ListTrainingJobs, `MaxResults`)."""
MAX_TAG_PAGES = 10
CLOCK_TOLERANCE = timedelta(minutes=1)
"""Allowed lag of SageMaker's clock behind the queue's."""
_NEXT_STATUS = {"InProgress": "Stopping"}
"""The next status to list after each: a job moves in this order, so no job is missed."""


class SageMakerLauncher:
    """Training jobs of one account and Region, on behalf of one queue.

    Args:
        client: a boto3 SageMaker client. It should retry in standard mode, three tries in all, and time out early
            (2 s to connect, 10 s to read): a pass makes many calls within one Lambda minute, and every verb here can be
            repeated.
        queue: the queue's name, which every attempt's tags carry.
    """

    def __init__(self, client: SageMakerClient, queue: str) -> None:
        self._client = client
        self._queue = queue

    def create(self, job: Job, attempt: Attempt, request: Request) -> CreateResult:
        """Create the attempt's training job; see `ports.Launcher.create`."""
        try:
            self._client.create_training_job(**attempt_request(job, attempt, request, self._queue))
        except AWS_ERRORS as error:
            return self._handle_create_error(error, job, attempt)
        return CreateResult.NEW

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> bool:
        """Request a stop of the training job; see `ports.Launcher.stop`."""
        if end_warm_pool:
            self._end_warm_pool_if_permitted(training_job_name)
        try:
            self._client.stop_training_job(TrainingJobName=training_job_name)
        except AWS_ERRORS as error:
            return self._is_stopping(error, training_job_name)
        return True

    def end_warm_pool(self, training_job_name: str) -> None:
        """End the training job's warm pool; see `ports.Launcher.end_warm_pool`."""
        try:
            self._client.update_training_job(
                TrainingJobName=training_job_name, ResourceConfig={"KeepAlivePeriodInSeconds": 0}
            )
        except AWS_ERRORS as error:
            # SageMaker accepts this only in some states of the job and its pool, and documents no list of them.
            if not is_refusal(error):
                raise call_error(error) from error
            log.info("no warm pool to end", extra={"trainingJob": training_job_name, "cause": str(error)})

    def describe(self, training_job_name: str) -> Observation | None:
        """Return SageMaker's state of the training job, None if SageMaker does not know it.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        answer = self._describe(training_job_name)
        with _reading():
            return None if answer is None else observation_of_answer(answer)

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return one page of the account's unfinished training jobs, the newest first, with one list call.

        SageMaker filters by status after it has cut the page, so an empty page can have a successor. Two statuses take
        two lists; the token names the current one. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        status, mark = _parse_token(token)
        arguments: dict[str, Any] = {"NextToken": mark} if mark else {}
        try:
            answer = self._client.list_training_jobs(
                StatusEquals=status,
                CreationTimeAfter=since,
                MaxResults=PAGE,
                SortBy="CreationTime",
                SortOrder="Descending",
                **arguments,
            )
        except AWS_ERRORS as error:
            raise call_error(error) from error
        with _reading():
            names = tuple(summary["TrainingJobName"] for summary in answer["TrainingJobSummaries"])
        return OpenJobsPage(names, _next_token(status, answer.get("NextToken")))

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """Return the state and window of a training plan; see `ports.Launcher.describe_training_plan`.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        try:
            answer = self._client.describe_training_plan(TrainingPlanName=arn)
        except AWS_ERRORS as error:
            if is_missing(error):
                return None
            raise call_error(error) from error
        with _reading():
            return window_of_answer(answer)

    def units_of(self, training_job_name: str) -> Units:
        """Return the instances that a training job holds, by their source; empty once it has ended.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        answer = self._describe(training_job_name)
        with _reading():
            return {} if answer is None else units_of_answer(answer)

    def identify(self, training_job_name: str) -> OpenJob | None:
        """Return a training job and its owner, None once it has ended; see `ports.Launcher.identify`.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        answer = self._describe(training_job_name)
        with _reading():
            if answer is None or observation_of_answer(answer).terminal:
                return None
            arn = answer["TrainingJobArn"]
        tags = self._visible_tags(arn)
        with _reading():
            return open_job_of_answer(answer, tags, self._queue)

    def _handle_create_error(self, error: AwsError, job: Job, attempt: Attempt) -> CreateResult:
        """Return the result of a failed create call, or raise its error.

        A try without an answer may have succeeded; its training job then takes the name, or the last instance of the
        account's quota, from the next try. So look before raising.
        """
        refusal = create_error(error)
        taken = is_in_use(error)
        if not taken and not isinstance(refusal, CapacityExhausted):
            raise refusal from error
        there = self._describe(attempt.training_job_name)
        if there is not None and self._is_ours(there, job, attempt):
            return CreateResult.ALREADY_THERE
        if not taken:
            raise refusal from error
        if there is None:
            name = attempt.training_job_name
            raise Unavailable(f"SageMaker has {name}, but does not describe it yet") from error
        return CreateResult.NAME_TAKEN

    def _is_ours(self, there: Request, job: Job, attempt: Attempt) -> bool:
        """Return True if the training job is this attempt's.

        Its tags decide. If the table was deleted and created again, an older queue may have had a job of the same name
        and attempt number; its training job is older than this job's entry.
        """
        with _reading():
            created, arn = there["CreationTime"], there["TrainingJobArn"]
        if created < job.entry_time - CLOCK_TOLERANCE:
            return False
        return own_tags(job, attempt, self._queue).items() <= self._tags(arn).items()

    def _tags(self, arn: str) -> dict[str, str]:
        tags: dict[str, str] = {}
        arguments: dict[str, Any] = {}
        try:
            for _ in range(MAX_TAG_PAGES):
                answer = self._client.list_tags(ResourceArn=arn, **arguments)
                with _reading():
                    tags.update((tag["Key"], tag["Value"]) for tag in answer["Tags"])
                if not answer.get("NextToken"):
                    return tags
                arguments = {"NextToken": answer["NextToken"]}
        except AWS_ERRORS as error:
            raise call_error(error) from error
        raise Unavailable(f"{arn} has more than {MAX_TAG_PAGES} pages of tags")

    def _visible_tags(self, arn: str) -> dict[str, str]:
        """Return the visible tags of a training job; none as long as ListTags does not find it."""
        try:
            return self._tags(arn)
        except ServiceError as error:
            if isinstance(error.__cause__, AWS_ERRORS) and is_missing(error.__cause__):
                return {}
            raise

    def _end_warm_pool_if_permitted(self, training_job_name: str) -> None:
        """End the warm pool, but let a missing permission not keep the job from stopping."""
        try:
            self.end_warm_pool(training_job_name)
        except NotPermitted as error:
            log.warning(
                "no permission to end a warm pool", extra={"trainingJob": training_job_name, "cause": str(error)}
            )

    def _is_stopping(self, error: AwsError, training_job_name: str) -> bool:
        """Return, after a refused stop, False if the job has ended and True if it is already stopping."""
        if not is_refusal(error):
            raise call_error(error) from error
        seen = self.describe(training_job_name)
        if seen is None or seen.terminal:
            return False
        if seen.status is Status.STOPPING:
            return True
        raise call_error(error) from error

    def _describe(self, training_job_name: str) -> Request | None:
        """Return DescribeTrainingJob's answer, None if there is no training job of that name."""
        try:
            return self._client.describe_training_job(TrainingJobName=training_job_name)
        except AWS_ERRORS as error:
            if is_missing(error):
                return None
            raise call_error(error) from error


@contextmanager
def _reading() -> Iterator[None]:
    """Raise `Unavailable` if the block cannot read an answer: botocore parses a non-JSON body as an empty answer."""
    try:
        yield
    except (InvalidRequest, KeyError) as error:
        raise Unavailable(f"SageMaker's answer cannot be read: {error!r}") from error


def _parse_token(token: str | None) -> tuple[Any, str]:
    """Return the status whose list the token belongs to, and SageMaker's own token in it, "" at its beginning."""
    status, _, mark = (token or "InProgress:").partition(":")
    if status not in ("InProgress", "Stopping"):
        raise InvalidRequest("The token is not valid for this list.", field="token")
    return status, mark


def _next_token(status: str, mark: str | None) -> str | None:
    if mark:
        return f"{status}:{mark}"
    return f"{_NEXT_STATUS[status]}:" if status in _NEXT_STATUS else None
