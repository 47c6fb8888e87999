"""One run of the manager: read, plan, act.

Fenced: a pass that another has overtaken commits nothing more. Each decision is one guarded transaction; only what
won is carried out at SageMaker. It must not decide: that is `planner.schedule`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import is_

from trainmaster.domain import lifecycle
from trainmaster.domain.capacity import reclaimed_at, total
from trainmaster.domain.errors import Fenced, NotPermitted, Throttled, Unavailable
from trainmaster.domain.job import ACTIVE, WAITING, Job
from trainmaster.domain.plan import EndWarm, Plan, Preempt, Snapshot, Start
from trainmaster.domain.reasons import NextPass
from trainmaster.domain.warm import counting, left_by
from trainmaster.planner.schedule import schedule
from trainmaster.service import expansion, held, warm
from trainmaster.service.capacity import keep_time, look_for_checkpoints, refresh_plans
from trainmaster.service.foreign import note_foreign
from trainmaster.service.launch import Hands, check_silent, finish_unfinished, launch, stop

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PassReport:
    """What a pass did.

    Attributes:
        pass_number: its fence.
        fenced: whether a later pass overtook it.
        made: pools that were made or made larger.
        retired: pools that were removed.
        cooled: the training jobs whose warm pools were to end.
        gone: whether any of those is gone already.
        again: whether another pass would find more to do at once.
    """

    pass_number: int
    plan: Plan = field(default_factory=Plan)
    started: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    cooled: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    lost: int = 0
    fenced: bool = False
    throttled: bool = False
    gone: bool = False
    again: bool = False


def run_pass(hands: Hands, *, tick: bool = False) -> PassReport:
    """Read, plan, act.

    Args:
        hands: store, launcher, clock.
        tick: whether the minute's checks are due: silent jobs and foreign jobs.

    Raises `ServiceTrouble` where even reading failed; then nothing was decided.
    """
    if tick:
        held.enter_due(hands.store, hands.clock.now())
    snapshot = hands.store.begin_pass()
    hands = replace(hands, policy=snapshot.policy, pools=snapshot.pools)
    report = PassReport(snapshot.pass_number)
    try:
        snapshot = _looked(hands, snapshot, tick=tick)
        report.plan = schedule(snapshot, hands.clock.now(), random.Random(snapshot.pass_number))  # noqa: S311 -- spreads choices, guards nothing
        snapshot = _change_pools(hands, snapshot, report)
        _carry_out(replace(hands, pools=snapshot.pools), snapshot, report)
    except Fenced:
        report.fenced = True
        log.info("a later pass has begun", extra={"pass": report.pass_number})
    report.again = _more_to_do(snapshot, report)
    if tick and held.sweep_is_due(hands.clock.now()):
        report.again |= held.sweep(hands.store, snapshot, hands.clock.now())
    return report


def _looked(hands: Hands, snapshot: Snapshot, *, tick: bool) -> Snapshot:
    """The snapshot after what earlier passes left undone, and after the minute's looks. Raises `Fenced`."""
    snapshot = replace(snapshot, pools=refresh_plans(hands, snapshot.pools, tick=tick))
    if tick:
        snapshot = replace(snapshot, foreign=note_foreign(hands, snapshot))
    snapshot = _up_to_date(snapshot, finish_unfinished(hands, snapshot.active))
    if tick:
        snapshot = _up_to_date(snapshot, keep_time(hands, snapshot))
        snapshot = _up_to_date(snapshot, check_silent(hands, snapshot.active))
        snapshot = _up_to_date(snapshot, look_for_checkpoints(hands, snapshot.active))
    return warm.settle(hands, snapshot, tick=tick)


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


def _change_pools(hands: Hands, snapshot: Snapshot, report: PassReport) -> Snapshot:
    """Make and remove the manager's own pools; the snapshot with the pools as they are then."""
    if not expansion.carry_out(hands, snapshot, report.plan):
        report.lost += 1
        return snapshot
    report.made = [each.pool.name for each in report.plan.expansions]
    report.retired = [each.pool.name for each in report.plan.retirements]
    return expansion.applied(snapshot, report.plan)


def _carry_out(hands: Hands, snapshot: Snapshot, report: PassReport) -> None:
    """Commit and act, decision by decision; a pool that is full, or was not made, is left alone for this pass."""
    full = {each.pool.name for each in report.plan.expansions} - {*report.made}
    # Stops first: what they free takes minutes to come.
    kept: dict[str, Job] = {}
    for ending in report.plan.warm_ends:
        _end_warm(hands, ending, kept, report)
    for preemption in report.plan.preemptions:
        _preempt(hands, preemption, kept, report)
    for decision in report.plan.starts:
        if report.throttled:
            break
        if full.isdisjoint(decision.units):
            full.update(_start(hands, decision, report, reclaimed_at(decision.units, snapshot.pools)))


def _start(hands: Hands, decision: Start, report: PassReport, reclaimed: datetime | None) -> Iterable[str]:
    """Start one job; returns the pools that SageMaker had no room in."""
    now, chosen = hands.clock.now(), _chosen_type(hands, decision)
    noted = expansion.with_note(decision.job, decision.units, hands.pools, now)
    after = lifecycle.start(noted, decision.units, decision.choices, now, reclaimed_at=reclaimed, instance_type=chosen)
    runs_on = [warm.used(decision.warm, after)] if decision.warm is not None else []
    if not hands.store.transition(
        [(decision.job, after)], fence=report.pass_number, warm=runs_on, cursors=decision.cursors
    ):
        report.lost += 1
        return ()
    report.started.append(after.name)
    try:
        stands = launch(hands, after)
    except Throttled:
        report.throttled = True
        return ()
    except Unavailable as error:
        log.warning("could not launch; the next pass tries again", extra={"job": after.name, "cause": str(error)})
        return ()
    if stands.state in WAITING:
        report.returned.append(stands.name)
        return tuple(decision.units)
    return ()


def _chosen_type(hands: Hands, decision: Start) -> str:
    """The instance type that the queue has chosen; "" where the request says it, or SageMaker chooses."""
    pool = hands.pools.get(next(iter(decision.units))) if decision.job.demand.ours else None
    return "" if pool is None else pool.instance_type


def _preempt(hands: Hands, decision: Preempt, kept: dict[str, Job], report: PassReport) -> None:
    """Commit the victims and the hold as one, then ask each victim to stop.

    `kept` has the jobs that got a hold in this pass: a large gang needs several decisions, and its version has moved
    on with the first.
    """
    now = hands.clock.now()
    waiting = kept.get(decision.job.name, decision.job)
    holder = lifecycle.keep_for(waiting, decision.hold)
    victims = [(victim, lifecycle.preempt(victim, holder.name, now)) for victim in decision.victims]
    if not hands.store.transition([*victims, (waiting, holder)], fence=report.pass_number):
        report.lost += 1
        return
    kept[holder.name] = holder
    for _, victim in victims:
        report.preempted.append(victim.name)
        _stop(hands, victim, report)


def _end_warm(hands: Hands, decision: EndWarm, kept: dict[str, Job], report: PassReport) -> None:
    """Commit the end of a warm pool and the hold as one, then have it ended.

    Where SageMaker tells at once that it is gone, the job that it was ended for starts with the next pass.
    """
    waiting = kept.get(decision.job.name, decision.job)
    holder = lifecycle.keep_for(waiting, decision.hold)
    ending = replace(decision.warm, ending_since=hands.clock.now())
    if not hands.store.transition([(waiting, holder)], fence=report.pass_number, warm=[ending]):
        report.lost += 1
        return
    kept[holder.name] = holder
    report.cooled.append(ending.training_job_name)
    if report.throttled:
        return
    try:
        if warm.end(hands, ending):
            hands.store.transition([], fence=report.pass_number, cold=[ending.training_job_name])
            report.gone = True
    except Throttled:
        report.throttled = True
    except (Unavailable, NotPermitted) as error:
        cause = {"trainingJob": ending.training_job_name, "cause": str(error)}
        log.warning("could not end a warm pool; the next pass tries again", extra=cause)


def _stop(hands: Hands, victim: Job, report: PassReport) -> None:
    if report.throttled:
        return
    try:
        stop(hands, victim)
    except Throttled:
        report.throttled = True
    except (Unavailable, NotPermitted) as error:
        log.warning("could not stop; the next pass tries again", extra={"job": victim.name, "cause": str(error)})


def _more_to_do(snapshot: Snapshot, report: PassReport) -> bool:
    """Whether this pass stopped for its own bounds, not because nothing more could be done."""
    if report.fenced or report.throttled:
        return False
    cut_short = any(isinstance(wait.reason, NextPass) for wait in report.plan.waits)
    return cut_short or report.gone or _room_for_unread(snapshot, report.plan)


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
