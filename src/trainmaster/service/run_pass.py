"""Run one pass of the manager: read a snapshot, reconcile it with SageMaker, schedule, apply the plan.

A pass is fenced: once a later pass has begun, it commits nothing more. `planner.schedule` decides; each decision is
then committed in a transaction of its own, and only committed decisions are carried out at SageMaker.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.capacity.reported_quotas import quota_bounds, with_quotas
from trainmaster.domain.capacity.units import total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.errors import Fenced
from trainmaster.domain.plan import Plan, Snapshot
from trainmaster.domain.reasons.capacity import NextPass
from trainmaster.planner.schedule import schedule
from trainmaster.service import dependencies
from trainmaster.service.apply_plan import PassReport, apply_plan
from trainmaster.service.auditing.retention import purge_expired, purge_is_due
from trainmaster.service.context import ManagerContext, pass_rng
from trainmaster.service.events.budgets import publish_thresholds
from trainmaster.service.reconcile import reconcile
from trainmaster.service.throttling import ThrottledVerbs

log = logging.getLogger(__name__)


def run_pass(context: ManagerContext, *, tick: bool = False) -> PassReport:
    """Run one pass and report what it did.

    Args:
        context: the manager's dependencies.
        tick: whether this pass also makes the checks that are due every minute.

    Raises `ServiceError` if the snapshot cannot be read; nothing is decided then.
    """
    faults: list[str] = []
    if tick:
        dependencies.enqueue_due(context.store, context.clock.now(), faults)
    snapshot = context.store.begin_pass()
    faults.extend(snapshot.unreadable)
    report = PassReport(snapshot.pass_number, faults=faults)
    context = replace(
        context,
        policy=snapshot.policy,
        pools=snapshot.pools,
        launcher=ThrottledVerbs(context.launcher),
        faults=faults,
        orphans=report.orphans,
    )
    try:
        snapshot = report.snapshot = reconcile(context, snapshot, tick=tick)
        report.plan = schedule(snapshot, context.clock.now(), pass_rng(snapshot))
        snapshot = apply_plan(context, snapshot, report)
        publish_thresholds(context, snapshot)
    except Fenced:
        report.fenced = True
        log.info("a later pass has begun", extra={"pass": report.pass_number})
    report.more_to_do = _more_to_do(snapshot, report, context.clock.now())
    if tick and dependencies.sweep_is_due(context.clock.now()):
        report.more_to_do |= dependencies.sweep(context.store, snapshot, context.clock.now(), faults)
    if tick and purge_is_due(context.clock.now()):
        purge_expired(context.store, context.clock.now(), context.job_retention, faults)
    return report


def _more_to_do(snapshot: Snapshot, report: PassReport, now: datetime) -> bool:
    """Return whether another pass would act at once: this one stopped at a limit of its own."""
    if report.fenced or report.throttled:
        return False
    cut_short = NextPass in {type(wait.reason) for wait in report.plan.waits}
    return cut_short or report.freed_warm_pool or report.refused or _unread_jobs_may_start(snapshot, report.plan, now)


def _unread_jobs_may_start(snapshot: Snapshot, plan: Plan, now: datetime) -> bool:
    """Return whether a lane that was not read to its end started jobs while its pools still have free units."""
    started = [start.job for start in plan.starts if start.job.lane in snapshot.cut_lanes]
    if not started:
        return False
    warm = (pool.units for pool in counting(snapshot.warm, snapshot.active))
    active = (job.units for job in snapshot.active)
    starting = (start.units for start in plan.starts if start.warm is None)
    used = total([snapshot.external, *warm, *active, *starting])
    pools = with_quotas(snapshot.pools, quota_bounds(snapshot.pools, snapshot.catalogue, now))
    free = {name for name, pool in pools.items() if used.get(name, 0) < pool.cap}
    return any(free.intersection(job.demand.pools) for job in started)
