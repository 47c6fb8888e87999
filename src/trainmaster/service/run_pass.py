"""One run of the manager: read, plan, act.

Fenced: a pass that another has overtaken commits nothing more. Each decision is one guarded transaction; only what
won is carried out at SageMaker. It must not decide: that is `planner.schedule`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from dataclasses import replace
from operator import is_

from trainmaster.domain.capacity.units import total
from trainmaster.domain.capacity.warm_pools import counting, left_by
from trainmaster.domain.errors import Fenced
from trainmaster.domain.jobs.job import ACTIVE, WAITING, Job
from trainmaster.domain.plan import Plan, Snapshot
from trainmaster.domain.reasons.capacity import NextPass
from trainmaster.planner.schedule import schedule
from trainmaster.service import dependencies
from trainmaster.service.apply_plan import PassReport, carry_out
from trainmaster.service.capacity import expansion, warm_pools
from trainmaster.service.capacity.external import find_external_jobs
from trainmaster.service.capacity.refresh import record_checkpoints, refresh_training_plans, update_reclaim_times
from trainmaster.service.context import ManagerContext
from trainmaster.service.reconcile import poll_due_jobs, resume_unfinished

log = logging.getLogger(__name__)


def run_pass(context: ManagerContext, *, tick: bool = False) -> PassReport:
    """Read, plan, act.

    Args:
        context: store, launcher, clock.
        tick: whether the minute's checks are due: silent jobs and foreign jobs.

    Raises `ServiceTrouble` where even reading failed; then nothing was decided.
    """
    faults: list[str] = []
    if tick:
        dependencies.enqueue_due(context.store, context.clock.now(), faults)
    snapshot = context.store.begin_pass()
    report = PassReport(snapshot.pass_number, faults=faults)
    context = replace(context, policy=snapshot.policy, pools=snapshot.pools, faults=faults)
    try:
        snapshot = report.snapshot = _reconciled(context, snapshot, tick=tick)
        report.plan = schedule(snapshot, context.clock.now(), random.Random(snapshot.pass_number))  # noqa: S311 -- spreads choices, guards nothing
        snapshot = _change_pools(context, snapshot, report)
        carry_out(replace(context, pools=snapshot.pools), report)
    except Fenced:
        report.fenced = True
        log.info("a later pass has begun", extra={"pass": report.pass_number})
    report.more_to_do = _more_to_do(snapshot, report)
    if tick and dependencies.sweep_is_due(context.clock.now()):
        report.more_to_do |= dependencies.sweep(context.store, snapshot, context.clock.now(), faults)
    return report


def _reconciled(context: ManagerContext, snapshot: Snapshot, *, tick: bool) -> Snapshot:
    """The snapshot after what earlier passes left undone, and after the minute's looks. Raises `Fenced`."""
    snapshot = replace(snapshot, pools=refresh_training_plans(context, snapshot.pools, tick=tick))
    if tick:
        snapshot = replace(snapshot, foreign=find_external_jobs(context, snapshot))
    snapshot = _up_to_date(snapshot, resume_unfinished(context, snapshot.active))
    if tick:
        snapshot = _up_to_date(snapshot, update_reclaim_times(context, snapshot))
        snapshot = _up_to_date(snapshot, poll_due_jobs(context, snapshot.active))
        snapshot = _up_to_date(snapshot, record_checkpoints(context, snapshot.active))
    return warm_pools.settle(context, snapshot, tick=tick)


def _up_to_date(snapshot: Snapshot, jobs: Iterable[Job]) -> Snapshot:
    """The snapshot after checks have moved some of its active jobs."""
    moved = list(jobs)
    if all(map(is_, moved, snapshot.active)) and len(moved) == len(snapshot.active):
        return snapshot
    names = {job.name for job in moved}
    before = {job.name: job for job in snapshot.active}
    left = (left_by(before[job.name], job) for job in moved)
    return replace(
        snapshot,
        warm=(*snapshot.warm, *(pool for pool in left if pool is not None)),
        active=tuple(job for job in moved if job.state in ACTIVE),
        waiting=(
            *(job for job in snapshot.waiting if job.name not in names),
            *(job for job in moved if job.state in WAITING),
        ),
    )


def _change_pools(context: ManagerContext, snapshot: Snapshot, report: PassReport) -> Snapshot:
    """Make and remove the manager's own pools; the snapshot with the pools as they are then."""
    if not expansion.carry_out(context, snapshot, report.plan):
        report.conflicts += 1
        return snapshot
    report.created_pools = [each.pool.name for each in report.plan.expansions]
    report.removed_pools = [each.pool.name for each in report.plan.retirements]
    return expansion.applied(snapshot, report.plan)


def _more_to_do(snapshot: Snapshot, report: PassReport) -> bool:
    """Whether this pass stopped for its own bounds, not because nothing more could be done."""
    if report.fenced or report.throttled:
        return False
    cut_short = any(isinstance(wait.reason, NextPass) for wait in report.plan.waits)
    return cut_short or report.freed_warm_pool or _room_for_unread(snapshot, report.plan)


def _room_for_unread(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether jobs that were not read might start: their lane has started some, and its pools still have room."""
    lanes = [start.job for start in plan.starts if start.job.lane in snapshot.cut_lanes]
    if not lanes:
        return False
    kept = (pool.units for pool in counting(snapshot.warm, snapshot.active))
    held_now = (job.units for job in snapshot.active)
    used = total([snapshot.foreign, *kept, *held_now, *(start.units for start in plan.starts if start.warm is None)])
    room = {name for name, pool in snapshot.pools.items() if used.get(name, 0) < pool.cap}
    return any(room.intersection(job.demand.pools) for job in lanes)
