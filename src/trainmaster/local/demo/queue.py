"""Client of the demo for the running stack: jobs in the queue, logs and training jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trainmaster.local.stack.address import StackAddress
from trainmaster.local.stack.signed import client, get, send

Row = dict[str, Any]
"""A job as the API returns it."""
ENDED = frozenset({"completed", "failed", "stopped", "cancelled"})
_LOGS = "/aws/sagemaker/TrainingJobs"
_STEP = re.compile(r"step (\d+) of \d+")


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of a running stack."""

    address: StackAddress

    def jobs(self) -> list[Row]:
        """Return the jobs that have not ended, by priority and then by time of entry, as in the article."""
        known: list[Row] = self._get("/jobs")["jobs"]
        return sorted((job for job in known if job["jobState"] not in ENDED), key=_priority_then_entry)

    def job(self, name: str) -> Row:
        """Return one job with its attempts."""
        return self._get(f"/jobs/{name}")

    def steps(self, training_job: str) -> tuple[int, int] | None:
        """Return the first and the last step in the log of an attempt; None if it has none."""
        lines = self.lines(f"{training_job}/")
        steps = [int(found[1]) for _, line in lines if (found := _STEP.fullmatch(line))]
        return (min(steps), max(steps)) if steps else None

    def lines(self, prefix: str) -> list[tuple[float, str]]:
        """Return the log lines of training jobs with this name prefix, with their seconds since 1970."""
        logs = client("logs", self.address.aws_endpoint)
        try:
            streams = logs.describe_log_streams(logGroupName=_LOGS, logStreamNamePrefix=prefix)["logStreams"]
        except logs.exceptions.ResourceNotFoundException:
            return []
        return [
            (event["timestamp"] / 1000, event["message"])
            for stream in streams
            for event in logs.get_log_events(
                logGroupName=_LOGS, logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        ]

    def training_jobs(self, prefix: str) -> list[Row]:
        """Describe the training jobs with this name prefix."""
        sagemaker = client("sagemaker", self.address.sagemaker_endpoint)
        listed = sagemaker.list_training_jobs(NameContains=prefix, MaxResults=100)["TrainingJobSummaries"]
        names = [each["TrainingJobName"] for each in listed if each["TrainingJobName"].startswith(prefix)]
        return [sagemaker.describe_training_job(TrainingJobName=name) for name in names]

    def submit(self, request: Row) -> None:
        """Submit a request. Raises httpx.HTTPStatusError if the queue refuses it."""
        send("POST", f"{self.address.api_url}/add-job", request).raise_for_status()

    def change_settings(self, settings: Row) -> None:
        """Change settings of the queue. Raises httpx.HTTPStatusError if the queue refuses them."""
        send("PUT", f"{self.address.api_url}/settings", settings).raise_for_status()

    def _get(self, path: str) -> Row:
        answer = get(self.address.api_url + path)
        answer.raise_for_status()
        found: Row = answer.json()
        return found


def _priority_then_entry(job: Row) -> tuple[int, str, str]:
    return -job["priority"], job["entryTime"], job["jobName"]
