"""The manager Lambda: consumes the wake queue, applies what SageMaker reports, then runs one pass for the whole batch.

A burst of messages costs one pass. A message that cannot be handled is set aside and never blocks those behind it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from trainmaster import bootstrap
from trainmaster.domain.errors import InvalidRequest, ServiceError
from trainmaster.service.apply_plan import PassReport
from trainmaster.service.faults import error_types, log_fields
from trainmaster.service.observe import observe
from trainmaster.service.run_pass import run_pass
from trainmaster.service.wake import wake

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from trainmaster.domain.jobs.observation import Observation

logger = Logger(service="manager")
metrics = Metrics(namespace="Trainmaster", service="manager")

MAX_PASSES = 5
"""Maximum passes of one invocation if each finds more to do at once; then a wake message continues."""


@dataclass(slots=True)
class Work:
    """The combined requests of a batch of messages.

    Attributes:
        wanted: whether any message requires a pass.
        tick: whether the minute's checks are due.
        failed: identifiers of the messages to be delivered again: from the first failed one on, so that the order
            within the group stays.
        faults: jobs or messages whose processing raised an unexpected exception.
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
            logger.exception("could not process a message; SQS delivers it again")
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
        raise InvalidRequest(f"the message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise InvalidRequest("the message is not a JSON object")
    return message


def _take_over(application: bootstrap.Application, message: dict[str, Any], work: Work) -> None:
    """Record the request of one message. Raises `InvalidRequest` for an unknown message."""
    kind = message.get("kind")
    if kind in ("wake", "tick"):
        work.wanted = True
        work.tick = work.tick or kind == "tick"
    elif "detail-type" in message:
        _observe(application, application.observation_of(message), work)
    elif isinstance(kind, str) and kind in application.kinds:
        _observe(application, application.kinds[kind].observe(message), work)
    else:
        raise InvalidRequest("the message is neither a wake, a tick, an event nor about a run", field="kind")


def _observe(application: bootstrap.Application, seen: Observation | None, work: Work) -> None:
    """Apply the observed state of a training job or of a run."""
    if seen is not None and observe(replace(application.manager_context, faults=work.faults), seen):
        work.wanted = True


def _run_passes(application: bootstrap.Application, context: LambdaContext, *, tick: bool) -> None:
    manager_context = application.manager_context
    for number in range(MAX_PASSES):
        began = manager_context.clock.now()
        report = run_pass(manager_context, tick=tick and number == 0)
        _tell(report)
        for kind in application.kinds.values():
            kind.after_pass(report, began)
        if tick and number == 0:
            _tick_kinds(application, report)
        if not report.more_to_do:
            return
        if context.get_remaining_time_in_millis() < _ENOUGH_TIME:
            break
    wake(manager_context.store, application.publisher)


_ENOUGH_TIME = 30_000
"""Milliseconds that a further pass may take, or asking about instance types."""


def _tick_kinds(application: bootstrap.Application, report: PassReport) -> None:
    """Have each other kind of jobs refresh what it knows of its services; the next pass uses it."""
    for name, kind in application.kinds.items():
        try:
            kind.on_tick(report)
        except ServiceError:
            logger.exception("a kind of jobs could not be refreshed; the next tick tries again", extra={"kind": name})


def _tell(report: PassReport) -> None:
    """Log the pass and emit its metrics; the alarm on a stalled manager watches `Passes`."""
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
