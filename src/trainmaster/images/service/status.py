"""Status messages about image jobs, with the words and attributes of ModelRunner's image status topic."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.events.types import EventType
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.images.domain.urls import without_secrets
from trainmaster.images.domain.work import image_work

STATUS = "image-status"
"""Name of the topic as a recipient of events."""
STATUSES = frozenset({EventType.STARTING, EventType.STARTED, EventType.RESUMED, EventType.ENDED})
"""Types of the events that have a status."""


class ImageStatus(StrEnum):
    """Statuses of an image (ModelRunner's `RequestStatus`)."""

    STARTED = "STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    PARTIAL = "PARTIAL"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


_TEXTS = {
    ImageStatus.STARTED: "Started image request",
    ImageStatus.IN_PROGRESS: "Processing regions",
    ImageStatus.SUCCESS: "Completed image processing",
}


def status_of(detail: Mapping[str, Any], job: Job | None) -> ImageStatus:
    """Return the status that an event of an image job tells; a job that a user stops has failed.

    Args:
        detail: of an event of a type in `STATUSES`.
        job: as stored now; None if it was purged.
    """
    if detail["type"] == EventType.STARTING:
        return ImageStatus.STARTED
    if detail["type"] != EventType.ENDED:
        return ImageStatus.IN_PROGRESS
    if detail["to"] == JobState.COMPLETED:
        return ImageStatus.SUCCESS
    work = None if job is None else image_work(job)
    some_done = detail["to"] == JobState.FAILED and work is not None and work.done > 0
    return ImageStatus.PARTIAL if some_done else ImageStatus.FAILED


def status_message(
    detail: Mapping[str, Any], job: Job | None, request: Mapping[str, Any]
) -> tuple[str, dict[str, str]]:
    """Return the text of a status message and its attributes, without those that are empty, as ModelRunner has them.

    Args:
        detail: of an event of a type in `STATUSES`.
        job: as stored now; None if it was purged.
        request: as submitted; empty if it was purged.
    """
    status, name = status_of(detail, job), detail["jobName"]
    text = _TEXTS.get(status) or detail["reason"]["message"]
    seconds = _seconds(detail, job)
    attributes = {
        "status": status.value,
        "job_id": name,
        "image_status": status.value,
        "image_id": ":".join([name, *map(without_secrets, request.get("imageUrls", ())[:1])]),
        **({"processing_duration": str(seconds)} if seconds else {}),
    }
    return f"StatusMonitor update: {status.value} {name}: {text}", attributes


def _seconds(detail: Mapping[str, Any], job: Job | None) -> int:
    """Return the whole seconds since the job's first start; 0 for a job that never started."""
    attempts = () if job is None else job.attempts
    if not attempts:
        return 0
    at = datetime.fromisoformat(detail["at"].replace("Z", "+00:00"))
    return max(0, int((at - attempts[0].created_at).total_seconds()))
