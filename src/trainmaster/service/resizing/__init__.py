"""How the size of a running job changes, one module for each way (`elastic.Hook`).

    restart.py   it stops, and goes on as a new attempt
    members.py   training jobs join its group, or leave it first and are stopped then
    custom.py    somebody else does it, and answers
    contract.py  what somebody else is asked, and what an answer does

A resize is committed before anything is done, and every step of it can be repeated: after a crash the next pass goes
on. They must not decide on a size.
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
"""A growth that has not come by then is given up, unless the job's own `MaxPendingTimeInSeconds` says otherwise."""

_HOOKS: Mapping[Hook, Callable[[ManagerContext], ResizeHook]] = {
    Hook.RESTART: RestartHook,
    Hook.MEMBERS: MembersHook,
    Hook.CUSTOM: CustomHook,
}


def advance(context: ManagerContext, job: Job) -> Job:
    """Do what comes next for a job that holds capacity, nothing for one that is not elastic; the job as it stands.

    Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    if job.elastic is None or not job.units:
        return job
    return _HOOKS[job.elastic.hook](context).advance(job)


def until(job: Job, size: int, now: datetime) -> datetime:
    """When a growth to this size is given up, or a shrink goes on by force."""
    elastic = elastic_of(job)
    if size > current(job).size:
        return now + (job.max_pending or GROWTH_LIMIT)
    grace = SIGTERM_TO_SIGKILL if elastic.hook is Hook.RESTART else elastic.graceful_shutdown_timeout
    return now + grace + SLACK
