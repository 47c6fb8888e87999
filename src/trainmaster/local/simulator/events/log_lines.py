"""Lines of training jobs' logs, for CloudWatch Logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

LOG_GROUP = "/aws/sagemaker/TrainingJobs"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a script's output."""

    group: str
    stream: str
    at: datetime
    text: str


LogSink = Callable[[LogLine], None]


def stream_of(name: str, host: str, start: datetime) -> str:
    """Return the name of an instance's log stream in a run of a job that began at this time."""
    return f"{name}/{host}-{int(start.timestamp())}"
