"""SageMaker Pipelines and IAM as far as the queue meets them, after their API references: callback steps that wait.

A step ends once, by an answer; an answer repeated with the same client token is accepted. A stopped execution waits for
the answers of its steps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fake_states import ACCOUNT, Around, answered, refusal

PIPELINE = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:pipeline/nightly"
ROLE_OF_PIPELINES = f"arn:aws:iam::{ACCOUNT}:role/service-role/nightly-pipeline"
SENDER = "AROAPIPELINE:SageMaker"


@dataclass
class Step:
    """A callback step that waits; `outcome` is its end, such as ("Success", outputs)."""

    token: str
    execution: str
    arguments: dict[str, str]
    outcome: tuple[str, Any] | None = None
    answered_with: str = ""

    def record(self, status: str = "Executing", sender: str = SENDER) -> dict[str, Any]:
        """Return the message about it, as Lambda gives it."""
        body = {
            "token": self.token,
            "pipelineExecutionArn": self.execution,
            "arguments": self.arguments,
            "status": status,
        }
        return {"messageId": f"{self.token}-{status}", "body": json.dumps(body), "attributes": {"SenderId": sender}}


@dataclass
class FakePipelines:
    """A SageMaker client and an IAM client of pipelines."""

    faults: Around
    steps: dict[str, Step] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    tells_role: bool = True

    def start(self, execution: str, request: dict[str, Any], queue: dict[str, Any] | None = None) -> Step:
        """Begin a step of an execution."""
        token = f"token{len(self.steps):05d}"
        arn = f"{PIPELINE}/execution/{execution}"
        arguments = {"Request": json.dumps(request)} | ({"Queue": json.dumps(queue)} if queue else {})
        self.status.setdefault(arn, "Executing")
        self.steps[token] = Step(token, arn, arguments)
        return self.steps[token]

    # -- the clients --------------------------------------------------------------------------------------------------
    def send_pipeline_execution_step_success(
        self,
        *,
        CallbackToken: str,  # noqa: N803 -- as boto3 names it
        OutputParameters: list[dict[str, str]],  # noqa: N803
        ClientRequestToken: str,  # noqa: N803
    ) -> None:
        assert len(OutputParameters) <= 50
        assert all(len(each["Name"]) <= 256 and 0 < len(each["Value"]) <= 1_024 for each in OutputParameters)
        outputs = {each["Name"]: each["Value"] for each in OutputParameters}
        self._answer("SendPipelineExecutionStepSuccess", CallbackToken, ClientRequestToken, ("Success", outputs))

    def send_pipeline_execution_step_failure(
        self,
        *,
        CallbackToken: str,  # noqa: N803
        FailureReason: str,  # noqa: N803
        ClientRequestToken: str,  # noqa: N803
    ) -> None:
        assert len(FailureReason) <= 256
        self._answer("SendPipelineExecutionStepFailure", CallbackToken, ClientRequestToken, ("Failure", FailureReason))

    def describe_pipeline_execution(self, *, PipelineExecutionArn: str) -> dict[str, Any]:  # noqa: N803
        if PipelineExecutionArn not in self.status:
            raise refusal("ResourceNotFound")
        role = {"RoleArn": ROLE_OF_PIPELINES} if self.tells_role else {}
        found = {"PipelineArn": PIPELINE, "PipelineExecutionStatus": self.status[PipelineExecutionArn], **role}
        return self.faults.around("DescribePipelineExecution", lambda: found)

    def describe_pipeline(self, *, PipelineName: str) -> dict[str, Any]:  # noqa: N803
        assert PipelineName == PIPELINE
        return self.faults.around("DescribePipeline", lambda: {"RoleArn": ROLE_OF_PIPELINES})

    def get_role(self, *, RoleName: str) -> dict[str, Any]:  # noqa: N803
        assert RoleName == "nightly-pipeline"
        return self.faults.around("GetRole", lambda: {"Role": {"RoleId": SENDER.partition(":")[0]}})

    def _answer(self, call: str, token: str, once: str, outcome: tuple[str, Any]) -> None:
        assert 32 <= len(once) <= 128
        answered(self.faults, call, lambda: self._end(token, once, outcome))

    def _end(self, token: str, once: str, outcome: tuple[str, Any]) -> None:
        if token not in self.steps:
            raise refusal("ResourceNotFound")
        step = self.steps[token]
        if step.outcome is not None and step.answered_with != once:
            raise refusal("ValidationException")
        step.outcome, step.answered_with = step.outcome or outcome, once
