"""The manager Lambda: consumes the wake queue, takes over what SageMaker reports, then runs one pass for all of it.

A burst of messages costs one pass. One bad message is set aside and never blocks those behind it. It must not
decide anything: `service` and `planner` do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from trainmaster import bootstrap
from trainmaster.domain.errors import InvalidRequest, ServiceError
from trainmaster.images.domain.work import is_run
from trainmaster.images.handlers.metrics import tell_errors, tell_figures
from trainmaster.images.service.variants import settle_variants
from trainmaster.service.apply_plan import PassReport
from trainmaster.service.faults import error_types, log_fields
from trainmaster.service.observe import observe
from trainmaster.service.run_pass import run_pass
from trainmaster.service.wake import wake

if TYPE_CHECKING:
    from datetime import datetime

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from trainmaster.domain.jobs.observation import Observation

logger = Logger(service="manager")
metrics = Metrics(namespace="Trainmaster", service="manager")

MAX_PASSES = 5
"""Passes of one invocation, where each found more to do at once; after that a wake goes on with it."""


@dataclass(slots=True)
class Work:
    """What a batch of messages asks for.

    Attributes:
        wanted: whether anything in it makes a pass worth while.
        tick: whether the minute's checks are due.
        failed: identifiers of the messages to be delivered again: from the first that met trouble on, so that the
            order within the group stays.
        faults: jobs, or messages, of which a fault of ours kept something from being taken over.
    """

    wanted: bool = False
    tick: bool = False
    failed: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)


@logger.inject_lambda_context(correlation_id_path="Records[0].messageId")
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Lambda entry point: an SQS batch in, the partial batch response out."""
    return consume(bootstrap.application(), event, context)


def consume(application: bootstrap.Application, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take over every message of the batch, then run passes while there is more to do and time to do it.

    A pass that AWS does not let through is left to the next tick: delivering its batch again would hide the whole
    message group, ticks and all, for the visibility time, and the batch's reports have been taken over already.
    """
    metrics.set_default_dimensions(queue=application.settings.queue)
    work = _take_over_all(application, event.get("Records", []))
    if work.wanted:
        try:
            _run_passes(application, context, tick=work.tick)
        except ServiceError:
            logger.exception("the pass failed; the next tick retries")
            metrics.add_metric(name="PassesFailed", unit=MetricUnit.Count, value=1)
    if (
        work.tick
        and application.catalogue_refresher is not None
        and context.get_remaining_time_in_millis() >= _ENOUGH_TIME
    ):
        application.catalogue_refresher.refresh_if_due()
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in work.failed]}


def _take_over_all(application: bootstrap.Application, records: list[dict[str, Any]]) -> Work:
    work = Work()
    for index, record in enumerate(records):
        try:
            _take_over_or_set_aside(application, record, work)
        except ServiceError:
            logger.exception("could not take over a message; it comes again")
            work.failed = tuple(r["messageId"] for r in records[index:])
            break
    if work.faults:
        metrics.add_metric(name="Faults", unit=MetricUnit.Count, value=len(work.faults))
    return work


def _take_over_or_set_aside(application: bootstrap.Application, record: dict[str, Any], work: Work) -> None:
    """In the queue, a message that can never be handled would block all behind it; set aside, people find it."""
    try:
        _take_over(application, _parsed(record), work)
    except ServiceError:
        raise
    except InvalidRequest as error:
        _set_aside(application, record, error.message)
    except Exception as error:  # noqa: BLE001 -- a fault of ours, which must not keep everybody else's news
        work.faults.append(str(record.get("messageId")))
        _set_aside(application, record, f"an unexpected error: {error_types(error)}", **log_fields(error))


def _set_aside(application: bootstrap.Application, record: dict[str, Any], cause: str, **told: object) -> None:
    extra = {"message_id": record.get("messageId"), "cause": cause, **told}
    logger.warning("a message cannot be handled", extra=extra)
    metrics.add_metric(name="MessagesSetAside", unit=MetricUnit.Count, value=1)
    application.publisher.set_aside(record["body"], cause)


def _parsed(record: dict[str, Any]) -> dict[str, Any]:
    try:
        message = json.loads(record["body"])
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the message is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise InvalidRequest("the message is no JSON object")
    return message


def _take_over(application: bootstrap.Application, message: dict[str, Any], work: Work) -> None:
    """Note what one message asks for. Raises `InvalidRequest` for one that means nothing here."""
    kind = message.get("kind")
    if kind in ("wake", "tick"):
        work.wanted = True
        work.tick = work.tick or kind == "tick"
    elif "detail-type" in message:
        _observe(application, application.observation_of(message), work)
    elif kind == "image" and isinstance(run := message.get("run"), str) and is_run(run):
        _observe(application, application.launcher.describe(run), work)
    else:
        raise InvalidRequest("the message is neither a wake, a tick, an image job's news nor an event", field="kind")


def _observe(application: bootstrap.Application, seen: Observation | None, work: Work) -> None:
    """Take over what was seen of a training job, or of an image job's run."""
    if seen is not None and observe(replace(application.manager_context, faults=work.faults), seen):
        work.wanted = True


def _run_passes(application: bootstrap.Application, context: LambdaContext, *, tick: bool) -> None:
    manager_context = application.manager_context
    for number in range(MAX_PASSES):
        began = manager_context.clock.now()
        report = run_pass(manager_context, tick=tick and number == 0)
        _tell(report)
        _tell_of_images(application, report, began)
        if tick and number == 0:
            _refresh_endpoints(application, report)
        if not report.more_to_do:
            return
        if context.get_remaining_time_in_millis() < _ENOUGH_TIME:
            break
    wake(manager_context.store, application.publisher)


_ENOUGH_TIME = 30_000
"""Milliseconds that a further pass may take, or asking about instance types."""


def _tell_of_images(application: bootstrap.Application, report: PassReport, began: datetime) -> None:
    """What the pass tells of image jobs, where it has met any."""
    if application.images is None or report.snapshot is None:
        return
    now = application.clock.now()
    took = (now - began).total_seconds() * 1000
    figures = application.meter.figures(report.snapshot, report.plan, now, milliseconds=took)
    if figures is not None:
        tell_figures(figures)


def _refresh_endpoints(application: bootstrap.Application, report: PassReport) -> None:
    """Ask after the endpoints of the image jobs that a tick's pass has met; the next pass knows what was answered.

    Jobs that entered before anybody could describe theirs are given a variant then.
    """
    snapshot = report.snapshot
    if application.refresher is None or snapshot is None:
        return
    jobs = [job for job in (*snapshot.active, *snapshot.waiting) if job.work is not None]
    try:
        if jobs:
            tell_errors(application.refresher.refresh(jobs))
            settle_variants(application.store, application.known_endpoints, application.clock, snapshot.waiting)
    except ServiceError:
        logger.exception("endpoints were not asked after; the next tick does it")


def _tell(report: PassReport) -> None:
    """The pass as a line of the log and as metrics; the alarm on a stalled manager watches `Passes`."""
    metrics.add_metric(name="Passes", unit=MetricUnit.Count, value=1)
    metrics.add_metric(name="Started", unit=MetricUnit.Count, value=len(report.started))
    metrics.add_metric(name="Preempted", unit=MetricUnit.Count, value=len(report.preempted))
    metrics.add_metric(name="Resized", unit=MetricUnit.Count, value=len(report.resized))
    metrics.add_metric(name="Faults", unit=MetricUnit.Count, value=len(report.faults))
    metrics.add_metric(name="Waiting", unit=MetricUnit.Count, value=len(report.plan.waits))
    logger.info(
        "pass",
        extra={
            "pass": report.pass_number,
            "started": report.started,
            "preempted": report.preempted,
            "resized": report.resized,
            "requeued": report.requeued,
            "ended_warm_pools": report.ended_warm_pools,
            "created_pools": report.created_pools,
            "removed_pools": report.removed_pools,
            "conflicts": report.conflicts,
            "fenced": report.fenced,
            "throttled": report.throttled,
            "faults": report.faults,
            "waiting": len(report.plan.waits),
        },
    )
