"""SageMaker Pipelines: callback steps that wait for jobs as `ports.Executions`, and the role that such a step acts for.

Sources: SageMaker API (SendPipelineExecutionStepSuccess, SendPipelineExecutionStepFailure, DescribePipelineExecution),
"Callback step" in its developer guide, SQS API (ReceiveMessage, `SenderId`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, code_of, to_retryable_error
from trainmaster.adapters.executions import caller_of, name_of_role, translated
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import AccessDenied, ExecutionGone, Unavailable
from trainmaster.ports.callbacks import Description

MAX_REASON, MAX_VALUE = 256, 1_024
"""Characters of a reason, and of the value of an output."""
WAITING = "Executing"
"""Status of an execution whose steps may begin."""
_GONE = frozenset({"ResourceNotFound", "ValidationException"})
"""The token is none, or its step has ended."""
_EXECUTION = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:pipeline/[^/]+/execution/([A-Za-z0-9]+)")


class PipelineSteps:
    """Callback steps (`sagemaker:SendPipelineExecutionStep*`); see `ports.Executions`.

    Args:
        new_client: makes a boto3 SageMaker client; called for each verb.
        new_iam: makes a boto3 IAM client; called for each message.
    """

    def __init__(self, new_client: Callable[[], Any], new_iam: Callable[[], Any]) -> None:
        self._new_client, self._new_iam = new_client, new_iam

    def succeed(self, token: str, description: Description) -> None:
        """End the step with its outputs; see `ports.Executions.succeed`."""
        client = self._new_client()
        with translated(_GONE):
            client.send_pipeline_execution_step_success(
                CallbackToken=token, OutputParameters=outputs_of(description), ClientRequestToken=_once(token)
            )

    def fail(self, token: str, error: str, description: Description) -> None:
        """Fail the step with the name of the error and the reason; see `ports.Executions.fail`."""
        client = self._new_client()
        reason = f"{error}: {description.get('FailureReason') or description.get('TrainingJobName', '')}"
        with translated(_GONE):
            client.send_pipeline_execution_step_failure(
                CallbackToken=token, FailureReason=reason[:MAX_REASON], ClientRequestToken=_once(token)
            )

    def heartbeat(self, token: str) -> None:
        """Do nothing: callback steps have no heartbeats; see `ports.Executions.heartbeat`."""

    def waiting_step(self, execution: str, sender: str) -> tuple[Caller, bool]:
        """Return the role of an execution, and whether its steps may begin.

        SQS tells the unique ID of the role that has sent a message. Only a message of the execution's own role counts.

        Args:
            execution: ARN of the execution.
            sender: `SenderId` of the message.

        Raises `AccessDenied` for another sender, or if there is no such execution; `Throttled`, `Unavailable`,
        `NotPermitted`.
        """
        name = _EXECUTION.fullmatch(execution)
        if name is None:
            raise _stranger(execution)
        client, iam = self._new_client(), self._new_iam()
        try:
            with translated(_GONE):
                found = client.describe_pipeline_execution(PipelineExecutionArn=execution)
                role = found.get("RoleArn") or client.describe_pipeline(PipelineName=found["PipelineArn"])["RoleArn"]
        except ExecutionGone as error:
            raise _stranger(execution) from error
        except KeyError as error:
            raise Unavailable(f"SageMaker's answer cannot be read: {error!r}") from error
        role_name, caller = name_of_role(role), caller_of(role, name[1])
        if role_name is None or caller is None or sender.partition(":")[0] != self._id_of(iam, role_name):
            raise _stranger(execution)
        return caller, found["PipelineExecutionStatus"] == WAITING

    def _id_of(self, iam: Any, role: str) -> str:
        try:
            return str(iam.get_role(RoleName=role)["Role"]["RoleId"])
        except AWS_ERRORS as error:
            if code_of(error) == "NoSuchEntity":
                return ""
            raise to_retryable_error(error) from error


def outputs_of(description: Description) -> list[dict[str, str]]:
    """Return the outputs of a completed training job, as `trainmaster.pipelines.QueueStep` declares them."""
    artifacts = description.get("ModelArtifacts") or {}
    values = {
        "ModelArtifacts": artifacts.get("S3ModelArtifacts"),
        "TrainingJobArn": description.get("TrainingJobArn"),
        "TrainingJobName": description["TrainingJobName"],
    }
    return [{"Name": name, "Value": value[:MAX_VALUE]} for name, value in values.items() if value]


def _once(token: str) -> str:
    """Return the client token of the step's answer: a repeated answer counts once."""
    return hashlib.sha256(token.encode()).hexdigest()


def _stranger(execution: str) -> AccessDenied:
    return AccessDenied(
        f"The message is not from the role of the execution {execution}.",
        field="pipelineExecutionArn",
        hint="Only callback steps of pipelines may send messages to this queue.",
    )
