"""The pipeline Lambda: submits and cancels the jobs of callback steps of SageMaker Pipelines, by their messages.

SQS delivers a message again after an error, and sets it aside after some of them. The manager answers the end of a job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from trainmaster import bootstrap
from trainmaster.domain.errors import ExecutionGone, IllegalTransition, InvalidRequest, Refused, TrainmasterError
from trainmaster.domain.events.callback import STEP, Callback, name_of_job
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.requests.option_tags import with_options
from trainmaster.handlers.api.body import parse_body
from trainmaster.service.callbacks.ends import ERRORS
from trainmaster.service.callbacks.enter import enter
from trainmaster.service.change import cancel
from trainmaster.service.faults import log_fields

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from trainmaster.domain.access.caller import Caller
    from trainmaster.ports.store import Request

logger = Logger(service="pipelines")

REFUSED = "Trainmaster.Refused"
"""Name of the error of a refused request."""
_TOKEN = re.compile(r"[a-zA-Z0-9]{10}")


@dataclass(frozen=True, slots=True)
class StepMessage:
    """The message of a callback step (developer guide, "Callback step").

    Attributes:
        execution: ARN of the execution.
        stops: whether the execution is being stopped.
    """

    token: str
    execution: str
    arguments: Mapping[str, Any]
    stops: bool


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 -- Lambda passes it
    """Consume a batch; the entry point of the Lambda function."""
    return consume(bootstrap.application(), event)


def consume(application: bootstrap.Application, event: Mapping[str, Any]) -> dict[str, Any]:
    """Consume the messages one by one, and return the partial batch response."""
    failed = [record["messageId"] for record in event["Records"] if not _handled(application, record)]
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}


def _handled(application: bootstrap.Application, record: Mapping[str, Any]) -> bool:
    extra = {"message_id": record["messageId"]}
    try:
        _consume(application, record)
    except TrainmasterError as error:
        logger.warning("a message cannot be handled now", extra={**extra, "cause": str(error)})
    except Exception as error:  # noqa: BLE001 -- a fault of one message must not fail the others
        logger.error("an unexpected error", extra={**extra, **log_fields(error)})  # noqa: TRY400 -- the text may have secrets
    else:
        return True
    return False


def _consume(application: bootstrap.Application, record: Mapping[str, Any]) -> None:
    message = read_message(record["body"])
    sender = str(record.get("attributes", {}).get("SenderId", ""))
    caller, waits = application.steps.waiting_step(message.execution, sender)
    try:
        request = request_of(message)
        if message.stops or not waits:
            _stop(application, caller, message, str(request["TrainingJobName"]))
        else:
            callback = Callback(str(request["TrainingJobName"]), STEP, message.token)
            job = enter(application.entrance(application.steps), caller, request, callback)
            logger.info("submitted", extra={"job": job.name, "state": job.state})
    except Refused as error:
        logger.info("refused", extra={"error_type": type(error).__name__, "field": error.field})
        _fail(application, message, REFUSED, error.message_and_hint)


def _stop(application: bootstrap.Application, caller: Caller, message: StepMessage, name: str) -> None:
    """Cancel the step's job, whose end then answers the step; answer it at once if there is no such job."""
    callback = application.api_context.store.callback(name)
    if callback is None or callback.token != message.token:
        _fail(
            application, message, ERRORS[JobState.CANCELLED], "The pipeline was stopped before the job was submitted."
        )
        return
    try:
        cancel(application.api_context, caller, name, "its pipeline was stopped")
    except IllegalTransition:
        logger.info("the job has ended", extra={"job": name})


def _fail(application: bootstrap.Application, message: StepMessage, error: str, reason: str) -> None:
    try:
        application.steps.fail(message.token, error, {"FailureReason": reason})
    except ExecutionGone:
        logger.info("no step waits with this token")


def read_message(body: str) -> StepMessage:
    """Return the message of a callback step. Raises `InvalidRequest` for another one."""
    found = parse_body(body)
    token, execution, arguments = (found.get(name) for name in ("token", "pipelineExecutionArn", "arguments"))
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidRequest("The message has no token of a callback step.", field="token")
    if not isinstance(execution, str) or not isinstance(arguments, dict):
        raise InvalidRequest("The message is not one of a callback step.", field="pipelineExecutionArn")
    return StepMessage(token, execution, arguments, stops=found.get("status") != "Executing")


def request_of(message: StepMessage) -> Request:
    """Return the request in a message, with the options as tags; without a name it gets one of its token.

    Raises `InvalidRequest`.
    """
    text = message.arguments.get("Request")
    if not isinstance(text, str):
        hint = "Make the step with trainmaster.pipelines.QueueStep, or with the request as JSON text."
        raise InvalidRequest("The step has no input Request.", field="Request", hint=hint)
    request = parse_body(text)
    execution = message.execution.rpartition("/")[2]
    request.setdefault("TrainingJobName", name_of_job(f"pipeline-{execution}", f"{execution}/{message.token}"))
    options = message.arguments.get("Queue") or "{}"
    return with_options(request, parse_body(options) if isinstance(options, str) else options)
