"""SageMaker training jobs, as `ports.Launcher`.

Builds each attempt's request (`request`), reads answers (`observation`) and translates errors (`errors`). It neither
waits nor retries: the client retries short failures, the service long ones.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, AwsError
from trainmaster.adapters.sagemaker.errors import (
    call_error,
    create_error,
    is_in_use,
    is_missing,
    is_refusal,
    is_stopping,
    was_retried,
)
from trainmaster.adapters.sagemaker.observation import (
    observation_of_answer,
    open_job_of_answer,
    started_job_of_answer,
    units_of_answer,
)
from trainmaster.adapters.sagemaker.request import QUEUE_TAG, START_TAG, Request, attempt_request, own_tags
from trainmaster.adapters.sagemaker.training_plan import window_of_answer
from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.errors import InvalidRequest, NotPermitted, Throttled, Unavailable
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.ports.sagemaker import (
    CreateResult,
    Creator,
    OpenJob,
    OpenJobsPage,
    StartedJob,
    StopResult,
    Unconfirmed,
)

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

log = logging.getLogger(__name__)

PAGE = 100
"""Training jobs in one answer, at most (ListTrainingJobs, `MaxResults`)."""
MAX_TAG_PAGES = 10
MAX_CLOCK_LAG = timedelta(minutes=5)
"""Allowed lag of SageMaker's clock behind the queue's."""
_RESULTS = {
    Creator.ATTEMPT: CreateResult.ALREADY_THERE,
    Creator.EARLIER_START: CreateResult.EARLIER_START,
    Creator.OTHER: CreateResult.NAME_TAKEN,
}
"""Results of a create call whose training job another call has created."""
_NEXT_STATUS = {"InProgress": "Stopping"}
"""The next status to list after each: a job moves in this order, so no job is missed."""


class NotVisible(Unavailable):
    """SageMaker does not know the training job under its ARN, or not yet."""


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

    def create(self, job: Job, attempt: Attempt, request: Request, *, retry: bool = False) -> CreateResult:
        """Create the attempt's training job; see `ports.Launcher.create`."""
        try:
            self._client.create_training_job(**attempt_request(job, attempt, request, self._queue))
        except AWS_ERRORS as error:
            return self._handle_create_error(error, job, attempt, retry=retry or was_retried(error))
        return CreateResult.NEW

    def creator(self, job: Job, attempt: Attempt) -> Creator:
        """Return the creator of the training job of the attempt's name; see `ports.Launcher.creator`.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        there = self._describe(attempt.training_job_name)
        return Creator.NONE if there is None else self._creator(there, job, attempt)

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> StopResult:
        """Request a stop of the training job; see `ports.Launcher.stop`."""
        if end_warm_pool:
            self._try_to_end_warm_pool(training_job_name)
        try:
            self._client.stop_training_job(TrainingJobName=training_job_name)
        except AWS_ERRORS as error:
            return self._result_of_refused_stop(error, training_job_name)
        return StopResult.ACCEPTED

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

    def description(self, training_job_name: str) -> Mapping[str, Any] | None:
        """Return DescribeTrainingJob's answer as JSON values; None if SageMaker does not know the training job.

        Times are milliseconds since 1970, as in the outputs of Step Functions' own integration with SageMaker. Raises
        `Throttled`, `Unavailable`, `NotPermitted`.
        """
        answer = self._describe(training_job_name)
        if answer is None:
            return None
        values = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
        found: Mapping[str, Any] = json.loads(json.dumps(values, default=_milliseconds))
        return found

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return one page of the account's unfinished training jobs, the newest first, with one list call.

        SageMaker filters by status after it has cut the page, so an empty page can have a successor. Two statuses take
        two lists; the token names the current one. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        status, mark = _parse_token(token)
        page = self._list(since, mark, StatusEquals=status, SortBy="CreationTime", SortOrder="Descending")
        return OpenJobsPage(page.names, _next_token(status, page.token))

    def list_created(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return one page of the account's training jobs, open or ended; see `ports.Inventory`."""
        return self._list(since, token)

    def find_created(self, training_job_name: str) -> StartedJob | None:
        """Return a training job of this queue; see `ports.Inventory`."""
        answer = self._describe(training_job_name)
        if answer is None:
            return None
        with _reading():
            arn = answer["TrainingJobArn"]
        tags = self._visible_tags(arn)
        with _reading():
            return started_job_of_answer(answer, tags, self._queue)

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

    def _handle_create_error(self, error: AwsError, job: Job, attempt: Attempt, *, retry: bool) -> CreateResult:
        """Return the result of a failed create call, or raise its error.

        An earlier try without an answer may have been accepted; its training job then has the name, or the last
        instance of the account's quota. So look before raising.
        """
        refusal = create_error(error)
        taken = is_in_use(error)
        if isinstance(refusal, Throttled | Unavailable) or not (taken or retry):
            raise refusal from error
        name, there = attempt.training_job_name, self._describe(attempt.training_job_name)
        if there is None:
            raise Unconfirmed(f"SageMaker may have {name}: {refusal}", None if taken else refusal) from error
        creator = self._creator(there, job, attempt)
        if creator is Creator.UNKNOWN:
            raise Unconfirmed(f"the creator of {name} cannot be read from its tags yet") from error
        return _RESULTS[creator]

    def _creator(self, there: Request, job: Job, attempt: Attempt) -> Creator:
        """Return the creator of a described training job that has the attempt's name.

        Its tags decide. They may become visible later than the job itself; one that is older than the attempt is not
        the attempt's anyway.
        """
        with _reading():
            created, arn = there["CreationTime"], there["TrainingJobArn"]
        tags, own = self._visible_tags(arn), own_tags(job, attempt, self._queue)
        if own.items() <= tags.items():
            return Creator.ATTEMPT
        if all(tags.get(key) == value for key, value in own.items() if key != START_TAG):
            return Creator.EARLIER_START
        if QUEUE_TAG in tags or created < attempt.created_at - MAX_CLOCK_LAG:
            return Creator.OTHER
        return Creator.UNKNOWN

    def _visible_tags(self, arn: str) -> dict[str, str]:
        """Return the tags that SageMaker shows; none if it does not know the training job here yet."""
        try:
            return self._tags(arn)
        except NotVisible:
            return {}

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
            raise NotVisible(arn) if is_missing(error) else call_error(error) from error
        raise Unavailable(f"{arn} has more than {MAX_TAG_PAGES} pages of tags")

    def _try_to_end_warm_pool(self, training_job_name: str) -> None:
        """End the warm pool, but let no error keep the job from stopping; a warm pool that stays is ended later."""
        try:
            self.end_warm_pool(training_job_name)
        except (NotPermitted, Throttled, Unavailable) as error:
            log.warning("could not end a warm pool", extra={"trainingJob": training_job_name, "cause": str(error)})

    def _result_of_refused_stop(self, error: AwsError, training_job_name: str) -> StopResult:
        """Return why a stop was refused. Raises its error if that cannot be found out."""
        if not is_refusal(error):
            raise call_error(error) from error
        if is_stopping(error):
            # An earlier try of this call may be the reason.
            return StopResult.ACCEPTED if was_retried(error) else StopResult.ALREADY_STOPPING
        seen = self.describe(training_job_name)
        if seen is None:
            return StopResult.NOT_FOUND
        if seen.terminal:
            return StopResult.ENDED
        if seen.status is Status.STOPPING:
            return StopResult.ACCEPTED if was_retried(error) else StopResult.ALREADY_STOPPING
        raise call_error(error) from error

    def _list(self, since: datetime, token: str | None, **options: Any) -> OpenJobsPage:
        """Return one page of names, with SageMaker's own token; `options` go to ListTrainingJobs."""
        if token:
            options["NextToken"] = token
        try:
            answer = self._client.list_training_jobs(CreationTimeAfter=since, MaxResults=PAGE, **options)
        except AWS_ERRORS as error:
            raise call_error(error) from error
        with _reading():
            names = tuple(summary["TrainingJobName"] for summary in answer["TrainingJobSummaries"])
        return OpenJobsPage(names, answer.get("NextToken"))

    def _describe(self, training_job_name: str) -> Request | None:
        """Return DescribeTrainingJob's answer, None if there is no training job of that name."""
        try:
            return self._client.describe_training_job(TrainingJobName=training_job_name)
        except AWS_ERRORS as error:
            if is_missing(error):
                return None
            raise call_error(error) from error


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


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
