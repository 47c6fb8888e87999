"""Describes a job's state in one sentence, for status messages, progress lines and logs."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING

from trainmaster.client.kinds import kind_wording
from trainmaster.client.views.moments import stamp, stamp_with_zone
from trainmaster.domain.compat import UTC
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobView, ReasonView

_STATES = {
    "pending": "Waiting in the queue",
    "preempted": "Preempted, waiting in the queue to resume from its checkpoint",
    "held": "Held in the queue until it is released",
    "starting": "Starting: the queue asks SageMaker to start the job",
    "running": "Running",
    "preempting": "Being preempted; it will resume from its checkpoint",
    "resizing": "Resizing",
    "completed": "Completed",
    "failed": "Failed",
    "stopped": "Stopped",
    "cancelled": "Cancelled while waiting in the queue",
}

_OUTSIDE = "Not in the queue yet"


def sentence_of(job: JobView, zone: tzinfo | None = UTC) -> str:
    """Return the job's state and, if it waits, its position, estimated start and reason for waiting.

    The estimated start is in the zone. The sentence is one line without control characters: SDKs print it.
    """
    kind = kind_wording(job)
    states = _STATES if kind is None else {**_STATES, **kind.STATES}
    if job["jobState"] == "held" and enters_by_itself(job.get("reason")):
        states = {**states, "held": _OUTSIDE}
    elif job["jobState"] == "held" and _reason_text(job.get("reason")).startswith("held by "):
        return one_line(f"Held{_reason_text(job.get('reason')).removeprefix('held')}.")
    parts = [states.get(job["jobState"], job["jobState"]) + _size(job)]
    if kind is not None and job["jobState"] not in ("pending", "held", "completed", "cancelled"):
        parts.append(kind.progress(job))
    if job["jobState"] in ("pending", "preempted", "held"):
        parts += [_position(job), _start(job, zone), _reason_text(job.get("reason"))]
    if job["jobState"] == "failed":
        parts.append(job.get("failureReason") or "")
    return one_line("; ".join(part for part in parts if part)) + "."


def enters_by_itself(reason: ReasonView | None) -> bool:
    """Return whether the reason of a held job passes without a person: it waits for a time, or for other jobs."""
    from trainmaster.domain.reasons import REASONS

    known = REASONS.get(reason["type"]) if reason else None
    return known is not None and known.outside_queue


def attempt_count(job: JobView) -> int:
    """Return the number of the job's attempts, including those that are not listed."""
    return job["attempts"][-1]["number"] if job["attempts"] else 0


def _size(job: JobView) -> str:
    """Return the size of an elastic job, or the sizes between which it is resizing."""
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
    minimum = job.get("positionAtLeast")
    return f"position {minimum} or later" if minimum is not None else ""


def _start(job: JobView, zone: tzinfo | None) -> str:
    start, low, high = (job.get(key) for key in ("estimatedStart", "estimatedStartLow", "estimatedStartHigh"))
    if not isinstance(start, str):
        return ""
    has_range = isinstance(low, str) and isinstance(high, str) and low != high
    return f"estimated start {stamp_with_zone(start, zone)}" + (
        f" ({stamp(str(low), zone)} to {stamp(str(high), zone)})" if has_range else ""
    )


def _reason_text(reason: ReasonView | None) -> str:
    return reason["message"].rstrip(".") if reason else ""
