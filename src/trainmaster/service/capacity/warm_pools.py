"""Warm pools as SageMaker has them: ending those that are to end, forgetting those that are gone.

No event tells of a warm pool's end, so that it is asked about, by every pass where somebody may wait for it and by the
tick otherwise. It must not decide which are ended or used: that is `planner/`.
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
from trainmaster.planner.placement.warm_pools import stranded_warm_pools
from trainmaster.service.context import ManagerContext
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

MAX_LOOKS = 40
"""Warm pools that one pass asks about, or begins to end because their pool is being drained."""
IMPATIENT_FOR = timedelta(minutes=5)
"""After this long, only the tick asks whether one is gone that was to end."""
PERIOD = 5
"""Minutes after which one is asked about that nothing else calls for: it may have been ended elsewhere."""


def settle(context: ManagerContext, snapshot: Snapshot, *, tick: bool) -> Snapshot:
    """The snapshot with its warm pools as SageMaker has them now, as far as it was their turn. Raises `Fenced`."""
    now = context.clock.now()
    snapshot = _drained(context, snapshot, now)
    users = {job.attempt.training_job_name: job for job in snapshot.active if job.attempt is not None}
    due = [pool for pool in snapshot.warm if _is_due(pool, users, now, tick=tick)][:MAX_LOOKS]
    if not due:
        return snapshot
    before = {pool.training_job_name: pool for pool in snapshot.warm}
    told = {pool.training_job_name: stands for pool, stands in _asked(context, due, users)}
    changed = [pool for name, pool in told.items() if pool is not None and pool != before[name]]
    gone = [name for name, pool in told.items() if pool is None]
    if changed or gone:
        context.store.transition([], fence=snapshot.pass_number, warm=changed, ended_warm=gone)
    return replace(snapshot, warm=tuple(pool for pool in (before | told).values() if pool is not None))


def _drained(context: ManagerContext, snapshot: Snapshot, now: datetime) -> Snapshot:
    """The snapshot with those ending that are left over where pools are being drained. Raises `Fenced`."""
    ending = {
        pool.training_job_name: replace(pool, ending_since=now) for pool in stranded_warm_pools(snapshot)[:MAX_LOOKS]
    }
    if not ending:
        return snapshot
    context.store.transition([], fence=snapshot.pass_number, warm=list(ending.values()))
    return replace(snapshot, warm=tuple(ending.get(pool.training_job_name, pool) for pool in snapshot.warm))


def end(context: ManagerContext, pool: WarmPool) -> bool:
    """Have a warm pool ended that is to end; whether it is gone already. Raises `Throttled`, `Unavailable`."""
    try:
        context.launcher.end_warm_pool(pool.training_job_name)
    except NotPermitted as error:
        log.warning("may not end a warm pool", extra={"trainingJob": pool.training_job_name, "cause": str(error)})
        return False
    return _as_told(pool, context.launcher.describe(pool.training_job_name), used=False) is None


def used(pool: WarmPool, starting: Job) -> WarmPool:
    """The warm pool with the attempt that is started on it."""
    return replace(pool, used_by=lifecycle.current(starting).training_job_name)


def _is_due(pool: WarmPool, users: dict[str, Job], now: datetime, *, tick: bool) -> bool:
    if pool.ending_since is not None:
        return tick or now < pool.ending_since + IMPATIENT_FOR
    if pool.until <= now:
        return True
    if pool.used_by is not None:
        # Until its job is at work it cannot be told whether it runs there.
        user = users.get(pool.used_by)
        return user is None or (tick and user.attempt is not None and user.attempt.started_at is not None)
    minute = int(now.timestamp()) // 60
    return tick and (minute + sum(pool.training_job_name.encode())) % PERIOD == 0


def _asked(
    context: ManagerContext, due: Iterable[WarmPool], users: dict[str, Job]
) -> Iterable[tuple[WarmPool, WarmPool | None]]:
    """Each as it stands, None where it is gone; throttling ends the round, since asking on would make it worse."""
    for pool in due:
        name = pool.training_job_name
        try:
            with isolate_fault(name, context.faults):
                yield pool, _asked_of(context, pool, users)
        except Throttled as error:
            log.warning("SageMaker throttles; the next pass goes on", extra={"trainingJob": name, "cause": str(error)})
            return
        except (Unavailable, NotPermitted) as error:
            log.warning("cannot ask about a warm pool", extra={"trainingJob": name, "cause": str(error)})


def _asked_of(context: ManagerContext, pool: WarmPool, users: dict[str, Job]) -> WarmPool | None:
    """The warm pool as it stands, None where it is gone."""
    if pool.ending_since is not None:
        return None if end(context, pool) else pool
    return _as_told(pool, context.launcher.describe(pool.training_job_name), used=_is_starting(pool, users))


def _is_starting(pool: WarmPool, users: dict[str, Job]) -> bool:
    """Whether the attempt that is to run on it may not have got there yet."""
    user = users.get(pool.used_by or "")
    return user is not None and user.attempt is not None and user.attempt.started_at is None


def _as_told(pool: WarmPool, seen: Observation | None, *, used: bool) -> WarmPool | None:
    """The warm pool after SageMaker's answer; None where it has none any more.

    One that is still Available although its attempt is at work, or has ended, was not used: it counts again.
    """
    if seen is None or seen.warm in (Warm.NONE, Warm.REUSED, Warm.TERMINATED):
        return None
    return replace(pool, until=seen.warm_until or pool.until, used_by=pool.used_by if used else None)
