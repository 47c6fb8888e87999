"""Views of a training job: the Describe response, the List summary, the detail of an event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster.local.simulator.service.demand import Market
from trainmaster.local.simulator.service.job import DEFAULT_MAX_RUNTIME, TrainingJob, Transition, WarmPool

ECHOED = (
    "HyperParameters", "AlgorithmSpecification", "RoleArn", "InputDataConfig", "OutputDataConfig", "VpcConfig",
    "CheckpointConfig", "DebugHookConfig", "ExperimentConfig", "DebugRuleConfigurations",
    "TensorBoardOutputConfig", "ProfilerConfig", "ProfilerRuleConfigurations", "Environment", "RetryStrategy",
    "RemoteDebugConfig", "InfraCheckConfig", "ServerlessJobConfig", "MlflowConfig", "ModelPackageConfig",
)  # fmt: skip
"""Members of the request that Describe returns unchanged."""
FILLED: dict[str, dict[str, Any]] = {
    "AlgorithmSpecification": {"EnableSageMakerMetricsTimeSeries": False},
    "OutputDataConfig": {"KmsKeyId": "", "CompressionType": "GZIP"},
}
"""Members of members that Describe fills in, as published responses show."""
CHANNEL_FILLED = {"CompressionType": "None", "RecordWrapperType": "None"}
FLAGS = ("EnableNetworkIsolation", "EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining")
EVENT_MEMBERS = (
    "TrainingJobName", "TrainingJobArn", "TrainingJobStatus", "SecondaryStatus", "FailureReason",
    "HyperParameters", "AlgorithmSpecification", "RoleArn", "InputDataConfig", "OutputDataConfig",
    "ResourceConfig", "VpcConfig", "StoppingCondition", "CreationTime", "TrainingStartTime", "TrainingEndTime",
    "LastModifiedTime", "SecondaryStatusTransitions", "ModelArtifacts", "CheckpointConfig", "WarmPoolStatus",
    "Environment", *FLAGS,
)  # fmt: skip
"""Members of the Describe response in the detail of an event."""


def describe(job: TrainingJob, now: datetime) -> dict[str, Any]:
    """Return the DescribeTrainingJob response."""
    given = {name: job.request[name] for name in ECHOED if name in job.request} | _filled(job.request)
    flags = {name: bool(job.request.get(name)) for name in FLAGS}
    return given | flags | _status(job) | _configuration(job) | _times(job) | _warm_pool(job, now)


def _filled(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that have members of their own filled in."""
    filled: dict[str, Any] = {name: FILLED[name] | request[name] for name in FILLED if name in request}
    if "InputDataConfig" in request:
        filled["InputDataConfig"] = [CHANNEL_FILLED | channel for channel in request["InputDataConfig"]]
    return filled | {"ProfilingStatus": "Enabled" if "ProfilerConfig" in request else "Disabled"}


def summary(job: TrainingJob, now: datetime) -> dict[str, Any]:
    """Return an entry of the ListTrainingJobs response."""
    config = job.request.get("ResourceConfig", {})
    seen = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "CreationTime": job.created,
        "TrainingEndTime": job.ended,
        "LastModifiedTime": job.last_modified,
        "TrainingJobStatus": job.status,
        "SecondaryStatus": job.secondary,
        "TrainingPlanArn": config.get("TrainingPlanArn"),
    }
    return _without_none(seen) | _warm_pool(job, now)


def detail(job: TrainingJob, now: datetime) -> dict[str, Any]:
    """Return the detail of an event: like Describe, with times as epoch milliseconds and tags as a map.

    See "Automating Amazon SageMaker AI with Amazon EventBridge" (SageMaker developer guide).
    """
    seen = describe(job, now)
    members: dict[str, Any] = in_milliseconds({name: seen[name] for name in EVENT_MEMBERS if name in seen})
    return members | {"Tags": dict(job.tags)}


def in_milliseconds(value: Any) -> Any:
    """Return the value with every time as epoch milliseconds."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, Mapping):
        return {key: in_milliseconds(each) for key, each in value.items()}
    if isinstance(value, list):
        return [in_milliseconds(each) for each in value]
    return value


def _status(job: TrainingJob) -> dict[str, Any]:
    output = job.request["OutputDataConfig"]["S3OutputPath"].rstrip("/")
    seen = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "ModelArtifacts": {"S3ModelArtifacts": f"{output}/{job.name}/output/model.tar.gz"},
        "TrainingJobStatus": job.status,
        "SecondaryStatus": job.secondary,
        "FailureReason": job.failure_reason,
        "SecondaryStatusTransitions": [_transition(each) for each in job.transitions],
    }
    return _without_none(seen)


def _configuration(job: TrainingJob) -> dict[str, Any]:
    stopping = {"MaxRuntimeInSeconds": int(DEFAULT_MAX_RUNTIME.total_seconds())}
    seen: dict[str, Any] = {"StoppingCondition": stopping | job.request.get("StoppingCondition", {})}
    if "ResourceConfig" in job.request:
        seen["ResourceConfig"] = _resources(job)
    return seen


def _resources(job: TrainingJob) -> dict[str, Any]:
    config = dict(job.request["ResourceConfig"])
    if "KeepAlivePeriodInSeconds" in config or job.keep_alive:
        config["KeepAlivePeriodInSeconds"] = job.keep_alive
    for instance_type, count in (job.selected or {}).items():
        config |= {"SelectedInstanceType": instance_type, "SelectedInstanceCount": count}
    return config


def _times(job: TrainingJob) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "CreationTime": job.created,
        "LastModifiedTime": job.last_modified,
        "TrainingStartTime": job.started,
        "TrainingEndTime": job.ended,
    }
    if job.started and job.ended:
        whole = job.ended - job.started if job.market == Market.SPOT else job.earlier_run_time
        seen["TrainingTimeInSeconds"] = max(1, round(whole.total_seconds()))
        seen["BillableTimeInSeconds"] = max(1, round(job.earlier_run_time.total_seconds()))
    return _without_none(seen)


def _warm_pool(job: TrainingJob, now: datetime) -> dict[str, Any]:
    if job.warm_pool is None:
        return {}
    pool: dict[str, Any] = {"Status": job.warm_pool.value, "ReusedByJob": job.reused_by}
    if job.warm_pool is not WarmPool.IN_USE and job.ended:
        until = job.pool_ended or now
        pool["ResourceRetainedBillableTimeInSeconds"] = round((until - job.ended).total_seconds())
    return {"WarmPoolStatus": _without_none(pool)}


def _transition(each: Transition) -> dict[str, Any]:
    return _without_none(
        {"Status": each.status, "StartTime": each.start, "EndTime": each.end, "StatusMessage": each.message}
    )


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
