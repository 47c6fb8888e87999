"""Names a job's training job and its log streams on AWS, and the command that prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmaster.client.kinds import is_training_job

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobDetailView


def training_job_facts(job: JobDetailView, region: str) -> list[tuple[str, str]]:
    """Return the ARN of the newest attempt, its log streams, and the command for the logs; empty before the first."""
    name = job["trainingJobName"]
    if not name or not is_training_job(job):
        return []
    from trainmaster.client.logs import LOG_GROUP

    return [
        ("Training Job", _arn(job, name, region)),
        ("Log Streams", f"{LOG_GROUP} {name}/algo-*"),
        ("Logs", f"trainmaster logs {job['jobName']}"),
    ]


def _arn(job: JobDetailView, name: str, region: str) -> str:
    """Return the ARN of a training job; only its name if the request's role tells no account."""
    from trainmaster.client.sdk.describe import arn_of

    try:
        return arn_of({**job["jobDetails"], "TrainingJobName": name}, region)
    except (KeyError, ValueError):
        return name
