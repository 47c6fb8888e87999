"""SageMaker training jobs, as `ports.Launcher`.

Builds each attempt's request (`sagemaker_request`), reads answers (`sagemaker_observation`), and turns errors into
the domain's (`sagemaker_errors`). It must not wait, pace itself or try again: the client retries what is quick, the
service what is not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, AwsError
from trainmaster.adapters.sagemaker.errors import create_trouble, is_in_use, is_missing, is_refusal, other_trouble
from trainmaster.adapters.sagemaker.observation import observation_of_answer, units_of_answer
from trainmaster.adapters.sagemaker.request import Request, attempt_request, own_tags
from trainmaster.adapters.sagemaker.training_plan import window_of_answer
from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.errors import CapacityExhausted, InvalidRequest, NotPermitted, Unavailable
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.ports.sagemaker import CreateResult, OpenJobsPage

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

log = logging.getLogger(__name__)

PAGE = 100
"""Most training jobs in an answer (ListTrainingJobs, `MaxResults`)."""
MAX_TAG_PAGES = 10
CLOCK_TOLERANCE = timedelta(minutes=1)
"""How far SageMaker's clock may be behind ours."""
_AFTER = {"InProgress": "Stopping"}
"""The statuses of unfinished training jobs, in the order in which they are listed: a job moves from one to the next."""


class SageMakerLauncher:
    """Training jobs of one account and Region, on behalf of one queue.

    Args:
        client: a boto3 SageMaker client. It should retry in standard mode, three tries in all, and give up early
            (2 s to connect, 10 s to read): a pass makes many calls in a Lambda's minute, and every verb here can be
            called again.
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
            return self._not_created(error, job, attempt)
        return CreateResult.NEW

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> bool:
        """Ask it to stop; see `ports.Launcher.stop`."""
        if end_warm_pool:
            self._end_warm_pool_if_permitted(training_job_name)
        try:
            self._client.stop_training_job(TrainingJobName=training_job_name)
        except AWS_ERRORS as error:
            return self._is_stopping(error, training_job_name)
        return True

    def end_warm_pool(self, training_job_name: str) -> None:
        """Let its instances go; see `ports.Launcher.end_warm_pool`."""
        try:
            self._client.update_training_job(
                TrainingJobName=training_job_name, ResourceConfig={"KeepAlivePeriodInSeconds": 0}
            )
        except AWS_ERRORS as error:
            # SageMaker takes it only in some states of the job and its pool. Which, no page says.
            if not is_refusal(error):
                raise other_trouble(error) from error
            log.info("no warm pool to end", extra={"trainingJob": training_job_name, "cause": str(error)})

    def describe(self, training_job_name: str) -> Observation | None:
        """What SageMaker says of it now; None where it does not know it.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        answer = self._describe(training_job_name)
        with _reading():
            return None if answer is None else observation_of_answer(answer)

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """One page of the account's unfinished training jobs, the newest first: one list call.

        SageMaker filters by status after it has cut the page, so a page can be empty and have a successor, and two
        statuses take two lists; the token says in which we are. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        status, mark = _place(token)
        asked: dict[str, Any] = {"NextToken": mark} if mark else {}
        try:
            answer = self._client.list_training_jobs(
                StatusEquals=status,
                CreationTimeAfter=since,
                MaxResults=PAGE,
                SortBy="CreationTime",
                SortOrder="Descending",
                **asked,
            )
        except AWS_ERRORS as error:
            raise other_trouble(error) from error
        with _reading():
            names = tuple(summary["TrainingJobName"] for summary in answer["TrainingJobSummaries"])
        return OpenJobsPage(names, _next_token(status, answer.get("NextToken")))

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """How a training plan stands; see `ports.Launcher.training_plan`.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        try:
            answer = self._client.describe_training_plan(TrainingPlanName=arn)
        except AWS_ERRORS as error:
            if is_missing(error):
                return None
            raise other_trouble(error) from error
        with _reading():
            return window_of_answer(answer)

    def units_of(self, training_job_name: str) -> Units:
        """Which instances it holds, by where they come from; empty once it has ended.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        answer = self._describe(training_job_name)
        with _reading():
            return {} if answer is None else units_of_answer(answer)

    def _not_created(self, error: AwsError, job: Job, attempt: Attempt) -> CreateResult:
        """Find out whether it is there all the same.

        A try that got no answer may have succeeded, and its training job then takes the name, or the last instance
        of the account's limit, from the next try.
        """
        refusal = create_trouble(error)
        taken = is_in_use(error)
        if not taken and not isinstance(refusal, CapacityExhausted):
            raise refusal from error
        there = self._describe(attempt.training_job_name)
        if there is not None and self._is_ours(there, job, attempt):
            return CreateResult.ALREADY_THERE
        if not taken:
            raise refusal from error
        if there is None:
            raise Unavailable(f"{attempt.training_job_name} was there a moment ago") from error
        return CreateResult.NAME_TAKEN

    def _is_ours(self, there: Request, job: Job, attempt: Attempt) -> bool:
        """Whether a training job is this attempt's.

        Its tags say so; a job of the same name and number that this queue had in an earlier life, before its
        table was made anew, is older than the job's entry.
        """
        with _reading():
            created, arn = there["CreationTime"], there["TrainingJobArn"]
        if created < job.entry_time - CLOCK_TOLERANCE:
            return False
        return own_tags(job, attempt, self._queue).items() <= self._tags(arn).items()

    def _tags(self, arn: str) -> dict[str, str]:
        tags: dict[str, str] = {}
        asked: dict[str, Any] = {}
        try:
            for _ in range(MAX_TAG_PAGES):
                answer = self._client.list_tags(ResourceArn=arn, **asked)
                with _reading():
                    tags.update((tag["Key"], tag["Value"]) for tag in answer["Tags"])
                if not answer.get("NextToken"):
                    return tags
                asked = {"NextToken": answer["NextToken"]}
        except AWS_ERRORS as error:
            raise other_trouble(error) from error
        raise Unavailable(f"the tags of {arn} have no end")

    def _end_warm_pool_if_permitted(self, training_job_name: str) -> None:
        """A pool that outlives its job is bad; a job that does not step aside because of its pool is worse."""
        try:
            self.end_warm_pool(training_job_name)
        except NotPermitted as error:
            log.warning("may not end a warm pool", extra={"trainingJob": training_job_name, "cause": str(error)})

    def _is_stopping(self, error: AwsError, training_job_name: str) -> bool:
        """After a refused stop: False where it has ended, True where it is stopping already."""
        if not is_refusal(error):
            raise other_trouble(error) from error
        seen = self.describe(training_job_name)
        if seen is None or seen.terminal:
            return False
        if seen.status is Status.STOPPING:
            return True
        raise other_trouble(error) from error

    def _describe(self, training_job_name: str) -> Request | None:
        """DescribeTrainingJob's answer; None where there is no training job of that name."""
        try:
            return self._client.describe_training_job(TrainingJobName=training_job_name)
        except AWS_ERRORS as error:
            if is_missing(error):
                return None
            raise other_trouble(error) from error


@contextmanager
def _reading() -> Iterator[None]:
    """Around the reading of an answer: botocore takes a body that is no JSON for an answer without members."""
    try:
        yield
    except (InvalidRequest, KeyError) as error:
        raise Unavailable(f"SageMaker's answer cannot be read: {error!r}") from error


def _place(token: str | None) -> tuple[Any, str]:
    """The status whose list the token is in, and SageMaker's own token there, "" at its beginning."""
    status, _, mark = (token or "InProgress:").partition(":")
    if status not in ("InProgress", "Stopping"):
        raise InvalidRequest("not a token of open_jobs", field="token")
    return status, mark


def _next_token(status: str, mark: str | None) -> str | None:
    if mark:
        return f"{status}:{mark}"
    return f"{_AFTER[status]}:" if status in _AFTER else None
