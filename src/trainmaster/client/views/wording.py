"""Says in one sentence what becomes of a job: for status messages, progress lines and logs.

It must not look anything up: all that it says is in the view that it is given.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobView, ReasonView

_OPENINGS = {
    "pending": "Waiting in the queue",
    "preempted": "Preempted, waiting in the queue to resume from its checkpoint",
    "held": "Held back in the queue until it is released",
    "starting": "Leaving the queue: SageMaker is asked to start the job",
    "running": "Running",
    "preempting": "Being preempted; it will resume from its checkpoint",
    "resizing": "Changing its size",
    "completed": "Completed",
    "failed": "Failed",
    "stopped": "Stopped",
    "cancelled": "Cancelled while it waited in the queue",
}
_OF_IMAGES = {
    "preempted": "Preempted, waiting in the queue to go on with the regions that are left",
    "starting": "Leaving the queue: its regions are dispatched",
    "preempting": "Being preempted; it will go on with the regions that are left",
}


def sentence_of(job: JobView) -> str:
    """The job's state and, while it waits, its position, estimated start and the reason for waiting."""
    image = job.get("image")
    openings = _OPENINGS if image is None else _OPENINGS | _OF_IMAGES
    parts = [openings.get(job["jobState"], job["jobState"]) + _size(job)]
    if image is not None and job["jobState"] not in ("pending", "held", "completed", "cancelled"):
        parts.append(regions_of(job))
    if job["jobState"] in ("pending", "preempted", "held"):
        parts += [_position(job), _start(job), _why(job.get("reason"))]
    if job["jobState"] == "failed":
        parts.append(job.get("failureReason") or "")
    return "; ".join(part for part in parts if part) + "."


def regions_of(job: JobView) -> str:
    """How far an image job's regions are: `12 of 30 regions done, 1 failed`; empty for other jobs."""
    image = job.get("image")
    if image is None:
        return ""
    regions = image["regions"]
    failed = f", {regions['failed']} failed" if regions["failed"] else ""
    return f"{regions['done']} of {regions['total']} regions done{failed}"


def tries(job: JobView) -> int:
    """How many attempts the job has had; not all of them may be listed."""
    return job["attempts"][-1]["number"] if job["attempts"] else 0


def _size(job: JobView) -> str:
    """How many instances an elastic job has, or is to have."""
    elastic = job.get("elastic")
    if not elastic or job["jobState"] not in ("running", "resizing"):
        return ""
    resizing = elastic["resizing"]
    if job["jobState"] == "resizing":
        return "" if not resizing else f" from {resizing['from']} to {resizing['to']} instances"
    size = elastic["size"]
    return f" with {size} instance{'s' if size > 1 else ''}" if size else ""


def _position(job: JobView) -> str:
    if job.get("position") is not None:
        return f"position {job['position']}"
    least = job.get("positionAtLeast")
    return f"position {least} or later" if least is not None else ""


def _start(job: JobView) -> str:
    start, low, high = (job.get(key) for key in ("estimatedStart", "estimatedStartLow", "estimatedStartHigh"))
    if not isinstance(start, str):
        return ""
    known = isinstance(low, str) and isinstance(high, str) and low != high
    return f"estimated start {_stamp(start)} UTC" + (f" ({_stamp(str(low))} to {_stamp(str(high))})" if known else "")


def _stamp(iso: str) -> str:
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S}"


def _why(reason: ReasonView | None) -> str:
    return reason["message"].rstrip(".") if reason else ""
