"""Carrying out what the plan decides about the manager's own pools: made, made larger, removed.

All of it is one write of the settings, guarded by their version and by what the pass has read, so that of two managers,
or of a manager and a person, one wins; the history of what was done is part of that write. After a crash the pools are
simply there, and the next pass starts what waits for them. It must not decide.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.capacity.pool_history import events
from trainmaster.domain.capacity.resolve import pools_after
from trainmaster.domain.capacity.units import Pool, Units, in_settings
from trainmaster.domain.errors import Throttled, Unavailable, VersionConflict
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Expand, Plan, PoolDecision, Retire, Shrink, Snapshot
from trainmaster.service.context import ManagerContext

log = logging.getLogger(__name__)


def carry_out(context: ManagerContext, snapshot: Snapshot, plan: Plan) -> bool:
    """Make and remove the pools of the plan, all or none; whether that won. The next pass tries again what has lost.

    Trouble at AWS is no reason to put off what else the plan has decided.
    """
    decided = plan.of_pools
    try:
        won = not decided or _commit(context, snapshot, decided)
    except (Throttled, Unavailable) as error:
        log.warning("could not change pools; the next pass tries again", extra={"cause": str(error)})
        return False
    for each in decided:
        log.info(_event(each) if won else "others were changing the pools", extra=_told(each, snapshot))
    return won


def with_note(job: Job, units: Units, pools: Mapping[str, Pool], now: datetime) -> Job:
    """A job that is about to start, its history telling that the pool was made for it; else as it is.

    It was, where the job waited when the pool was made: jobs that another pool could hold do not start there. Told with
    the start, it costs no write of its own, and no crash comes between.
    """
    for pool in (pools[name] for name in units if name in pools):
        made_at, tried_at = pool.made_at, None if job.attempt is None else job.attempt.created_at
        waited = made_at is not None and job.entry_time <= made_at and (tried_at is None or tried_at < made_at)
        if pool.made_for and waited:
            return lifecycle.pool_made(job, now, f"{pool.cap} x {pool.instance_type}")
    return job


def _commit(context: ManagerContext, snapshot: Snapshot, decided: Sequence[PoolDecision]) -> bool:
    """Whether nobody has changed the pools, or the rules by which they are made and go, since the pass read them."""
    now, pools = context.store.settings(catalogue=False), in_settings(pools_after(snapshot.pools, decided))
    noted = list(events(decided, snapshot.pools, snapshot.catalogue, context.clock.now()))
    # A share may name by now a pool that is to go, and settings name no pool that is not there.
    rules, seen = ((policy.expansion, policy.shares) for policy in (now.policy, snapshot.policy))
    if dict(now.pools) != in_settings(snapshot.pools) or rules != seen:
        return False
    try:
        context.store.set_settings(pools=list(pools.values()), version=now.version, events=noted)
    except VersionConflict:
        return False
    return True


def _event(decided: PoolDecision) -> str:
    match decided:
        case Expand():
            return "a pool is made"
        case Retire():
            return "a pool that nobody has used is removed"
        case Shrink():
            return "a pool gives what nobody uses"


def _told(decided: PoolDecision, snapshot: Snapshot) -> dict[str, object]:
    pool = decided.pool
    common = {"pass": snapshot.pass_number, "pool": pool.name, "type": pool.instance_type, "cap": pool.cap}
    if not isinstance(decided, Retire):
        common |= {"for": pool.made_for, "jobs": len(decided.jobs)}
    if not isinstance(decided, Expand):
        return common | ({} if decided.idle_since is None else {"idle_since": decided.idle_since.isoformat()})
    return {**common, "dollars_per_hour": decided.dollars_per_hour}


def applied(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot with the pools as they are once the plan's own have been carried out."""
    return replace(snapshot, pools=pools_after(snapshot.pools, plan.of_pools))
