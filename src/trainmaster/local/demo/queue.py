"""What the demonstration asks the running stack: the jobs in the queue, and what each attempt counted.

It must only read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trainmaster.local.stack.address import StackAddress
from trainmaster.local.stack.signed import client, get

Row = dict[str, Any]
"""A job as the API shows it."""
_ENDED = frozenset({"completed", "failed", "stopped", "cancelled"})
_LOGS = "/aws/sagemaker/TrainingJobs"
_STEP = re.compile(r"step (\d+) of \d+")


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of a running stack."""

    address: StackAddress

    def jobs(self) -> list[Row]:
        """Jobs that have not ended, as the article's `print_queue_state` orders them: by priority, then by entry."""
        known: list[Row] = self._ask("/jobs")["jobs"]
        return sorted((job for job in known if job["jobState"] not in _ENDED), key=_priority_then_entry)

    def job(self, name: str) -> Row:
        """One job with its attempts."""
        return self._ask(f"/jobs/{name}")

    def steps(self, training_job: str) -> tuple[int, int] | None:
        """First and last step that an attempt counted, by its log; None if it counted none."""
        logs = client("logs", self.address.aws_endpoint)
        streams = logs.describe_log_streams(logGroupName=_LOGS, logStreamNamePrefix=f"{training_job}/")["logStreams"]
        lines = [
            event["message"]
            for stream in streams
            for event in logs.get_log_events(
                logGroupName=_LOGS, logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        ]
        steps = [int(found[1]) for line in lines if (found := _STEP.fullmatch(line))]
        return (min(steps), max(steps)) if steps else None

    def _ask(self, path: str) -> Row:
        answer = get(self.address.api_url + path)
        answer.raise_for_status()
        found: Row = answer.json()
        return found


def _priority_then_entry(job: Row) -> tuple[int, str, str]:
    return -job["priority"], job["entryTime"], job["jobName"]
