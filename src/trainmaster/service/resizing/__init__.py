"""Carry out resizes of running jobs, one module for each kind of hook (`elastic.Hook`).

    restart.py   stop the attempt and continue as a new one
    members.py   add training jobs to the job's rendezvous, or drain and stop them
    custom.py    ask a Lambda function or an event's consumer, which answers
    speed.py     reports of how fast elastic jobs work
    contract.py  the request to such a function, and the effect of its answer

A resize is committed before its first step, and each step can be repeated: after a crash the next pass goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.lifecycle import current, elastic_of
from trainmaster.ports.resizing import ResizeHook
from trainmaster.service.context import ManagerContext
from trainmaster.service.resizing.custom import CustomHook
from trainmaster.service.resizing.members import SLACK, MembersHook
from trainmaster.service.resizing.restart import SIGTERM_TO_SIGKILL, RestartHook

__all__ = ["GROWTH_LIMIT", "advance", "until"]

GROWTH_LIMIT = timedelta(minutes=15)
"""Default of `MaxPendingTimeInSeconds`: a growth for which SageMaker has no capacity by then is given up."""
BELOW_MINIMUM_LIMIT = timedelta(minutes=8)
"""The same for a job that fell below its minimum: its nodes wait at least 10 minutes for a world (`worker/`)."""

_HOOKS: Mapping[Hook, Callable[[ManagerContext], ResizeHook]] = {
    Hook.RESTART: RestartHook,
    Hook.MEMBERS: MembersHook,
    Hook.CUSTOM: CustomHook,
}


def advance(context: ManagerContext, job: Job, *, retry: bool = True) -> Job:
    """Take the next step of an elastic job's hook, none for other jobs; return the job as stored then.

    Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    if job.elastic is None or not job.units:
        return job
    return _HOOKS[job.elastic.hook](context).advance(job, retry=retry)


def until(job: Job, size: int, now: datetime) -> datetime:
    """Return when a growth to this size is given up, or a shrink is forced."""
    elastic = elastic_of(job)
    if size > current(job).size:
        limit = job.max_pending or GROWTH_LIMIT
        # Below the minimum, nodes that wait for a world give up and fail.
        return now + (min(limit, BELOW_MINIMUM_LIMIT) if current(job).size < elastic.min_instances else limit)
    grace = SIGTERM_TO_SIGKILL if elastic.hook is Hook.RESTART else elastic.graceful_shutdown_timeout
    return now + grace + SLACK
