"""The task Lambda: submits the job of a Step Functions task that waits for its token.

The state's resource is `lambda:invoke.waitForTaskToken`. The function answers a refused request by the token at once;
the manager answers the end of the job. An error of AWS fails the invocation, so that the state's `Retry` decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from trainmaster import bootstrap
from trainmaster.domain.errors import ExecutionGone, InvalidRequest, NameTaken, NeverFits, Refused
from trainmaster.domain.events.callback import MAX_TOKEN, name_of_job, task_callback
from trainmaster.domain.requests.option_tags import with_options
from trainmaster.handlers.api.body import parse_body
from trainmaster.service.callbacks.enter import enter

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from trainmaster.domain.jobs.job import Job
    from trainmaster.ports.store import Request

logger = Logger(service="tasks")

MEMBERS = frozenset({"TaskToken", "Execution", "Request", "Queue"})
"""Members of the payload."""
ERRORS: Mapping[type[Refused], str] = {
    NameTaken: "SageMaker.ResourceInUseException",
    NeverFits: "Trainmaster.Infeasible",
    Refused: "SageMaker.AmazonSageMakerException",
}
"""Names of errors by the type of a refusal, the first that fits. Those of SageMaker are the ones that
`sagemaker:createTrainingJob.sync` gives, so that its `Catch` and `Retry` keep working."""


@dataclass(frozen=True, slots=True)
class Task:
    """The payload of a task.

    Attributes:
        execution: ARN of the execution.
        request: a CreateTrainingJob request, with the options of the queue as tags.
    """

    token: str
    execution: str
    request: Request


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 -- Lambda passes it
    """Submit the job of a task; the entry point of the Lambda function."""
    return submit_task(bootstrap.application(), event)


def submit_task(application: bootstrap.Application, event: Mapping[str, Any]) -> dict[str, Any]:
    """Submit the job of a task, or fail the task with the reason for the refusal.

    Raises `InvalidRequest` for an event without a token, which nothing can answer; `ServiceError`.
    """
    token = _token(event)
    try:
        job = _submitted(application, event, token)
    except Refused as error:
        logger.info("refused", extra={"error_type": type(error).__name__, "field": error.field})
        _fail(application, token, error)
        return {"Refused": type(error).__name__}
    logger.info("submitted", extra={"job": job.name, "state": job.state})
    return {"TrainingJobName": job.name, "JobState": job.state.value}


def _submitted(application: bootstrap.Application, event: Mapping[str, Any], token: str) -> Job:
    task = read_task(event, token)
    waiting = application.tasks.waiting_task(task.execution, event)
    name = str(task.request["TrainingJobName"])
    callback = task_callback(name, task.token, application.clock.now(), waiting.heartbeat)
    return enter(application.entrance(application.tasks), waiting.caller, task.request, callback)


def _fail(application: bootstrap.Application, token: str, error: Refused) -> None:
    name = next(name for kind, name in ERRORS.items() if isinstance(error, kind))
    try:
        application.tasks.fail(token, name, {"FailureReason": error.message_and_hint, "Field": error.field})
    except ExecutionGone:
        logger.info("no task waits with this token")


def _token(event: Mapping[str, Any]) -> str:
    token = event.get("TaskToken")
    if not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN:
        hint = 'Write "TaskToken.$": "$$.Task.Token" into the Payload of a state with .waitForTaskToken.'
        raise InvalidRequest("The payload has no TaskToken.", field="TaskToken", hint=hint)
    return token


def read_task(event: Mapping[str, Any], token: str) -> Task:
    """Return the task in a payload; a request without a name gets one of its token. Raises `InvalidRequest`."""
    for member in sorted(event.keys() - MEMBERS):
        hint = f"The members are {', '.join(sorted(MEMBERS))}; the training job belongs into Request."
        raise InvalidRequest(f"There is no member {member!r}.", field=member[:64], hint=hint)
    execution = event.get("Execution")
    if not isinstance(execution, str) or not execution:
        hint = 'Write "Execution.$": "$$.Execution.Id" into the Payload.'
        raise InvalidRequest("The payload has no Execution.", field="Execution", hint=hint)
    if not isinstance(event.get("Request"), dict):
        hint = "Write the Parameters of sagemaker:createTrainingJob.sync into the member Request of the Payload."
        raise InvalidRequest("The payload has no Request.", field="Request", hint=hint)
    # Read again as the API reads bodies: one meaning for each member, and no endless nesting.
    request = parse_body(json.dumps(event["Request"]))
    request.setdefault("TrainingJobName", name_of_job(execution.rpartition(":")[2], token))
    return Task(token, execution, with_options(request, event.get("Queue", {})))
