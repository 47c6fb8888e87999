"""The region Lambda: processes regions of images, one per message, within its time limit.

A duplicate or late message does nothing. SQS delivers a malformed message again until it goes to the dead-letter queue;
after an error of AWS it delivers only the affected message again. `pixels.work` does the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from trainmaster.domain.errors import InvalidRequest, JobNotFound, ServiceError
from trainmaster.domain.jobs.job import JobState
from trainmaster.images.domain.concurrency import requests_of
from trainmaster.images.domain.work import MERGE, Claim, image_work
from trainmaster.images.handlers.batch import settle_messages
from trainmaster.images.handlers.models import read_request
from trainmaster.images.kind import parts_of_this_environment
from trainmaster.images.pixels.work.region_outcome import Outcome
from trainmaster.images.pixels.work.task import Queue, Task, TimeLimits
from trainmaster.images.pixels.work.worker import WorkerFactory, process_message

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from trainmaster.ports.store import Store

logger = Logger(service="regions")
metrics = Metrics(namespace="Trainmaster", service="regions")

_METRICS = {
    Outcome.DONE: "RegionsDone",
    Outcome.AGAIN: "RegionsTriedAgain",
    Outcome.FAILED: "RegionsFailed",
}


class Parts(Protocol):
    """Parts of the application that workers use."""

    @property
    def queue(self) -> str:
        """The queue's name."""

    @property
    def store(self) -> Store:
        """The queue's memory."""

    @property
    def region_senders(self) -> Collection[str]:
        """IDs of the roles whose messages are obeyed; empty if the deployment does not tell senders."""

    @property
    def workers(self) -> Queue:
        """Dependencies that workers share with the queue."""

    @property
    def imaging(self) -> WorkerFactory:
        """Builds the dependencies of workers."""


@logger.inject_lambda_context(correlation_id_path="Records[0].messageId")
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Lambda entry point: an SQS batch in, the partial batch response out."""
    return consume(parts_of_this_environment(), event, context)


def consume(parts: Parts, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Work on the regions of a batch, one after the other; dispatch those again for which there is no time."""
    metrics.set_default_dimensions(queue=parts.queue)
    limits = TimeLimits(left=lambda: context.get_remaining_time_in_millis() / 1000)
    return settle_messages(event, lambda record: _settle(parts, record, context, limits))


def _settle(parts: Parts, record: SQSRecord, context: LambdaContext, limits: TimeLimits) -> bool:
    """Work on the region of one message; return False if SQS has to deliver it again."""
    identifier = record.message_id
    try:
        _check_sender(parts.region_senders, record)
        claim = claim_of(record.body, f"{context.aws_request_id}/{identifier}")
        if limits.left() < limits.reserve:
            parts.workers.regions.dispatch(claim.job, claim.attempt, [claim.number])
            return True
        outcome = process_message(claim, parts.workers, limits, _task_of(parts.store), parts.imaging)
    except InvalidRequest as error:
        cause = error.message
        logger.warning("a message about a region cannot be read", extra={"message_id": identifier, "cause": cause})
        return False
    except ServiceError:
        logger.exception("a region could not be taken or given back; its message comes again")
        return False
    logger.info("region", extra={"job": claim.job, "region": claim.number, "outcome": outcome.value})
    if outcome in _METRICS and claim.number != MERGE:
        metrics.add_metric(name=_METRICS[outcome], unit=MetricUnit.Count, value=1)
    return True


def _check_sender(senders: Collection[str], record: SQSRecord) -> None:
    """Raise `InvalidRequest` for a message of another sender than the manager and the workers."""
    if not senders:
        return
    sender = str(record.attributes.get("SenderId") or "").partition(":")[0]
    if sender not in senders:
        raise InvalidRequest(f"the sender {sender or 'without an ID'} may not send regions", field="SenderId")


def claim_of(body: str, worker: str) -> Claim:
    """Return the claim in a message. Raises `InvalidRequest` for a message that the queue did not send."""
    try:
        said = json.loads(body)
        job, attempt, number = said["job"], said["attempt"], said["region"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidRequest(f"the message names no region: {type(error).__name__}") from error
    if not isinstance(job, str) or type(attempt) is not int or type(number) is not int:
        raise InvalidRequest("the message names no region")
    return Claim(job=job, attempt=attempt, number=number, worker=worker)


def _task_of(store: Store) -> Callable[[Claim], Task]:
    def task_of(claim: Claim) -> Task:
        job = store.find(claim.job)
        work = image_work(job) if job is not None else None
        if job is None or work is None:
            raise InvalidRequest(f"there is no image job {claim.job}")
        try:
            request = read_request(store.request_of(claim.job)).request
        except JobNotFound as error:
            raise InvalidRequest(error.message) from error
        return Task(
            request=request,
            endpoint=work.endpoint,
            variant=work.variant,
            part=work.part,
            cut=work.cut,
            workers=requests_of(work, sum(job.units.values())),
            submitter=job.submitted_by or "",
            begin_unreported=job.state is JobState.STARTING,
        )

    return task_of
