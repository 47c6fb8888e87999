"""Builds DescribeTrainingJob responses for jobs of the queue.

A waiting job is described from its stored request. SageMaker's description of an attempt is corrected if it would
mislead a waiter: the name becomes the job's, and a preempted attempt does not look like the job's end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trainmaster.client.views.moments import parse_timestamp
from trainmaster.client.views.states import ENDED, WAITING
from trainmaster.client.views.wording import sentence_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainmaster.client.views.types import JobDetailView, JobView

_END_STATUS = {"completed": "Completed", "failed": "Failed", "stopped": "Stopped", "cancelled": "Stopped"}
_SECONDARY = {"starting": "Starting", "running": "Training", "resizing": "Training", "preempting": "Interrupted"}
# Defaults that SageMaker fills in, as published responses show; SDK 2's `attach` relies on them.
_DEFAULTS: dict[str, Any] = {
    "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
    "ProfilingStatus": "Disabled",
}
_MEMBER_DEFAULTS: dict[str, dict[str, Any]] = {
    "AlgorithmSpecification": {"EnableSageMakerMetricsTimeSeries": False},
    "OutputDataConfig": {"KmsKeyId": "", "CompressionType": "GZIP"},
    "StoppingCondition": _DEFAULTS["StoppingCondition"],
}
_CHANNEL_DEFAULTS = {"CompressionType": "None", "RecordWrapperType": "None"}
# Default names of pools begin with their instance type.
_POOL_TYPE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
# Statuses that waiters take for the end: SDK 2's wait_for_job stops at anything but InProgress.
_LOOKS_ENDED = frozenset({"Stopping", "Stopped", "Failed"})
_INTERRUPTED = frozenset({"preempting", "resizing", *WAITING})
_ATTEMPT_ENDED = "The attempt has ended; the queue decides whether the job resumes."


def arn_of(request: dict[str, Any], region: str) -> str:
    """Return the job's ARN under its own name: a job runs in the account and partition of its role."""
    _, partition, _, _, account, _ = request["RoleArn"].split(":", 5)
    return f"arn:{partition}:sagemaker:{region}:{account}:training-job/{request['TrainingJobName']}"


def is_unstarted(job: JobDetailView) -> bool:
    """Return whether SageMaker knows nothing of the job now: it waits, or ended without an attempt."""
    return job["jobState"] in WAITING or not job["trainingJobName"]


def description_of(job: JobDetailView, region: str, members: Collection[str], message: str) -> dict[str, Any]:
    """Return the DescribeTrainingJob response from the stored request, with a status message.

    `members` are those of the response shape.
    """
    request = job["jobDetails"]
    status, secondary = status_of(job)
    ended = {"EndTime": last_change(job)} if job["jobState"] in ENDED else {}
    transition = {"Status": secondary, "StartTime": last_change(job), "StatusMessage": message, **ended}
    description = _with_defaults({name: value for name, value in request.items() if name in members}, job)
    description |= {
        "TrainingJobArn": arn_of(request, region),
        "ModelArtifacts": {"S3ModelArtifacts": _artifacts(description, job)},
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "SecondaryStatusTransitions": [transition],
        "LastModifiedTime": last_change(job),
    }
    if status == "Failed" and job["failureReason"]:
        description["FailureReason"] = job["failureReason"]
    return description | times_of(job)


def times_of(job: JobView) -> dict[str, float]:
    """Return the creation of the job, or of its newest attempt if that ran last, with its start and end.

    A job that waits to resume has started, as a spot job of SageMaker that was interrupted.
    """
    if job["jobState"] in WAITING or not job["attempts"]:
        starts = [attempt["startedAt"] for attempt in job["attempts"] if attempt["startedAt"]]
        started = {"TrainingStartTime": _seconds(starts[-1])} if starts else {}
        return {"CreationTime": _seconds(job["entryTime"])} | started
    attempt = job["attempts"][-1]
    times = {
        "CreationTime": attempt["createdAt"],
        "TrainingStartTime": attempt["startedAt"],
        "TrainingEndTime": attempt["endedAt"] if attempt["startedAt"] else None,
    }
    return {name: _seconds(time) for name, time in times.items() if time is not None}


def correct_description(description: dict[str, Any], job: JobView) -> dict[str, Any]:
    """Return SageMaker's (parsed) description of the newest attempt as one of the job."""
    description = description | {"TrainingJobName": job["jobName"]}
    if not looks_ended(description, job):
        return description
    stopped_at = (
        description.get("TrainingEndTime") or description.get("LastModifiedTime") or description["CreationTime"]
    )
    # SDK 2 prints each new transition: the end of the attempt is one, and not three.
    earlier = [each for each in description.get("SecondaryStatusTransitions", []) if each["Status"] not in _LOOKS_ENDED]
    message = sentence_of(job) if job["jobState"] in _INTERRUPTED else _ATTEMPT_ENDED
    transition = {"Status": "Interrupted", "StartTime": stopped_at, "StatusMessage": message}
    remaining = {name: value for name, value in description.items() if name not in ("TrainingEndTime", "FailureReason")}
    return remaining | {
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Interrupted",
        "SecondaryStatusTransitions": [*earlier, transition],
    }


def looks_ended(description: dict[str, Any], job: JobView) -> bool:
    """Return whether SageMaker's response looks like the job's end although the queue will resume the job.

    If the queue did not stop an attempt that is stopping, a user did, and the response is passed on unchanged.
    """
    status = description["TrainingJobStatus"]
    if status not in _LOOKS_ENDED or job["jobState"] in ENDED:
        return False
    return status != "Stopping" or job["jobState"] in ("preempting", *WAITING)


def model_location(job: JobDetailView) -> str:
    """Return the S3 URI of a training job's model; empty before the job has completed."""
    return _artifacts(_with_defaults(job["jobDetails"], job), job)


def _with_defaults(request: dict[str, Any], job: JobDetailView) -> dict[str, Any]:
    """Return the members of a request with what SageMaker fills in."""
    description = _DEFAULTS | request
    for member, defaults in _MEMBER_DEFAULTS.items():
        description[member] = defaults | description.get(member, {})
    if "InputDataConfig" in request:
        description["InputDataConfig"] = [_CHANNEL_DEFAULTS | channel for channel in request["InputDataConfig"]]
    if "ResourceConfig" in request:
        description["ResourceConfig"] = _chosen_type(job) | request["ResourceConfig"]
    return description


def _chosen_type(job: JobDetailView) -> dict[str, Any]:
    """Return the instance type of a job that requests resources: the newest attempt's, else the first it may get."""
    attempt_type = job["attempts"][-1].get("instanceType") if job["attempts"] else None
    pool_types = (found[0] for pool in job["pools"] if (found := _POOL_TYPE.match(pool)))
    chosen = attempt_type or next(pool_types, None)
    return {"InstanceType": chosen} if chosen and job.get("resources") else {}


def _artifacts(description: dict[str, Any], job: JobDetailView) -> str:
    """Return the location of the model; empty before the job has completed, as the member is required."""
    if job["jobState"] != "completed" or not job["trainingJobName"]:
        return ""
    output = description["OutputDataConfig"]
    folder = f"{output['S3OutputPath'].rstrip('/')}/{job['trainingJobName']}/output/model"
    return folder + ("/" if output["CompressionType"] == "NONE" else ".tar.gz")


def status_of(job: JobView | JobDetailView) -> tuple[str, str]:
    """Return the status and secondary status of a job that SageMaker does not describe."""
    end_status = _END_STATUS.get(job["jobState"])
    if end_status:
        return end_status, end_status
    return "InProgress", _SECONDARY.get(job["jobState"], "Pending")


def last_change(job: JobView) -> float:
    """Return the time of the job's last change, in epoch seconds."""
    attempt: dict[str, Any] = {**job["attempts"][-1]} if job["attempts"] else {}
    times = [
        job["entryTime"],
        job.get("endedAt"),
        *(attempt.get(name) for name in ("createdAt", "startedAt", "endedAt")),
    ]
    return max(_seconds(time) for time in times if time is not None)


def _seconds(iso: str) -> float:
    return parse_timestamp(iso).timestamp()
