"""The shapes that travel: what the API's bodies may say, and what its answers say, member for member.

The OpenAPI document is made of these. Members are camelCase in JSON. It must not know the domain's objects beyond
the names of states: `views.py` makes answers of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel

from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import PRIORITY_LIMIT, JobState
from trainmaster.handlers.models.base import RequestModel, ResponseModel
from trainmaster.handlers.models.elastic import Elastic
from trainmaster.handlers.models.forecast import AtLeast, Deadline, Earliest, Expected, Latest, Position, Why
from trainmaster.handlers.models.pools import Pool
from trainmaster.handlers.models.reasons import Reason
from trainmaster.images.handlers.views import Image, Kind

AWS_REQUEST = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html"

Units = dict[str, int]

# ---------------------------------------------------------------- asked


class TrainingJobRequest(RootModel[dict[str, Any]]):
    """A CreateTrainingJob request, as one would send it to SageMaker.

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
    """A request of which to foresee what would come of it: one for `POST /add-job`, or one for `POST /image-jobs`.

    Beside the latter's members stands `imageSize`, width and height in pixels of the image, or of its region of
    interest, since no image is read for this.
    """

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "anyOf": [
                {"required": ["TrainingJobName", "RoleArn", "OutputDataConfig", "ResourceConfig"]},
                {"required": ["jobId", "imageUrls", "imageProcessor", "imageSize"]},
            ],
            "examples": [
                {
                    "jobId": "harbour-7",
                    "imageUrls": ["s3://bucket/images/harbour-7.tif"],
                    "imageProcessor": {"name": "ships", "type": "SM_ENDPOINT"},
                    "imageSize": [20480, 20480],
                }
            ],
        },
    )


class JobChange(RequestModel):
    """What to change of a job; at least one of the two."""

    priority: Annotated[
        int | None, Field(ge=-PRIORITY_LIMIT, le=PRIORITY_LIMIT, description="Higher runs first; the entry time stays.")
    ] = None
    hold: Annotated[
        bool | None, Field(description="True keeps a waiting job out of consideration, false releases it.")
    ] = None


# ---------------------------------------------------------------- answered


class Attempt(ResponseModel):
    """One run of a job on SageMaker."""

    number: int
    training_job_name: Annotated[str, Field(description="Its name on SageMaker.")]
    units: Annotated[Units, Field(description="Instances by pool; all that SageMaker may choose until it has chosen.")]
    instance_type: Annotated[
        str | None, Field(description="That the queue, or SageMaker, chose for it; null where the request says it.")
    ]
    outcome: Outcome
    created_at: Annotated[datetime, Field(description="When its start was decided.")]
    started_at: Annotated[datetime | None, Field(description="When SageMaker reported its instances at work.")]
    ended_at: datetime | None
    interruptions: Annotated[int, Field(description="How often its spot instances were taken away.")]
    reason: Annotated[str | None, Field(description="Why it ended.")]


class EarlierAttempts(ResponseModel):
    """Sums over a job's oldest attempts, which are not listed one by one."""

    count: int
    outcomes: Annotated[dict[Outcome, int], Field(description="How many of them have ended in which way.")]
    began_at: Annotated[datetime, Field(description="When the first of them was created.")]
    at_work_seconds: float
    instance_seconds: Annotated[float, Field(description="The same, each second once for every instance.")]


class Resources(ResponseModel):
    """What a job asks of each of its instances; 0 or empty where it does not mind."""

    accelerators: int
    accelerator_memory_gib: Annotated[float, Field(description="Of all accelerators of an instance together.")]
    vcpus: int
    memory_gib: float
    accelerator: Annotated[str, Field(description="Who makes them, such as `nvidia`.")]


class Job(ResponseModel):
    """A job as the queue sees it."""

    job_name: str
    kind: Kind
    job_state: JobState
    priority: int
    share: str
    entry_time: datetime
    pools: Annotated[list[str], Field(description="Every pool that it could take instances from.")]
    demand: Annotated[
        list[Units],
        Field(
            description="Instances by pool: any one of the alternatives, and all of that one together. Of a job that "
            "asks for resources those of the pools that cover them now; none where no pool does."
        ),
    ]
    resources: Annotated[Resources | None, Field(description="Null for a job that names types or pools only.")]
    instances: Annotated[int | None, Field(description="How many instances with these resources it needs.")]
    preemptible: bool
    position: Position
    position_at_least: AtLeast
    reason: Annotated[Reason | None, Field(description="Why it waits; null where the next pass starts it.")]
    estimated_start: Expected
    estimated_start_low: Earliest
    estimated_start_high: Latest
    deadline: Annotated[Deadline | None, Field(description="Null where it has none, or has ended.")]
    submitted_by: Annotated[str | None, Field(description="ARN of who submitted it.")]
    failure_reason: Annotated[str | None, Field(description="Why it failed or was stopped.")]
    training_job_name: Annotated[str | None, Field(description="The newest attempt's name on SageMaker.")]
    attempts: Annotated[list[Attempt], Field(description="Oldest first; the newest 51 of them.")]
    earlier_attempts: Annotated[EarlierAttempts | None, Field(description="Those before them; null for most jobs.")]
    elastic: Annotated[Elastic | None, Field(description="Null for a job of a fixed size.")]
    image: Annotated[Image | None, Field(description="Null for a training job.")]


class Submission(Job):
    """A submitted job, what to beware of, and which jobs would step aside for it."""

    warnings: list[str]
    would_preempt: list[str]


class HistoryEntry(ResponseModel):
    """One line of a job's history."""

    at: datetime
    before: Annotated[JobState | None, Field(alias="from", description="Null for the line of the submission.")]
    after: Annotated[JobState, Field(alias="to")]
    reason: str
    attempt: int | None


class JobDetail(Job):
    """A job with its history and the request that was submitted."""

    history: Annotated[list[HistoryEntry], Field(description="Oldest first.")]
    job_details: Annotated[dict[str, Any], Field(description="The request as submitted.")]
    why: Annotated[Why | None, Field(description="Where it was asked for, of a waiting job that a pass looks at.")]


class JobsPage(ResponseModel):
    """One page of jobs."""

    jobs: list[Job]
    next_cursor: Annotated[str | None, Field(description="Hand it back for the next page; null on the last.")]


class QueuePage(JobsPage):
    """One page of the waiting jobs in queue order, and the pools that they wait for."""

    pools: list[Pool]


class ErrorDetail(ResponseModel):
    """What went wrong, and what to do about it."""

    type: Annotated[str, Field(description="For programs; see the table of errors.", examples=["InvalidRequest"])]
    message: Annotated[str, Field(description="For people: what is wrong, in one sentence.")]
    field: Annotated[
        str | None, Field(description="Path of the field at fault.", examples=["ResourceConfig.InstanceCount"])
    ]
    hint: Annotated[str | None, Field(description="What to do about it.")]


class Error(ResponseModel):
    """The one shape of every answer that is no success."""

    error: ErrorDetail
