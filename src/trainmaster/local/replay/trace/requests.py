"""From a job of a trace to what a user would have submitted, and to the job that the shipped door makes of it.

A GPU of the trace is an instance of a type with one, so a unit of the pool. It must not tell the queue how long the
job will run: only the simulator reads that, from the request's environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.requests.training_job import MAX_RUNTIME
from trainmaster.local.replay.trace.trace import TraceJob
from trainmaster.service.admission.policy import AdmissionPolicy

POOL = "ml.g5.xlarge"
"""An instance type with one GPU."""
_ROLE = "arn:aws:iam::111122223333:role/replay"
_ADMISSION = AdmissionPolicy(shape_problems=lambda _: (), allowed_roles=(_ROLE,))

Request = dict[str, Any]


def name_of(index: int) -> str:
    """The name of the trace's job number `index`: jobs of one moment stay in the trace's order."""
    return f"job-{index:07d}"


def index_of(name: str) -> int:
    """Which job of the trace a name belongs to."""
    return int(name.removeprefix("job-"))


def request_of(job: TraceJob, index: int) -> Request:
    """The CreateTrainingJob request."""
    name = name_of(index)
    limit = MAX_RUNTIME if job.max_runtime is None else job.max_runtime
    limit = min(max(limit, 1), MAX_RUNTIME)
    return {
        "TrainingJobName": name,
        "RoleArn": _ROLE,
        "AlgorithmSpecification": {"TrainingImage": "replay/image:latest", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://replay/output"},
        "ResourceConfig": {"InstanceType": POOL, "InstanceCount": job.gpus, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": round(limit)},
        "CheckpointConfig": {"S3Uri": f"s3://replay/checkpoints/{name}"},
        "Environment": {"SIMULATOR_TRAINING_SECONDS": repr(job.duration)},
    }


def default_max_runtime(jobs: Iterable[TraceJob]) -> timedelta:
    """The limit of jobs that have none of their own, the same for all.

    SageMaker's longest; where a trace has longer jobs, put together of several runs, so often that as covers them: the
    queue may rely on it that no job outlives its limit.
    """
    default_runtime = max((job.duration for job in jobs), default=0.0)
    return timedelta(seconds=MAX_RUNTIME * max(1, ceil(default_runtime / MAX_RUNTIME)))


def admit_job(
    request: Request, job: TraceJob, default_runtime: timedelta, pools: Mapping[str, Pool], now: datetime
) -> Job:
    """The job as the door lets it in, in its share. Raises what `AdmissionPolicy.admit` raises."""
    made = replace(_ADMISSION.admit(request, None, pools, now).job, share=job.share)
    return made if job.max_runtime is not None else replace(made, max_runtime=default_runtime)
