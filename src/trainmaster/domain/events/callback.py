"""The callback of a job: the execution of an orchestrator that waits for its end, and the token that answers it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.domain.errors import InvalidRequest

TASK, STEP = "task", "step"
"""Recipients of a job's end: a task of Step Functions, and a callback step of SageMaker Pipelines."""
MAX_TOKEN = 2_048
"""Characters of a token (Step Functions API, `taskToken`)."""
MIN_INTERVAL, MAX_INTERVAL = 60, 300
"""Seconds between two heartbeats: the tick sends them, and a stopped execution is noticed by them."""

_STEM, _DIGITS = 40, 16


@dataclass(frozen=True, slots=True)
class Callback:
    """The callback of a job, until its end is delivered.

    Attributes:
        job: the name of the job.
        recipient: `TASK` or `STEP`.
        token: answers the execution that waits; a secret.
        interval: seconds between two heartbeats; 0 for none.
        due: when the next heartbeat is sent; None without heartbeats.
        version: increases by one with every change, and guards it.
    """

    job: str
    recipient: str
    token: str
    interval: int = 0
    due: datetime | None = None
    version: int = 1

    def after_heartbeat(self, now: datetime) -> Callback:
        """Return the callback with its next heartbeat."""
        return replace(self, due=now + timedelta(seconds=self.interval), version=self.version + 1)


def task_callback(job: str, token: str, now: datetime, heartbeat: int | None) -> Callback:
    """Return the callback of a task of Step Functions.

    Half of the task's `HeartbeatSeconds` pass between two heartbeats, so that one may fail.

    Raises `InvalidRequest` for a `HeartbeatSeconds` that a tick each minute cannot keep.
    """
    if heartbeat is not None and heartbeat < 2 * MIN_INTERVAL:
        raise InvalidRequest(
            f"The queue sends heartbeats once a minute at most, and HeartbeatSeconds is {heartbeat}.",
            field="HeartbeatSeconds",
            hint=f"Set HeartbeatSeconds of the state to {2 * MIN_INTERVAL} or more, or omit it.",
        )
    interval = MIN_INTERVAL if heartbeat is None else min(heartbeat // 2, MAX_INTERVAL)
    return Callback(job, TASK, token, interval, now + timedelta(seconds=interval))


def earliest_due(callbacks: Iterable[Callback], now: datetime) -> tuple[Callback, ...]:
    """Return the callbacks whose heartbeats are due, the earliest first."""
    due = [(each.due, each.job, each) for each in callbacks if each.due is not None and each.due <= now]
    return tuple(each for _, _, each in sorted(due, key=lambda found: found[:2]))


def name_of_job(stem: str, execution: str) -> str:
    """Return a name for the job of an execution whose request has none: a readable stem, and a digest.

    The name depends on both texts alone, so that a repeated submission finds its job.
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", stem)[:_STEM].strip("-")
    return f"{readable or 'job'}-{hashlib.sha256(execution.encode()).hexdigest()[:_DIGITS]}"
