"""Track SageMaker's warm pools: end those that the plan ends, forget those that no longer exist.

No event reports a warm pool's end, so the queue polls: every pass while a job may wait for it, otherwise ticks. The
planner decides which are used or ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Warm
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.times import VISIBLE_AFTER, is_turn
from trainmaster.planner.placement.warm_pools import stranded_warm_pools
from trainmaster.service.context import ManagerContext
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

MAX_POLLED = 40
"""Warm pools that one pass polls, or begins to end because their pool drains."""
POLLED_BY_PASSES = timedelta(minutes=5)
"""After this time, only ticks poll a warm pool that is to end."""
PERIOD = 5
"""Minutes between two polls of a warm pool that nothing waits for; it may have been ended outside of the queue."""


def refresh(context: ManagerContext, snapshot: Snapshot, *, tick: bool) -> Snapshot:
    """Return the snapshot with the current state of the warm pools that are due. Raises `Fenced`."""
    if not snapshot.warm:
        return snapshot
    now = context.clock.now()
    snapshot = _end_drained(context, snapshot, now)
    users = {job.attempt.training_job_name: job for job in snapshot.active if job.attempt is not None}
    due = [pool for pool in snapshot.warm if _is_due(pool, users, now, tick=tick)][:MAX_POLLED]
    if not due:
        return snapshot
    before = {pool.training_job_name: pool for pool in snapshot.warm}
    polled = {pool.training_job_name: current for pool, current in _poll_all(context, due, users)}
    changed = [pool for name, pool in polled.items() if pool is not None and pool != before[name]]
    ended = [name for name, pool in polled.items() if pool is None]
    if changed or ended:
        context.store.transition([], fence=snapshot.pass_number, warm=changed, ended_warm=ended)
    return replace(snapshot, warm=tuple(pool for pool in (before | polled).values() if pool is not None))


def _end_drained(context: ManagerContext, snapshot: Snapshot, now: datetime) -> Snapshot:
    """Begin to end the warm pools that remain in draining pools; return the snapshot then. Raises `Fenced`."""
    stranded = stranded_warm_pools(snapshot)[:MAX_POLLED]
    ending = {pool.training_job_name: replace(pool, ending_since=now) for pool in stranded}
    if not ending:
        return snapshot
    context.store.transition([], fence=snapshot.pass_number, warm=list(ending.values()))
    return replace(snapshot, warm=tuple(ending.get(pool.training_job_name, pool) for pool in snapshot.warm))


def end(context: ManagerContext, pool: WarmPool) -> bool:
    """End a warm pool; return whether SageMaker reports that it has ended. Raises `Throttled`, `Unavailable`."""
    try:
        context.launcher.end_warm_pool(pool.training_job_name)
    except NotPermitted as error:
        log.warning("may not end a warm pool", extra={"trainingJob": pool.training_job_name, "cause": str(error)})
    return _updated(pool, context.launcher.describe(pool.training_job_name), used=False) is None


def used(pool: WarmPool, starting: Job) -> WarmPool:
    """Return the warm pool as used by the starting job's attempt."""
    return replace(pool, used_by=lifecycle.current(starting).training_job_name, unused_since=None)


def _is_due(pool: WarmPool, users: dict[str, Job], now: datetime, *, tick: bool) -> bool:
    if pool.ending_since is not None:
        return tick or now < pool.ending_since + POLLED_BY_PASSES
    if pool.until <= now:
        return True
    if pool.used_by is not None:
        # SageMaker tells whether a job runs on the warm pool only once the job runs.
        user = users.get(pool.used_by)
        if user is None:
            return tick or pool.unused_since is None
        return tick and user.attempt is not None and user.attempt.started_at is not None
    return tick and is_turn(pool.training_job_name, now, PERIOD)


def _poll_all(
    context: ManagerContext, due: Iterable[WarmPool], users: dict[str, Job]
) -> Iterable[tuple[WarmPool, WarmPool | None]]:
    """Yield each warm pool with its current state, None if it has ended; throttling ends the round."""
    for pool in due:
        name = pool.training_job_name
        try:
            with isolate_fault(name, context.faults):
                yield pool, _poll(context, pool, users)
        except Throttled as error:
            log.warning(
                "SageMaker throttles requests; the next pass continues",
                extra={"trainingJob": name, "cause": str(error)},
            )
            return
        except (Unavailable, NotPermitted) as error:
            log.warning("could not poll a warm pool", extra={"trainingJob": name, "cause": str(error)})


def _poll(context: ManagerContext, pool: WarmPool, users: dict[str, Job]) -> WarmPool | None:
    """Return the warm pool's current state, None if it has ended."""
    if pool.ending_since is not None:
        return None if end(context, pool) else pool
    now = context.clock.now()
    if pool.used_by is not None and pool.used_by not in users and pool.unused_since is None:
        pool = replace(pool, unused_since=now)
    return _updated(pool, context.launcher.describe(pool.training_job_name), used=_is_used(pool, users, now))


def _is_used(pool: WarmPool, users: dict[str, Job], now: datetime) -> bool:
    """Return whether an attempt may run on the pool, or have run on it, although SageMaker reports it as Available.

    The attempt may not have reached it yet, and Describe may be behind.
    """
    if pool.used_by is None:
        return False
    user = users.get(pool.used_by)
    since = pool.unused_since if user is None or user.attempt is None else user.attempt.started_at
    return since is None or now < since + VISIBLE_AFTER


def _updated(pool: WarmPool, seen: Observation | None, *, used: bool) -> WarmPool | None:
    """Return the warm pool as described, None if it has ended.

    A warm pool that is still Available although its attempt runs or has ended was not used: it serves others again.
    """
    if seen is None or seen.warm in (Warm.NONE, Warm.REUSED, Warm.TERMINATED):
        return None
    current = replace(pool, until=seen.warm_until or pool.until)
    return current if used else replace(current, used_by=None, unused_since=None)
