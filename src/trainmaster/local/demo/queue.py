"""What the demonstration asks the running stack: the jobs in the queue, and what each attempt has printed.

It must not change anything but what it is told to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trainmaster.local.stack.address import StackAddress
from trainmaster.local.stack.signed import client, get, send

Row = dict[str, Any]
"""A job as the API shows it."""
ENDED = frozenset({"completed", "failed", "stopped", "cancelled"})
_LOGS = "/aws/sagemaker/TrainingJobs"
_STEP = re.compile(r"step (\d+) of \d+")


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of a running stack."""

    address: StackAddress

    def jobs(self) -> list[Row]:
        """Jobs that have not ended, as the article's `print_queue_state` orders them: by priority, then by entry."""
        known: list[Row] = self._get("/jobs")["jobs"]
        return sorted((job for job in known if job["jobState"] not in ENDED), key=_priority_then_entry)

    def job(self, name: str) -> Row:
        """One job with its attempts."""
        return self._get(f"/jobs/{name}")

    def steps(self, training_job: str) -> tuple[int, int] | None:
        """First and last step that an attempt counted, by its log; None if it counted none."""
        lines = self.lines(f"{training_job}/")
        steps = [int(found[1]) for _, line in lines if (found := _STEP.fullmatch(line))]
        return (min(steps), max(steps)) if steps else None

    def lines(self, prefix: str) -> list[tuple[float, str]]:
        """What training jobs whose names begin like this have printed, with the seconds since 1970."""
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
        """The training jobs whose names begin like this, as SageMaker describes them."""
        sagemaker = client("sagemaker", self.address.sagemaker_endpoint)
        listed = sagemaker.list_training_jobs(NameContains=prefix, MaxResults=100)["TrainingJobSummaries"]
        names = [each["TrainingJobName"] for each in listed if each["TrainingJobName"].startswith(prefix)]
        return [sagemaker.describe_training_job(TrainingJobName=name) for name in names]

    def submit(self, request: Row) -> None:
        """Put a request into the queue. Raises httpx.HTTPStatusError where it is refused."""
        send("POST", f"{self.address.api_url}/add-job", request).raise_for_status()

    def change_settings(self, settings: Row) -> None:
        """Change settings of the queue. Raises httpx.HTTPStatusError where they are refused."""
        send("PUT", f"{self.address.api_url}/settings", settings).raise_for_status()

    def _get(self, path: str) -> Row:
        answer = get(self.address.api_url + path)
        answer.raise_for_status()
        found: Row = answer.json()
        return found


def _priority_then_entry(job: Row) -> tuple[int, str, str]:
    return -job["priority"], job["entryTime"], job["jobName"]
