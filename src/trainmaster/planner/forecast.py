"""When a waiting job will start at the latest: the same planner, run forward over the jobs' time limits.

Every running job is taken to use its whole `MaxRuntimeInSeconds`, and nothing new to arrive; most jobs end
earlier, so most starts come earlier, and a later arrival of higher priority may put one off. It must not use any
rule of its own: each step is `schedule` and the life cycle's own transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.domain import lifecycle
from trainmaster.domain.job import WAITING, Job
from trainmaster.domain.observation import Observation, Status
from trainmaster.domain.plan import Plan, Snapshot

if TYPE_CHECKING:
    from random import Random

STOP_TAKES = timedelta(minutes=3)
"""SIGTERM, 120 s of grace, upload (SageMaker API, StopTrainingJob): what a stop takes when all goes well."""
OVERDUE = timedelta(minutes=1)
"""How soon a job is taken to end that should have ended already."""
MOST_WORK = 100_000
"""Bound on jobs looked at over all steps, so that an answer never waits for a deep queue."""

Scheduler = Callable[[Snapshot, datetime, "Random"], Plan]


def forecast(
    snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
) -> Mapping[str, datetime]:
    """Latest start of each wanted job; one that is missing could not be foreseen within the bound.

    Args:
        snapshot: the queue as read.
        now: UTC.
        rng: handed to the planner.
        schedule: the planner.
        wanted: names of waiting jobs.
    """
    starts: dict[str, datetime] = {}
    moment, work = now, 0
    while wanted - starts.keys() and work < MOST_WORK:
        work += 10 + len(snapshot.waiting) + len(snapshot.active)
        plan = schedule(snapshot, moment, rng)
        starts.update({d.job.name: moment for d in plan.starts if d.job.name in wanted and d.job.name not in starts})
        snapshot = _carried_out(snapshot, plan, moment)
        upcoming = [_ends(job, moment) for job in snapshot.active]
        upcoming += [job.retry_at for job in snapshot.waiting if job.retry_at is not None and job.retry_at > moment]
        if not upcoming:
            break
        moment = min(upcoming) if min(upcoming) > moment else moment + OVERDUE
        snapshot = _ended(snapshot, moment)
    return starts


def _carried_out(snapshot: Snapshot, plan: Plan, now: datetime) -> Snapshot:
    """The snapshot as it would be if the plan had been carried out at once."""
    active = {job.name: job for job in snapshot.active}
    waiting = {job.name: job for job in snapshot.waiting}
    for start in plan.starts:
        del waiting[start.job.name]
        active[start.job.name] = _running(lifecycle.start(start.job, start.units, start.choices, now), now)
    for preemption in plan.preemptions:
        waiting[preemption.job.name] = lifecycle.keep_for(waiting[preemption.job.name], preemption.hold)
        for victim in preemption.victims:
            active[victim.name] = lifecycle.preempt(active[victim.name], preemption.job.name, now)
    return replace(snapshot, active=tuple(active.values()), waiting=tuple(waiting.values()))


def _running(job: Job, now: datetime) -> Job:
    return _after(job, Status.IN_PROGRESS, now) or job


def _ended(snapshot: Snapshot, now: datetime) -> Snapshot:
    """The snapshot after all that ends by now has ended."""
    still = [job for job in snapshot.active if _ends(job, now) > now]
    ended = [job for job in snapshot.active if _ends(job, now) <= now]
    stopped = (_after(job, Status.STOPPED, now) for job in ended if job.stopping)
    back = [job for job in stopped if job is not None and job.state in WAITING]
    return replace(snapshot, active=tuple(still), waiting=(*snapshot.waiting, *back))


def _after(job: Job, status: Status, now: datetime) -> Job | None:
    name = "" if job.attempt is None else job.attempt.training_job_name
    secondary = "Training" if status is Status.IN_PROGRESS else ""
    return lifecycle.observe(job, Observation(training_job_name=name, status=status, secondary=secondary), now)


def _ends(job: Job, now: datetime) -> datetime:
    """When an active job frees its capacity at the latest; in the past only when `now` has reached it."""
    attempt = job.attempt
    if attempt is None:
        return now
    if attempt.stop_asked_at is not None:
        return attempt.stop_asked_at + STOP_TAKES
    return (attempt.started_at or attempt.created_at) + job.max_runtime
