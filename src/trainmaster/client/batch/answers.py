"""Builds the answers of DescribeServiceJob and ListServiceJobs for jobs of the queue. Times are epoch milliseconds."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from trainmaster.client.batch.names import ID_PREFIX, batch_name_of
from trainmaster.client.batch.submission import (
    JOB_TYPE,
    NAME_TAG,
    OWN_TAGS,
    PREEMPTIBLE_TAG,
    PREEMPTIONS_TAG,
    REASON_PREFIX,
    RETRY_TAGS,
)
from trainmaster.client.views.moments import parse_timestamp
from trainmaster.client.views.states import ENDED
from trainmaster.client.views.wording import enters_by_itself, sentence_of
from trainmaster.domain.requests.tag_names import PRIORITY_TAG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainmaster.client.batch.names import Arns
    from trainmaster.client.views.types import AttemptView, JobDetailView, JobState, JobView

STATES: dict[str, tuple[JobState, ...]] = {
    "SUBMITTED": (),
    "PENDING": ("held",),
    "RUNNABLE": ("pending", "preempted", "held", "starting"),
    "SCHEDULED": ("starting",),
    "STARTING": ("starting",),
    "RUNNING": ("running", "resizing", "preempting"),
    "SUCCEEDED": ("completed",),
    "FAILED": ("failed", "stopped", "cancelled"),
}
"""States of the queue in which a job may have each of Batch's statuses."""
DEFAULT_SHARE = "default"
MAX_ATTEMPTS = 10
"""Maximum of `attempts` of a retry strategy (Batch API)."""

_STATUS = {state: status for status in ("RUNNABLE", "RUNNING", "SUCCEEDED", "FAILED") for state in STATES[status]}
_TERMINATED = frozenset({"stopped", "cancelled"})
_BY_A_CALLER = ("stop requested by ", "cancelled by ")
_INSTANCE_TYPE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")


def status_of(job: JobView | JobDetailView) -> str:
    """Return the job's status at Batch.

    The SDK asks SageMaker for the training job of any job that is not SUBMITTED, PENDING or RUNNABLE, so a job that is
    starting becomes SCHEDULED only once SageMaker has its training job.
    """
    if job["jobState"] == "held" and enters_by_itself(job.get("reason")):
        return "PENDING"
    if job["jobState"] == "starting" and (attempt := newest_attempt(job)) is not None:
        return "STARTING" if attempt["startedAt"] else "SCHEDULED"
    return _STATUS[job["jobState"]]


def newest_attempt(job: JobView | JobDetailView) -> AttemptView | None:
    """Return the newest attempt if SageMaker has its training job."""
    newest = job["attempts"][-1] if job["attempts"] else None
    return newest if newest is not None and _is_launched(newest, job) else None


def description_of(job: JobDetailView, arns: Arns, queue: str) -> dict[str, Any]:
    """Return the answer of DescribeServiceJob for a job of a queue of this name."""
    tags = {tag["Key"]: tag["Value"] for tag in job["jobDetails"].get("Tags", ())}
    request = {name: value for name, value in job["jobDetails"].items() if name != "Tags"}
    seconds = request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
    described = {
        "isTerminated": False,
        **summary_of(job, arns, name_of(job)),
        "capacityUsage": _capacity_of(job),
        "jobQueue": arns.of_queue(queue),
        "schedulingPriority": job["priority"],
        "serviceRequestPayload": json.dumps(request),
        "retryStrategy": _retry_strategy(tags),
        **_preemption_configuration(tags),
        "attempts": [_attempt(job, each, arns) for each in job["attempts"] if _is_launched(each, job)],
        "tags": {key: value for key, value in tags.items() if key not in OWN_TAGS} | _current_priority(tags, job),
        "statusReason": reason_of(job),
    }
    preempted = [_attempt(job, each, arns) for each in job["attempts"] if each["outcome"] == "preempted"]
    if preempted:
        count = len(preempted) + _earlier_preemptions(job)
        described["preemptionSummary"] = {"preemptedAttemptCount": count, "recentPreemptedAttempts": preempted[::-1]}
    return described | ({"timeoutConfig": {"attemptDurationSeconds": seconds}} if seconds else {})


def summary_of(job: JobView | JobDetailView, arns: Arns, name: str) -> dict[str, Any]:
    """Return the job's entry in the answer of ListServiceJobs, under its name at Batch."""
    attempt = newest_attempt(job)
    summary: dict[str, Any] = {
        "jobId": ID_PREFIX + job["jobName"],
        "jobArn": arns.of_job(job["jobName"]),
        "jobName": name,
        "serviceJobType": JOB_TYPE,
        "status": status_of(job),
        "statusReason": job.get("failureReason") or sentence_of(job),
        "shareIdentifier": job["share"],
        "quotaShareName": job["share"],
        **_times_of(job, attempt),
    }
    if attempt is not None:
        summary["latestAttempt"] = {"serviceResourceId": _training_job(job, attempt, arns)}
        if job["jobState"] not in ENDED:
            summary["capacityUsage"] = capacity_usage(attempt["units"], attempt["instanceType"])
    return summary | ({"isTerminated": True} if job["jobState"] in _TERMINATED else {})


def name_of(job: JobDetailView) -> str:
    """Return the name under which the job was submitted to Batch, which is that in the queue for other jobs."""
    tags = job["jobDetails"].get("Tags", ())
    given = next((str(tag["Value"]) for tag in tags if tag.get("Key") == NAME_TAG), None)
    return given or batch_name_of(job["jobName"]) or job["jobName"]


def reason_of(job: JobDetailView) -> str:
    """Return the reason of the job's status; of a terminated job the one that the caller gave, if any."""
    if job["jobState"] in _TERMINATED:
        lines = (line["reason"] or "" for line in reversed(job["history"]))
        line = next((line for line in lines if line.startswith(_BY_A_CALLER)), "")
        return line.partition(": ")[2] or line or sentence_of(job)
    return job.get("failureReason") or sentence_of(job)


def capacity_usage(units: Mapping[str, int], instance_type: str | None = None) -> list[dict[str, Any]]:
    """Return units of pools as Batch counts capacity: by instance type, which begins the usual names of pools."""
    by_type: dict[str, float] = {}
    for pool, count in units.items():
        found = _INSTANCE_TYPE.match(pool)
        unit = instance_type or (found[0] if found else pool)
        by_type[unit] = by_type.get(unit, 0.0) + count
    return [{"capacityUnit": unit, "quantity": quantity} for unit, quantity in by_type.items()]


def milliseconds(iso: str) -> int:
    """Return a time of the API in epoch milliseconds."""
    return round(parse_timestamp(iso).timestamp() * 1000)


def _is_launched(attempt: AttemptView, job: JobView | JobDetailView) -> bool:
    """Return whether SageMaker has the attempt's training job; a job that runs has one, whatever is stored of it."""
    is_running = job["jobState"] in STATES["RUNNING"] and attempt is job["attempts"][-1]
    return bool(attempt.get("launched") or attempt["startedAt"] or is_running)


def _training_job(job: JobView | JobDetailView, attempt: AttemptView, arns: Arns) -> dict[str, str]:
    """Return the ARN of an attempt's training job; the newest attempt may continue as another training job."""
    newest = job["trainingJobName"] if attempt is job["attempts"][-1] else None
    return {"name": "TrainingJobArn", "value": arns.of_training_job(newest or attempt["trainingJobName"])}


def _attempt(job: JobView | JobDetailView, attempt: AttemptView, arns: Arns) -> dict[str, Any]:
    times = {"startedAt": attempt["startedAt"], "stoppedAt": attempt["endedAt"]}
    return {
        "serviceResourceId": _training_job(job, attempt, arns),
        **_given_times(times),
        **({"statusReason": attempt["reason"]} if attempt["reason"] else {}),
    }


def _times_of(job: JobView | JobDetailView, attempt: AttemptView | None) -> dict[str, int]:
    ended = (attempt["endedAt"] if attempt else None) or job.get("endedAt")
    times = {
        "createdAt": job["entryTime"],
        "scheduledAt": attempt["createdAt"] if attempt else None,
        "startedAt": attempt["startedAt"] if attempt else None,
        "stoppedAt": ended if job["jobState"] in ENDED else None,
    }
    return _given_times(times)


def _given_times(times: Mapping[str, str | None]) -> dict[str, int]:
    return {member: milliseconds(time) for member, time in times.items() if time is not None}


def _capacity_of(job: JobDetailView) -> list[dict[str, Any]]:
    """Return the job's capacity: that of its newest attempt, or the first that it may get."""
    attempt = newest_attempt(job)
    if attempt is not None:
        return capacity_usage(attempt["units"], attempt["instanceType"])
    return capacity_usage(job["demand"][0] if job["demand"] else {})


def _retry_strategy(tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the retry strategy that gives these tags, so that a job may be submitted again as it is described."""
    retries = {RETRY_TAGS[tag]: int(tags[tag]) for tag in RETRY_TAGS if tags.get(tag, "").strip("0").isdigit()}
    rules = [{"action": "RETRY", "onStatusReason": f"{REASON_PREFIX}{word}*"} for word in retries]
    is_for_some = 0 < len(rules) < len(RETRY_TAGS)
    return {
        "attempts": min(1 + max(retries.values(), default=0), MAX_ATTEMPTS),
        "evaluateOnExit": [*rules, {"action": "EXIT", "onStatusReason": "*"}] if is_for_some else [],
    }


def _preemption_configuration(tags: Mapping[str, str]) -> dict[str, Any]:
    never = "0" if tags.get(PREEMPTIBLE_TAG) == "false" else None
    limit = tags.get(PREEMPTIONS_TAG, never)
    return {} if limit is None else {"preemptionConfiguration": {"preemptionRetriesBeforeTermination": int(limit)}}


def _current_priority(tags: Mapping[str, str], job: JobView | JobDetailView) -> dict[str, str]:
    return {PRIORITY_TAG: str(job["priority"])} if PRIORITY_TAG in tags else {}


def _earlier_preemptions(job: JobDetailView) -> int:
    earlier = job.get("earlierAttempts")
    return earlier["outcomes"].get("preempted", 0) if earlier else 0
