"""Answers DescribeTrainingJob for a job of the queue, in SageMaker's own words.

A waiting job is described from its stored request; what SageMaker says of an attempt is corrected where it would
mislead a waiter: the name is the job's, and a preempted attempt is not the job's end. It must not call anything.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainmaster.client.views.jobs import ENDED, WAITING
from trainmaster.client.views.wording import sentence_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainmaster.client.views.jobs import JobDetail

_ENDINGS = {"completed": "Completed", "failed": "Failed", "stopped": "Stopped", "cancelled": "Stopped"}
# What SageMaker fills in where a request leaves it open; SDK 2's `attach` relies on it.
_DEFAULTS: dict[str, Any] = {
    "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}
_OUTPUT_DEFAULTS = {"KmsKeyId": "", "CompressionType": "GZIP"}
# What waiters take for an end: SDK v2's wait_for_job stops at anything but InProgress.
_LOOKS_ENDED = frozenset({"Stopping", "Stopped", "Failed"})


def arn_of(request: dict[str, Any], region: str) -> str:
    """The ARN that the job will have under its own name: a job runs in the account and partition of its role."""
    _, partition, _, _, account, _ = request["RoleArn"].split(":", 5)
    return f"arn:{partition}:sagemaker:{region}:{account}:training-job/{request['TrainingJobName']}"


def is_unstarted(job: JobDetail) -> bool:
    """Whether SageMaker has nothing to say about the job now: it waits, or ended without an attempt."""
    return job["jobState"] in WAITING or not job["trainingJobName"]


def described(job: JobDetail, region: str, members: Collection[str]) -> dict[str, Any]:
    """The job as DescribeTrainingJob would tell it, from the stored request; `members` are those of the response."""
    request = job["jobDetails"]
    status, secondary = _status_of(job)
    entered = _seconds(job["entryTime"])
    transition = {"Status": secondary, "StartTime": entered, "StatusMessage": sentence_of(job)}
    answer = _DEFAULTS | {name: value for name, value in request.items() if name in members}
    answer |= {
        "OutputDataConfig": _OUTPUT_DEFAULTS | request["OutputDataConfig"],
        "TrainingJobArn": arn_of(request, region),
        # The model requires it; there is none before an attempt has completed.
        "ModelArtifacts": {"S3ModelArtifacts": ""},
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "SecondaryStatusTransitions": [transition],
        "CreationTime": entered,
        "LastModifiedTime": _last_change(job),
    }
    if status == "Failed" and job["failureReason"]:
        answer["FailureReason"] = job["failureReason"]
    return answer


def corrected(told: dict[str, Any], job: JobDetail) -> dict[str, Any]:
    """What SageMaker told of the newest attempt (parsed), as an answer about the job."""
    told = told | {"TrainingJobName": job["jobName"]}
    if not misleads(told, job):
        return told
    when = told.get("TrainingEndTime") or told.get("LastModifiedTime") or told["CreationTime"]
    transition = {"Status": "Interrupted", "StartTime": when, "StatusMessage": sentence_of(job)}
    kept = {name: value for name, value in told.items() if name not in ("TrainingEndTime", "FailureReason")}
    return kept | {
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Interrupted",
        "SecondaryStatusTransitions": [*told.get("SecondaryStatusTransitions", []), transition],
    }


def misleads(told: dict[str, Any], job: JobDetail) -> bool:
    """Whether SageMaker's answer looks like the job's end although the queue will go on with it.

    An attempt that is stopping without the queue's doing is stopped by a user: that is told as it is.
    """
    status = told["TrainingJobStatus"]
    if status not in _LOOKS_ENDED or job["jobState"] in ENDED:
        return False
    return status != "Stopping" or job["jobState"] in ("preempting", *WAITING)


def _status_of(job: JobDetail) -> tuple[str, str]:
    ending = _ENDINGS.get(job["jobState"])
    if ending:
        return ending, ending
    return "InProgress", "Pending" if job["jobState"] in WAITING else "Starting"


def _last_change(job: JobDetail) -> float:
    history = job["history"]
    return max((_seconds(entry["at"]) for entry in history), default=_seconds(job["entryTime"]))


def _seconds(iso: str) -> float:
    moment = datetime.fromisoformat(iso)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
