"""API models of jobs, the queue, and errors; `handlers.views` fills them from the domain."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel

from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.policy.declaration import MAX_COUNT
from trainmaster.handlers.models.base import RequestModel, ResponseModel
from trainmaster.handlers.models.elastic import Elastic
from trainmaster.handlers.models.forecast import AtLeast, Deadline, Earliest, Expected, Latest, Position, Why
from trainmaster.handlers.models.pools import Pool
from trainmaster.handlers.models.reasons import Reason

AWS_REQUEST = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html"

Units = dict[str, int]

# ---------------------------------------------------------------- requests


class TrainingJobRequest(RootModel[dict[str, Any]]):
    """CreateTrainingJob request, as for SageMaker.

    Its members are SageMaker's. The tag `priority` (an integer) sets the job's priority, tags `trainmaster:<option>`
    its options. With `trainmaster:resources` it needs no instance type: the queue finds the pools that cover it.
    """

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "externalDocs": {"description": "CreateTrainingJob in the SageMaker API reference", "url": AWS_REQUEST},
            "required": ["TrainingJobName", "RoleArn", "OutputDataConfig", "ResourceConfig"],
            "examples": [
                {
                    "TrainingJobName": "bert-1",
                    "AlgorithmSpecification": {
                        "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
                        "TrainingInputMode": "File",
                    },
                    "RoleArn": "arn:aws:iam::111122223333:role/training",
                    "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
                    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 100},
                    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
                    "CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints/bert-1"},
                    "Tags": [{"Key": "priority", "Value": "100"}],
                }
            ],
        },
    )


class PlanRequest(RootModel[dict[str, Any]]):
    """Request of `POST /add-job` whose effects the response forecasts."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "anyOf": [
                {"required": ["TrainingJobName", "RoleArn", "OutputDataConfig", "ResourceConfig"]},
            ],
        },
    )


class JobChange(RequestModel):
    """Change of a job; at least one of the members."""

    priority: Annotated[
        int | None, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY, description="Higher runs first; the entry time stays.")
    ] = None
    hold: Annotated[
        bool | None, Field(description="True keeps a waiting job out of consideration, false releases it.")
    ] = None
    min_instances: Annotated[
        int | None, Field(ge=1, le=MAX_COUNT, description="Minimum size of an elastic job: one of its possible sizes.")
    ] = None
    max_instances: Annotated[
        int | None, Field(ge=1, le=MAX_COUNT, description="Maximum size of an elastic job: one of its possible sizes.")
    ] = None


# ---------------------------------------------------------------- responses


class Attempt(ResponseModel):
    """Run of a job on SageMaker."""

    number: int
    training_job_name: Annotated[str, Field(description="Name on SageMaker.")]
    units: Annotated[
        Units, Field(description="Instances by pool; all that SageMaker may choose from until it has chosen.")
    ]
    instance_type: Annotated[
        str | None, Field(description="Type that the queue or SageMaker chose; null if the request names it.")
    ]
    outcome: Outcome
    created_at: Annotated[datetime, Field(description="Time of the decision to start it.")]
    launched: Annotated[bool, Field(description="Whether SageMaker is known to have its training job.")]
    started_at: Annotated[datetime | None, Field(description="Time at which SageMaker reported its instances at work.")]
    ended_at: datetime | None
    interruptions: Annotated[int, Field(description="Number of spot interruptions.")]
    reason: Annotated[str | None, Field(description="Reason of its end.")]


class EarlierAttempts(ResponseModel):
    """Sums over a job's oldest attempts, which are not listed."""

    count: int
    outcomes: Annotated[dict[Outcome, int], Field(description="Number of attempts by outcome.")]
    began_at: Annotated[datetime, Field(description="Creation of the first of them.")]
    at_work_seconds: float
    instance_seconds: Annotated[float, Field(description="The same, times the number of instances.")]


class Resources(ResponseModel):
    """Resources that a job requests of each instance; 0 or empty for no requirement."""

    accelerators: int
    accelerator_memory_gib: Annotated[float, Field(description="All accelerators of an instance together.")]
    vcpus: int
    memory_gib: float
    accelerator: Annotated[str, Field(description="Manufacturer, such as `nvidia`.")]


class Job(ResponseModel):
    """Job in the queue."""

    job_name: str
    kind: Annotated[str, Field(description="training: instances of SageMaker's.")]
    job_state: JobState
    priority: int
    share: str
    entry_time: datetime
    pools: Annotated[list[str], Field(description="Every pool whose instances it could use.")]
    demand: Annotated[
        list[Units],
        Field(
            description="Alternatives, any one of which is enough, with instances by pool. For a job that requests "
            "resources, the pools that cover them now; empty if no pool does."
        ),
    ]
    resources: Annotated[Resources | None, Field(description="Null if the job names only types or pools.")]
    instances: Annotated[int | None, Field(description="Number of instances with these resources.")]
    preemptible: bool
    position: Position
    position_at_least: AtLeast
    reason: Annotated[Reason | None, Field(description="Reason for waiting; null if the next pass starts it.")]
    estimated_start: Expected
    estimated_start_low: Earliest
    estimated_start_high: Latest
    expected_end: Annotated[
        datetime | None,
        Field(
            description="Expected end of the running attempt if nothing preempts it; null without one, and in the "
            "answer of a cancellation."
        ),
    ]
    expected_end_low: Annotated[datetime | None, Field(description="End if it is quick for its kind of job.")]
    expected_end_high: Annotated[datetime | None, Field(description="End if it is slow, within its time limit.")]
    deadline: Annotated[Deadline | None, Field(description="Null if it has none or has ended.")]
    ended_at: Annotated[datetime | None, Field(description="Time of its end; null before it.")]
    submitted_by: Annotated[
        str | None, Field(description="ARN of the role or user that submitted it, without the session's name.")
    ]
    failure_reason: Annotated[str | None, Field(description="Reason of its failure or stop.")]
    training_job_name: Annotated[
        str | None,
        Field(description="Name of the newest attempt on SageMaker; after the loss of its base, of the new base."),
    ]
    attempts: Annotated[list[Attempt], Field(description="The newest 51, oldest first.")]
    earlier_attempts: Annotated[EarlierAttempts | None, Field(description="Earlier attempts; null for most jobs.")]
    elastic: Annotated[Elastic | None, Field(description="Null for a job of a fixed size.")]
    details: Annotated[dict[str, Any] | None, Field(description="By kind; null for a training job.")]


class Submission(Job):
    """Submitted job with warnings, and the jobs that it would preempt."""

    submitted_before: Annotated[
        bool, Field(description="Whether the same request was submitted before: nothing was submitted now.")
    ]
    warnings: list[str]
    would_preempt: list[str]


class HistoryEntry(ResponseModel):
    """Entry of a job's history."""

    at: datetime
    before: Annotated[JobState | None, Field(alias="from", description="Null for the submission.")]
    after: Annotated[JobState, Field(alias="to")]
    reason: str
    attempt: int | None


class JobDetail(Job):
    """Job with its history and the submitted request."""

    history: Annotated[list[HistoryEntry], Field(description="Oldest first.")]
    job_details: Annotated[dict[str, Any], Field(description="Request as submitted, without redacted values.")]
    redacted: Annotated[list[str], Field(description="Paths in `jobDetails` whose values are redacted.")]
    why: Annotated[Why | None, Field(description="Present with `why=true` if a pass considers the waiting job.")]


class JobsPage(ResponseModel):
    """Page of jobs."""

    jobs: list[Job]
    next_cursor: Annotated[str | None, Field(description="Cursor of the next page; null on the last.")]


class QueuePage(JobsPage):
    """Page of waiting jobs in queue order, with the pools."""

    pools: list[Pool]


class ErrorDetail(ResponseModel):
    """Error and a hint."""

    type: Annotated[str, Field(description="Type for programs; see the table of errors.", examples=["InvalidRequest"])]
    message: Annotated[str, Field(description="Error as a sentence.")]
    field: Annotated[
        str | None, Field(description="Path of the invalid field.", examples=["ResourceConfig.InstanceCount"])
    ]
    hint: Annotated[str | None, Field(description="Suggested remedy.")]


class Error(ResponseModel):
    """Body of every error response."""

    error: ErrorDetail
