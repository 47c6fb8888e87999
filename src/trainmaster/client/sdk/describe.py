"""Builds DescribeTrainingJob responses for jobs of the queue.

A waiting job is described from its stored request. SageMaker's description of an attempt is corrected if it would
mislead a waiter: the name becomes the job's, and a preempted attempt does not look like the job's end.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from trainmaster.client.views.states import ENDED, WAITING
from trainmaster.client.views.wording import sentence_of
from trainmaster.domain.compat import UTC

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainmaster.client.views.types import JobDetailView

_END_STATUS = {"completed": "Completed", "failed": "Failed", "stopped": "Stopped", "cancelled": "Stopped"}
# Defaults that SageMaker fills in; SDK 2's `attach` relies on them.
_DEFAULTS: dict[str, Any] = {
    "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}
_OUTPUT_DEFAULTS = {"KmsKeyId": "", "CompressionType": "GZIP"}
# Statuses that waiters take for the end: SDK 2's wait_for_job stops at anything but InProgress.
_LOOKS_ENDED = frozenset({"Stopping", "Stopped", "Failed"})


def arn_of(request: dict[str, Any], region: str) -> str:
    """Return the job's ARN under its own name: a job runs in the account and partition of its role."""
    _, partition, _, _, account, _ = request["RoleArn"].split(":", 5)
    return f"arn:{partition}:sagemaker:{region}:{account}:training-job/{request['TrainingJobName']}"


def is_unstarted(job: JobDetailView) -> bool:
    """Return whether SageMaker knows nothing of the job now: it waits, or ended without an attempt."""
    return job["jobState"] in WAITING or not job["trainingJobName"]


def description_of(job: JobDetailView, region: str, members: Collection[str]) -> dict[str, Any]:
    """Return the DescribeTrainingJob response from the stored request; `members` are those of the response shape."""
    request = job["jobDetails"]
    status, secondary = _status_of(job)
    entered = _seconds(job["entryTime"])
    transition = {"Status": secondary, "StartTime": entered, "StatusMessage": sentence_of(job)}
    description = _DEFAULTS | {name: value for name, value in request.items() if name in members}
    description |= {
        "OutputDataConfig": _OUTPUT_DEFAULTS | request["OutputDataConfig"],
        "TrainingJobArn": arn_of(request, region),
        # The service model requires it; there are no artifacts before an attempt has completed.
        "ModelArtifacts": {"S3ModelArtifacts": ""},
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "SecondaryStatusTransitions": [transition],
        "CreationTime": entered,
        "LastModifiedTime": _last_change(job),
    }
    if status == "Failed" and job["failureReason"]:
        description["FailureReason"] = job["failureReason"]
    return description


def correct_description(description: dict[str, Any], job: JobDetailView) -> dict[str, Any]:
    """Return SageMaker's (parsed) description of the newest attempt as one of the job."""
    description = description | {"TrainingJobName": job["jobName"]}
    if not looks_ended(description, job):
        return description
    stopped_at = (
        description.get("TrainingEndTime") or description.get("LastModifiedTime") or description["CreationTime"]
    )
    transition = {"Status": "Interrupted", "StartTime": stopped_at, "StatusMessage": sentence_of(job)}
    remaining = {name: value for name, value in description.items() if name not in ("TrainingEndTime", "FailureReason")}
    return remaining | {
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Interrupted",
        "SecondaryStatusTransitions": [*description.get("SecondaryStatusTransitions", []), transition],
    }


def looks_ended(description: dict[str, Any], job: JobDetailView) -> bool:
    """Return whether SageMaker's response looks like the job's end although the queue will resume the job.

    If the queue did not stop an attempt that is stopping, a user did, and the response is passed on unchanged.
    """
    status = description["TrainingJobStatus"]
    if status not in _LOOKS_ENDED or job["jobState"] in ENDED:
        return False
    return status != "Stopping" or job["jobState"] in ("preempting", *WAITING)


def _status_of(job: JobDetailView) -> tuple[str, str]:
    end_status = _END_STATUS.get(job["jobState"])
    if end_status:
        return end_status, end_status
    return "InProgress", "Pending" if job["jobState"] in WAITING else "Starting"


def _last_change(job: JobDetailView) -> float:
    history = job["history"]
    return max((_seconds(entry["at"]) for entry in history), default=_seconds(job["entryTime"]))


def _seconds(iso: str) -> float:
    moment = datetime.fromisoformat(iso)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
