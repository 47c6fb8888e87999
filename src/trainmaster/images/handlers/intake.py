"""The intake Lambda: consumes the queue of image requests, reads image headers in parallel, and enters jobs.

Messages that a retry cannot help go to the dead-letter queue at once, unchanged, with the reason; SQS delivers others
again. Each message succeeds or fails on its own. The log never contains the contents of a request.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from trainmaster.domain.access.caller import UNKNOWN, Caller
from trainmaster.domain.compat import UTC
from trainmaster.domain.errors import AccessDenied, Refused, ServiceError
from trainmaster.domain.requests.values import job_names
from trainmaster.handlers.api.body import parse_body
from trainmaster.handlers.api.errors import unexpected
from trainmaster.images.domain.refusal import Refusal
from trainmaster.images.handlers.batch import settle_messages
from trainmaster.images.handlers.metrics import tell_errors
from trainmaster.images.handlers.models import read_request
from trainmaster.images.kind import parts_of_this_environment
from trainmaster.images.ports import CALLER, FIELD, REASON
from trainmaster.images.service.intake import IncomingRequest, Intake, IntakeResult, enter, prepare
from trainmaster.images.service.submissions import note_refused
from trainmaster.service.wake import wake

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from trainmaster.domain.policy.settings import Policy
    from trainmaster.images.ports import ImageIntake, Refusals
    from trainmaster.ports.runtime import Publisher

logger = Logger(service="intake")
metrics = Metrics(namespace="Trainmaster", service="intake")

AT_ONCE = 10
"""Images that are read at the same time: as many as a batch has messages."""
MARGIN = 5.0
"""Seconds reserved for entering jobs whose images have been read; SQS delivers the other messages again."""


class Parts(Protocol):
    """Parts of the application that the intake uses."""

    @property
    def queue(self) -> str:
        """The queue's name."""

    @property
    def intake(self) -> Intake:
        """Dependencies of the intake of requests."""

    @property
    def image_queue(self) -> ImageIntake | None:
        """Queue on which refused requests are set aside; None if there is none."""

    @property
    def refusals(self) -> Refusals:
        """Store of refusals."""

    @property
    def publisher(self) -> Publisher:
        """The wake queue."""


@logger.inject_lambda_context(correlation_id_path="Records[0].messageId")
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Lambda entry point: an SQS batch in, the partial batch response out."""
    return consume(parts_of_this_environment(), event, context)


def consume(parts: Parts, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take in every request of the batch; the manager is woken once for all."""
    metrics.set_default_dimensions(queue=parts.queue)
    policy = parts.intake.store.settings(catalogue=False).policy
    batch = Batch(parts, policy, context)
    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look")
    try:
        batch.look(pool, event["Records"])
        response = settle_messages(event, batch.settle)
    finally:
        # Images that are still being read belong to messages that SQS delivers again.
        pool.shutdown(wait=False, cancel_futures=True)
    batch.tell()
    return response


@dataclass(slots=True)
class Batch:
    """The requests of one delivery.

    Attributes:
        entered: how many jobs are new.
        aside: how many requests were set aside.
        failed: endpoints that could not be described, or whose images could not be read.
    """

    parts: Parts
    policy: Policy
    context: LambdaContext
    entered: int = 0
    aside: int = 0
    failed: list[str] = field(default_factory=list)
    _looking: dict[str, Future[tuple[IncomingRequest, IntakeResult]]] = field(default_factory=dict)

    def look(self, pool: ThreadPoolExecutor, records: list[dict[str, Any]]) -> None:
        """Begin to look at every request at the same time."""
        for record in records:
            self._looking[record["messageId"]] = pool.submit(self._look, SQSRecord(record))

    def settle(self, record: SQSRecord) -> bool:
        """Enter the job of one message, or set the message aside; return False if SQS has to deliver it again."""
        try:
            refusal = self._enter(record)
            return refusal is None or self._set_aside(record, refusal)
        except ServiceError:
            logger.exception("a request could not be taken in; it comes again", extra={"message_id": record.message_id})
        except TimeoutError:
            logger.warning("an image takes too long; its request comes again", extra={"message_id": record.message_id})
        except Exception as error:  # noqa: BLE001 -- a fault in our code must not fail the other messages
            unexpected(error, record.message_id)
        return False

    def tell(self) -> None:
        """Wake the manager if jobs were entered, and log the result."""
        metrics.add_metric(name="ImageJobsEntered", unit=MetricUnit.Count, value=self.entered)
        metrics.add_metric(name="ImageJobsSetAside", unit=MetricUnit.Count, value=self.aside)
        tell_errors(self.failed, decisions=len(self._looking))
        if not self.entered:
            return
        try:
            wake(self.parts.intake.store, self.parts.publisher)
        except ServiceError:
            logger.exception("could not wake the manager; the next tick will")

    def _enter(self, record: SQSRecord) -> Refused | None:
        """Enter the job of one message; return the error of a request that a retry cannot help."""
        left = self.context.get_remaining_time_in_millis() / 1000 - MARGIN
        try:
            asked, prepared = self._looking[record.message_id].result(timeout=max(left, 0))
            taken = enter(self.parts.intake, asked, prepared, self.policy)
        except Refused as error:
            return error
        self.entered += taken.new
        logger.info("taken in", extra={"job": taken.job.name, "new": taken.new})
        return None

    def _look(self, record: SQSRecord) -> tuple[IncomingRequest, IntakeResult]:
        asked = self._asked(record)
        return asked, prepare(self.parts.intake, asked, self.policy, self.failed.append)

    def _asked(self, record: SQSRecord) -> IncomingRequest:
        body = parse_body(record.body)
        reading = read_request(body)
        if reading.warnings:
            logger.info(
                "some members of the request are not honored",
                extra={"job": reading.request.job_id, "warnings": reading.warnings},
            )
        # A dead letter that SQS moves back keeps its attributes.
        again = REASON in record.message_attributes
        return IncomingRequest(reading.request, body, self._caller(record), _sent_at(record), again, record.message_id)

    def _caller(self, record: SQSRecord) -> Caller:
        """Return the caller that our own API names, or the sender: it can write any attribute, but not its SenderId.

        Raises `AccessDenied` for a sender that the deployment does not name.
        """
        intake, sender = self.parts.intake, str(record.attributes.get("SenderId") or "")
        if not intake.vouching:
            return UNKNOWN
        if sender.startswith(f"{intake.vouching}:"):
            given = record.message_attributes[CALLER]
            return Caller(given.string_value or None) if given is not None else UNKNOWN
        caller = intake.senders.caller(sender)
        if caller is None:
            wrong = (
                f"The sender {sender.partition(':')[0] or 'without an ID'} may not send requests to the image queue."
            )
            hint = (
                "Send the request through the API, or name the sender in the parameter ImageSenders of the deployment."
            )
            raise AccessDenied(wrong, field="SenderId", hint=hint)
        return caller

    def _set_aside(self, record: SQSRecord, error: Refused) -> bool:
        """Move a message to the dead-letter queue, where operators can correct and resend it.

        Returns False without such a queue.
        """
        logger.warning("refused", extra={"message_id": record.message_id, "field": error.field})
        queue = self.parts.image_queue
        if queue is None:
            return False
        reason = error.message_and_hint
        queue.set_aside(record.body, reason, attributes={FIELD: error.field} if error.field else None)
        self.aside += 1
        self._note(record, reason, error.field or "")
        return True

    def _note(self, record: SQSRecord, reason: str, wrong: str) -> None:
        """Remember the refusal for those who ask for its job; the dead letter is there in any case."""
        name, intake = job_in(record.body), self.parts.intake
        if name is None:
            return
        refusal = Refusal(job=name, at=intake.clock.now(), reason=reason, field=wrong)
        try:
            note_refused(intake.store, self.parts.refusals, refusal)
        except ServiceError:
            logger.exception("a refusal could not be stored", extra={"job": name})


def _sent_at(record: SQSRecord) -> datetime | None:
    """Return when the request was sent, UTC; the time to read its image must not move a job in the queue."""
    sent = record.attributes.get("SentTimestamp")
    return datetime.fromtimestamp(int(sent) / 1000, UTC) if sent else None


def job_in(text: str) -> str | None:
    """Return the name of the job of a request; None if it cannot be read, or is no valid name."""
    try:
        name = parse_body(text).get("jobId")
    except Refused:
        return None
    return name if isinstance(name, str) and job_names(name) == (name,) else None
