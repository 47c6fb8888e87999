"""Converts a trace's job to the request of a user, and to the job that the shipped admission makes of it.

A GPU of the trace is an instance with one GPU, so a unit of the pool. Only the simulator reads the run time, from the
environment of the request; the queue does not know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from trainmaster.domain.access.caller import UNKNOWN
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.requests.training_job import MAX_RUNTIME
from trainmaster.local.replay.trace.trace import TraceJob
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy

POOL = "ml.g5.xlarge"
"""An instance type with one GPU."""
_ROLE = "arn:aws:iam::111122223333:role/replay"
_ADMISSION = AdmissionPolicy(shape_problems=lambda _: (), rules=CallerRules(allowed_roles=(_ROLE,)))

Request = dict[str, Any]


def name_of(index: int) -> str:
    """Return the name of the trace's job number `index`; names keep the order of the trace."""
    return f"job-{index:07d}"


def index_of(name: str) -> int:
    """Return the index of the trace's job with this name."""
    return int(name.removeprefix("job-"))


def request_of(job: TraceJob, index: int) -> Request:
    """Return the CreateTrainingJob request of a job."""
    name = name_of(index)
    limit = MAX_RUNTIME if job.max_runtime is None else min(_limit(job.max_runtime), MAX_RUNTIME)
    return {
        "TrainingJobName": name,
        "RoleArn": _ROLE,
        "AlgorithmSpecification": {"TrainingImage": "replay/image:latest", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://replay/output"},
        "ResourceConfig": {"InstanceType": POOL, "InstanceCount": job.gpus, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": limit},
        "CheckpointConfig": {"S3Uri": f"s3://replay/checkpoints/{name}"},
        "Environment": {"SIMULATOR_TRAINING_SECONDS": repr(job.duration)},
    }


def default_max_runtime(jobs: Iterable[TraceJob]) -> timedelta:
    """Return the limit of the jobs without a limit of their own.

    SageMaker's maximum, or the smallest multiple of it that covers the longest job: the queue may rely on the limits.
    """
    default_runtime = max((job.duration for job in jobs), default=0.0)
    return timedelta(seconds=MAX_RUNTIME * max(1, ceil(default_runtime / MAX_RUNTIME)))


def admit_job(
    request: Request, job: TraceJob, default_runtime: timedelta, pools: Mapping[str, Pool], now: datetime
) -> Job:
    """Admit the job with its share, and its limit beyond SageMaker's. Raises the errors of `AdmissionPolicy.admit`."""
    limit = default_runtime if job.max_runtime is None else timedelta(seconds=_limit(job.max_runtime))
    return replace(_ADMISSION.admit(request, UNKNOWN, pools, now).job, share=job.share, max_runtime=limit)


def _limit(seconds: float) -> int:
    """Return a limit as SageMaker accepts it: whole seconds, at least 1."""
    return max(1, round(seconds))
