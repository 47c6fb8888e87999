"""A real Batch client without a network, and requests for it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.validate import ParamValidator
from client_world import ROLE

QUEUE = "training"
MAY_BE_ABSENT = {"startedAt"}
"""A member that Batch's model requires and that a job without a start cannot have."""


class Batch:
    """A real Batch client: calls fail if an answer does not fit the service model, and `real` has what left for AWS."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.real: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []

    @classmethod
    def of(cls, session: boto3.session.Session) -> Batch:
        """A client whose own requests end here."""
        batch = cls(session.client("batch"))
        batch.client.meta.events.register("before-send.batch", batch.send)
        return batch

    def send(self, request: AWSRequest | AWSPreparedRequest, **_: object) -> AWSResponse:
        """Be AWS Batch."""
        body = request.body or b""
        self.real.append((str(request.url).rpartition("/v1/")[2], json.loads(body or b"{}")))
        status, answer = self.answers.pop(0) if self.answers else (200, {})
        return AWSResponse(str(request.url), status, {}, _Body(json.dumps(answer).encode()))  # type: ignore[arg-type]

    def __call__(self, operation: str, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(self.client, operation)(**request)
        model = self.client.meta.service_model.operation_model(self.client.meta.method_to_api_mapping[operation])
        shown = {key: value for key, value in answer.items() if key != "ResponseMetadata"}
        told = ParamValidator().validate(shown, model.output_shape)
        missing = [error for error in told._errors if error[0] == "missing required field"]
        assert {error[2]["required_name"] for error in missing} <= MAY_BE_ABSENT, told.generate_report()
        assert len(missing) == len(told._errors), told.generate_report()
        assert set(shown) <= set(model.output_shape.members if model.output_shape else ())
        return answer

    def submit(self, name: str = "job1", token: str | None = None, **changes: Any) -> dict[str, Any]:
        """Submit a service job to the queue."""
        more = {} if token is None else {"clientToken": token}
        return self("submit_service_job", **a_service_job(name, **more, **changes))


class _Body(io.BytesIO):
    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self.read()


def a_service_job(name: str = "job1", payload: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A SubmitServiceJob request."""
    return {
        "jobName": name,
        "jobQueue": QUEUE,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "serviceRequestPayload": json.dumps(a_payload() if payload is None else payload),
    } | changes


def a_payload(**changes: Any) -> dict[str, Any]:
    """A CreateTrainingJob request."""
    return {
        "TrainingJobName": "hello-20261123120000",
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    } | changes
