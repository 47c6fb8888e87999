"""The manager Lambda: consumes the wake queue, applies what SageMaker reports, then runs one pass for the whole batch.

A burst of messages costs one pass, and its reports are applied together. A message that cannot be handled is set aside
and never blocks those behind it; so is one that another sender than its kind of message allows has sent. Reports of
further kinds of jobs arrive by queues of their own: they are applied, and the wake queue then runs the pass, so that
passes stay serial.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from trainmaster import bootstrap
from trainmaster.domain.errors import InvalidRequest, Paused, ServiceError
from trainmaster.handlers.pass_metrics import NAMESPACE, add_pass_metrics, emit_series, log_pass_metrics
from trainmaster.service.apply_plan import PassReport
from trainmaster.service.callbacks.heartbeats import send_heartbeats
from trainmaster.service.faults import error_types, log_fields
from trainmaster.service.metrics.pass_metrics import pass_metrics
from trainmaster.service.observe import observe, observe_batch
from trainmaster.service.restoring.restore import restore_if_asked
from trainmaster.service.run_pass import run_pass
from trainmaster.service.wake import wake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from trainmaster.domain.jobs.observation import Observation

logger = Logger(service="manager")
metrics = Metrics(namespace=NAMESPACE, service="manager")

_T = TypeVar("_T")
MAX_PASSES = 5
"""Maximum passes of one invocation while each leaves more to do; a wake message continues after that."""


@dataclass(slots=True)
class Batch:
    """The combined outcome of a batch of messages.

    Attributes:
        pass_wanted: whether any message requires a pass.
        tick: whether the minute's checks are due.
        failed: identifiers of the messages that SQS has to deliver again: the first failed one and all after it, so
            that the order within the group stays.
        faults: jobs or messages whose processing raised an unexpected exception.
        orphans: training jobs of the queue that no job had as an attempt, and that were stopped.
    """

    pass_wanted: bool = False
    tick: bool = False
    failed: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)


@logger.inject_lambda_context(correlation_id_path="Records[0].messageId")
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Process an SQS batch and return the partial batch response; the entry point of the Lambda function."""
    return consume(bootstrap.application(), event, context)


def consume(application: bootstrap.Application, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Apply every message of the batch, then run passes while there is more to do and time to do it.

    If AWS fails during a pass, the next tick retries it. Delivering the batch again would hide the whole message group,
    ticks included, for the visibility timeout, and the reports in the batch have been applied already.
    """
    metrics.set_default_dimensions(queue=application.settings.queue)
    batch = _apply_messages(application, event.get("Records", []))
    tick = batch.tick
    if batch.pass_wanted:
        try:
            if not _is_wake_queue(application, event):
                wake(application.manager_context.store, application.publisher)
                return _response(batch)
            _run_passes(application, context, tick=batch.tick)
        except Paused as error:
            logger.info("no pass begins: the manager is paused", extra={"cause": str(error)})
            batch.tick = False
            _restore(application)
        except ServiceError:
            logger.exception("the pass failed; the next tick retries")
            metrics.add_metric(name="PassesFailed", unit=MetricUnit.Count, value=1)
    if tick:
        _send_heartbeats(application, context)
    _deliver_events(application, context)
    if batch.tick and application.catalogue_refresher is not None and _has_time(context):
        application.catalogue_refresher.refresh_if_due()
    return _response(batch)


def _deliver_events(application: bootstrap.Application, context: LambdaContext) -> None:
    """Deliver the outbox as far as time allows, also while the manager is paused; the next invocation goes on."""
    if not application.delivers:
        return
    try:
        failed = application.outbox.deliver(lambda: _has_time(context))
    except ServiceError:
        logger.exception("could not deliver events; the next tick tries again")
        failed = 1
    if failed:
        metrics.add_metric(name="EventsFailed", unit=MetricUnit.Count, value=failed)


def _send_heartbeats(application: bootstrap.Application, context: LambdaContext) -> None:
    """Send the heartbeats of executions that wait for jobs, also while the manager is paused."""
    if not application.settings.step_functions:
        return
    manager_context = application.manager_context
    try:
        if send_heartbeats(manager_context, application.tasks, lambda: _has_time(context)):
            wake(manager_context.store, application.publisher)
    except ServiceError:
        logger.exception("could not send heartbeats; the next tick tries again")


def _has_time(context: LambdaContext) -> bool:
    return context.get_remaining_time_in_millis() >= _MIN_REMAINING_MS


def _response(batch: Batch) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in batch.failed]}


def _is_wake_queue(application: bootstrap.Application, event: dict[str, Any]) -> bool:
    """Return whether the batch is of the wake queue: an invocation has messages of one queue, which Lambda names."""
    arn, url = str(event["Records"][0].get("eventSourceARN", "")), application.settings.wake_queue_url
    return not arn or not url or arn.rpartition(":")[2] == url.rpartition("/")[2]


def _apply_messages(application: bootstrap.Application, records: list[dict[str, Any]]) -> Batch:
    """Read every message, then apply what they report: together if possible, and else one by one."""
    batch = Batch()
    context = replace(application.manager_context, faults=batch.faults, orphans=batch.orphans)
    read = [partial(_read_message, application, record, batch) for record in records]
    reports = [
        (place, seen) for place, seen in _handle(application, records, batch, enumerate(read)) if seen is not None
    ]
    freed, left = observe_batch(context, [seen for _, seen in reports])
    alone = [(place, partial(observe, context, seen)) for place, seen in (reports[number] for number in left)]
    results = [freed for _, freed in _handle(application, records, batch, alone)]
    batch.pass_wanted |= freed or any(results)
    if batch.faults:
        metrics.add_metric(name="Faults", unit=MetricUnit.Count, value=len(batch.faults))
    _count_orphans(batch.orphans)
    return batch


def _handle(
    application: bootstrap.Application,
    records: list[dict[str, Any]],
    batch: Batch,
    steps: Iterable[tuple[int, Callable[[], _T]]],
) -> Iterator[tuple[int, _T | None]]:
    """Yield the places of messages with the results of their steps, up to the first message that fails."""
    for place, step in steps:
        try:
            yield place, _handle_message(application, records[place], batch, step)
        except ServiceError:
            logger.exception("could not process a message; SQS delivers it again")
            batch.failed = tuple(record["messageId"] for record in records[place:])
            return


def _handle_message(
    application: bootstrap.Application,
    record: dict[str, Any],
    batch: Batch,
    handle: Callable[[], _T],
) -> _T | None:
    """Return what `handle` makes of a message, or set it aside if it can never be handled: it would block the others.

    Raises `ServiceError` if a later delivery may succeed.
    """
    try:
        return handle()
    except ServiceError:
        raise
    except InvalidRequest as error:
        _set_aside(application, record, error.message)
    except Exception as error:  # noqa: BLE001 -- a fault in our code must not block the messages behind this one
        batch.faults.append(str(record.get("messageId")))
        _set_aside(application, record, f"an unexpected error: {error_types(error)}", **log_fields(error))
    return None


def _set_aside(application: bootstrap.Application, record: dict[str, Any], cause: str, **fields: object) -> None:
    """Move a message to the dead-letter queue, and log its cause with further `fields`."""
    extra = {"message_id": record.get("messageId"), "cause": cause, **fields}
    logger.warning("a message cannot be handled", extra=extra)
    metrics.add_metric(name="MessagesSetAside", unit=MetricUnit.Count, value=1)
    application.publisher.set_aside(record["body"], cause)


def _parse_body(record: dict[str, Any]) -> dict[str, Any]:
    try:
        message = json.loads(record["body"])
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise InvalidRequest("the message is not a JSON object")
    return message


def _sender(record: dict[str, Any]) -> str:
    """Return the unique ID of the IAM role that sent a message; senders cannot choose it.

    For a session SQS gives `<role ID>:<session name>` (ReceiveMessage, `SenderId`).
    """
    return str(record.get("attributes", {}).get("SenderId", "")).partition(":")[0]


def _check_sender(application: bootstrap.Application, kind: str, sender: str) -> None:
    """Raise `InvalidRequest` for a message of a sender who may not send this kind of message.

    AWS does not document the sender of EventBridge's messages; the policy of the queue admits the rule's alone, and an
    event is only a hint, which SageMaker confirms.
    """
    ours = application.settings.senders
    if not ours:
        return
    reporters = {name: each.reporters for name, each in application.kinds.items()}
    allowed = {
        "tick": {*ours},
        "wake": {*ours}.union(*reporters.values()),
    }.get(kind) or {*reporters.get(kind, ())}
    if sender not in allowed:
        raise InvalidRequest(f"the sender {sender or 'without an ID'} may not send this message", field="SenderId")


def _read_message(application: bootstrap.Application, record: dict[str, Any], batch: Batch) -> Observation | None:
    """Note a wake or a tick in the batch; return what another message reports, None if that is nothing.

    Raises `InvalidRequest` for a message of no known kind.
    """
    message = _parse_body(record)
    kind = message.get("kind")
    if isinstance(kind, str):
        _check_sender(application, kind, _sender(record))
    if kind in ("wake", "tick"):
        batch.pass_wanted = True
        batch.tick = batch.tick or kind == "tick"
        return None
    if "detail-type" in message:
        return application.observation_of(message)
    if isinstance(kind, str) and kind in application.kinds:
        return application.kinds[kind].observe(message)
    raise InvalidRequest("the message is neither a wake, a tick, an event nor about a run", field="kind")


def _run_passes(application: bootstrap.Application, context: LambdaContext, *, tick: bool) -> None:
    manager_context = application.manager_context
    for number in range(MAX_PASSES):
        started_at = manager_context.clock.now()
        report = run_pass(manager_context, tick=tick and number == 0)
        _log_pass(report)
        _measure(application, report, tick=tick and number == 0)
        for kind in application.kinds.values():
            kind.after_pass(report, started_at)
        if tick and number == 0:
            _refresh_kinds(application, report)
        if not report.more_to_do:
            return
        if not _has_time(context):
            break
    wake(manager_context.store, application.publisher)


_MIN_REMAINING_MS = 30_000
"""Milliseconds that must be left for a further pass, for more events, or to refresh the catalogue of instances."""


def _restore(application: bootstrap.Application) -> None:
    """Compare the table with SageMaker if an administrator asked for it; the next tick repeats a failure."""
    try:
        done = restore_if_asked(application.manager_context, application.training)
    except ServiceError:
        logger.exception("could not compare the table with SageMaker; the next tick tries again")
        return
    if done is not None:
        counts = {"differences": len(done.differences), "adopted": len(done.adopted), "failed": done.failed}
        logger.info("compared the table with SageMaker", extra=counts)


def _refresh_kinds(application: bootstrap.Application, report: PassReport) -> None:
    """Let every further kind of jobs refresh its view of its services, which the next pass uses."""
    for name, kind in application.kinds.items():
        try:
            kind.on_tick(report)
        except ServiceError:
            logger.exception("a kind of jobs could not be refreshed; the next tick tries again", extra={"kind": name})


def _count_orphans(stopped: list[str]) -> None:
    """Emit `OrphansStopped` if there were any; a metric that is never emitted costs nothing."""
    if stopped:
        metrics.add_metric(name="OrphansStopped", unit=MetricUnit.Count, value=len(stopped))


def _measure(application: bootstrap.Application, report: PassReport, *, tick: bool) -> None:
    """Emit the metrics of the pass; once a minute those by pool and by share, too."""
    figures = pass_metrics(report, application.manager_context.clock.now())
    if figures is None:
        return
    add_pass_metrics(metrics, figures)
    if tick:
        log_pass_metrics(logger, figures)
        if application.settings.pool_metrics:
            emit_series(application.settings.queue, figures)


def _log_pass(report: PassReport) -> None:
    """Log the pass and emit its metrics; the alarm on a stalled manager watches `Passes`."""
    metrics.add_metric(name="Passes", unit=MetricUnit.Count, value=1)
    metrics.add_metric(name="Started", unit=MetricUnit.Count, value=len(report.started))
    metrics.add_metric(name="Preempted", unit=MetricUnit.Count, value=len(report.preempted))
    metrics.add_metric(name="Resized", unit=MetricUnit.Count, value=len(report.resized))
    metrics.add_metric(name="Faults", unit=MetricUnit.Count, value=len(report.faults))
    _count_orphans(report.orphans)
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
            "orphans_stopped": report.orphans,
            "waiting": len(report.plan.waits),
        },
    )
