"""Apply the plan's changes to the manager's own pools: create, enlarge, shrink, remove.

All changes are one write of the settings, guarded by their version and by what the pass read: of two managers, or a
manager and a person, one wins. The same write appends them to the history. After a crash the pools simply exist, and
the next pass starts the jobs that wait for them.
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


def change_pools(context: ManagerContext, snapshot: Snapshot, plan: Plan) -> bool:
    """Apply the plan's changes of pools, all or none; return whether they were applied.

    Errors of AWS are logged and not raised: the plan's other decisions do not wait for this one.
    """
    decisions = plan.of_pools
    try:
        won = not decisions or _commit(context, snapshot, decisions)
    except (Throttled, Unavailable) as error:
        log.warning("could not change pools; the next pass retries", extra={"cause": str(error)})
        return False
    for decision in decisions:
        message = _message(decision) if won else "pools not changed: the settings changed meanwhile"
        log.info(message, extra=_log_fields(decision, snapshot))
    return won


def with_changed_pools(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot with the pools that the plan's changes result in; unchanged if it has none."""
    changes = plan.of_pools
    return replace(snapshot, pools=pools_after(snapshot.pools, changes)) if changes else snapshot


def with_pool_note(job: Job, units: Units, pools: Mapping[str, Pool], now: datetime) -> Job:
    """Return a starting job with a line in its history if one of its pools was made for it.

    It was if the job waited when the pool was made, since jobs that another pool could hold do not start there. The
    line is stored with the start, so it costs no write of its own.
    """
    for pool in (pools[name] for name in units if name in pools):
        made_at, tried_at = pool.made_at, None if job.attempt is None else job.attempt.created_at
        waited = made_at is not None and job.entry_time <= made_at and (tried_at is None or tried_at < made_at)
        if pool.made_for and waited:
            return lifecycle.record_pool_creation(job, now, f"{pool.cap} x {pool.instance_type}")
    return job


def _commit(context: ManagerContext, snapshot: Snapshot, decisions: Sequence[PoolDecision]) -> bool:
    """Store the pools; return False if the pools or their rules have changed since the pass read them."""
    stored = context.store.settings(catalogue=False)
    # A share may name a pool by now that is to be removed, and settings name no pool that does not exist.
    rules, seen = ((policy.expansion, policy.shares) for policy in (stored.policy, snapshot.policy))
    if dict(stored.pools) != in_settings(snapshot.pools) or rules != seen:
        return False
    pools = in_settings(pools_after(snapshot.pools, decisions))
    history = list(events(decisions, snapshot.pools, snapshot.catalogue, context.clock.now()))
    try:
        context.store.set_settings(pools=list(pools.values()), version=stored.version, events=history)
    except VersionConflict:
        return False
    return True


def _message(decision: PoolDecision) -> str:
    match decision:
        case Expand():
            return "pool created"
        case Retire():
            return "idle pool removed"
        case Shrink():
            return "pool shrunk"


def _log_fields(decision: PoolDecision, snapshot: Snapshot) -> dict[str, object]:
    pool = decision.pool
    common = {"pass": snapshot.pass_number, "pool": pool.name, "type": pool.instance_type, "cap": pool.cap}
    if not isinstance(decision, Retire):
        common |= {"for": pool.made_for, "jobs": len(decision.jobs)}
    if not isinstance(decision, Expand):
        return common | ({} if decision.idle_since is None else {"idle_since": decision.idle_since.isoformat()})
    return {**common, "dollars_per_hour": decision.dollars_per_hour}
