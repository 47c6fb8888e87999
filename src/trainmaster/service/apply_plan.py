"""Carrying out a plan, decision by decision: each is committed as one fenced transaction, then acted upon.

Starts of image jobs are committed several at once. What does not get done is left to the next pass (`tending`). It must
not decide anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from trainmaster.domain.capacity.units import reclaimed_at
from trainmaster.domain.errors import Fenced, NotPermitted, ServiceTrouble, Throttled, Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import WAITING, Job
from trainmaster.domain.plan import EndWarm, Plan, Preempt, Resize, Snapshot, Start
from trainmaster.ports.sagemaker import CreateResult
from trainmaster.service import resizing
from trainmaster.service.capacity import expansion, warm_pools
from trainmaster.service.context import ManagerContext
from trainmaster.service.faults import isolate_fault
from trainmaster.service.launch import confirm_launch, create, launch, stop
from trainmaster.service.reconcile import resume

log = logging.getLogger(__name__)
_T = TypeVar("_T")

MAX_TOGETHER = 10
"""Starts of one transaction: what others change meanwhile costs one try more, so it is not as large as it could be."""


@dataclass(slots=True)
class PassReport:
    """What a pass did.

    Attributes:
        pass_number: its fence.
        snapshot: what it planned upon; None where it did not come so far.
        fenced: whether a later pass overtook it.
        made: pools that were made or made larger.
        retired: pools that were removed.
        resized: jobs whose size begins to change.
        cooled: the training jobs whose warm pools were to end.
        gone: whether any of those is gone already.
        again: whether another pass would find more to do at once.
        faults: jobs for which a fault of ours kept something from being done.
    """

    pass_number: int
    snapshot: Snapshot | None = None
    plan: Plan = field(default_factory=Plan)
    started: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    created_pools: list[str] = field(default_factory=list)
    removed_pools: list[str] = field(default_factory=list)
    ended_warm_pools: list[str] = field(default_factory=list)
    requeued: list[str] = field(default_factory=list)
    conflicts: int = 0
    fenced: bool = False
    throttled: bool = False
    freed_warm_pool: bool = False
    more_to_do: bool = False
    faults: list[str] = field(default_factory=list)


def carry_out(context: ManagerContext, report: PassReport) -> None:
    """Commit and act, decision by decision; a pool that is full, or was not made, is left alone for this pass.

    Raises `Fenced`.
    """
    full = {each.pool.name for each in report.plan.expansions} - {*report.created_pools}
    # Stops first: what they free takes minutes to come.
    kept: dict[str, Job] = {}
    for ending in report.plan.warm_ends:
        with isolate_fault(ending.job.name, context.faults):
            _end_warm(context, ending, kept, report)
    for preemption in report.plan.preemptions:
        with isolate_fault(preemption.job.name, context.faults):
            _preempt(context, preemption, kept, report)
    shrinks: list[Resize] = []
    growths: list[Resize] = []
    for resize in report.plan.resizes:
        (growths if resize.size > lifecycle.current(resize.job).size else shrinks).append(resize)
    for shrink in shrinks:
        _resize(context, shrink, report)
    for decisions in _together(report.plan.starts):
        if report.throttled:
            break
        full.update(_start(context, [each for each in decisions if full.isdisjoint(each.units)], report))
    # Jobs that wait come before those that only want more.
    for growth in growths:
        if not report.throttled and full.isdisjoint(growth.job.units):
            _resize(context, growth, report)


def _together(starts: Iterable[Start]) -> Iterator[Sequence[Start]]:
    """The starts in order, in the groups that are committed as one.

    Where a training job finds no room tells whether the next one is tried at all, and so each is alone. Endpoints do
    not refuse: what an image job takes there is known.
    """
    group: list[Start] = []
    for start in starts:
        alone = start.job.image_work is None or start.warm is not None or start.cursors is not None
        if group and (alone or len(group) == MAX_TOGETHER):
            yield group
            group = []
        if alone:
            yield (start,)
        else:
            group.append(start)
    if group:
        yield group


def _start(context: ManagerContext, decisions: Sequence[Start], report: PassReport) -> Iterable[str]:
    """Start jobs, all committed before the first is launched; returns the pools that SageMaker had no room in."""
    starts = _committed(context, decisions, report)
    launch_them = _launch_one if len(starts) == 1 else _launch_several
    back = [job.name for job in launch_them(context, [after for _, after in starts], report) if job.state in WAITING]
    report.requeued += back
    return {pool for decision, after in starts if after.name in back for pool in decision.units}


def _launch_one(context: ManagerContext, jobs: Sequence[Job], report: PassReport) -> list[Job]:
    """Launch a job; as it stands, where that is known."""
    stands = _act(context, jobs[0], report, lambda context, job: resizing.advance(context, launch(context, job)))
    return [] if stands is None else [stands]


def _launch_several(context: ManagerContext, jobs: Sequence[Job], report: PassReport) -> list[Job]:
    """Launch image jobs, and note of all at once that they are; those of which it is known, as they stand."""
    failed: list[Job] = []
    new: list[Job] = []
    there_first: list[Job] = []
    for job in jobs:
        created = _act(context, job, report, create)
        if isinstance(created, Job):
            failed.append(created)
        elif created is CreateResult.NEW:
            new.append(job)
        elif created is CreateResult.ALREADY_THERE:
            there_first.append(job)
    if _noted_as_launched(context, new, report):
        new = []
    known = [_act(context, job, report, partial(confirm_launch, created=CreateResult.NEW)) for job in new]
    known += [
        _act(context, job, report, partial(confirm_launch, created=CreateResult.ALREADY_THERE)) for job in there_first
    ]
    return [*failed, *(job for job in known if job is not None)]


def _noted_as_launched(context: ManagerContext, new: Sequence[Job], report: PassReport) -> bool:
    """Note of several jobs at once that they are launched; False where each is to be noted alone."""
    if len(new) < 2:
        return False
    changes = [(job, lifecycle.launched(job)) for job in new]
    return bool(_act(context, new[0], report, lambda context, _: context.store.transition(changes)))


def _committed(context: ManagerContext, decisions: Sequence[Start], report: PassReport) -> Sequence[tuple[Start, Job]]:
    """The decisions that stand, each with its job as it is then.

    One job that has changed meanwhile keeps the others with it from being committed: then each is tried alone.
    """
    starts, won = [], []
    for decision in decisions:
        with isolate_fault(decision.job.name, context.faults):
            starts.append((decision, _started(context, decision)))
    if _committed_at_once(context, starts, report):
        return starts
    for start in starts:
        with isolate_fault(start[0].job.name, context.faults):
            if _commit(context, *start, report):
                won.append(start)
    return won


def _committed_at_once(context: ManagerContext, starts: Sequence[tuple[Start, Job]], report: PassReport) -> bool:
    """Commit several starts as one; False where each is to be tried alone."""
    if len(starts) < 2:
        return False
    with isolate_fault(", ".join(after.name for _, after in starts), context.faults):
        if context.store.transition([(decision.job, after) for decision, after in starts], fence=report.pass_number):
            report.started += [after.name for _, after in starts]
            return True
    return False


def _started(context: ManagerContext, decision: Start) -> Job:
    """The job as it is once it starts."""
    now, units, chosen = context.clock.now(), decision.units, _chosen_type(context, decision)
    reclaimed, instead = reclaimed_at(units, context.pools), decision.instead_of
    noted = expansion.with_note(decision.job, units, context.pools, now)
    return lifecycle.start(
        noted, units, decision.choices, now, reclaimed_at=reclaimed, instance_type=chosen, instead_of=instead
    )


def _commit(context: ManagerContext, decision: Start, after: Job, report: PassReport) -> bool:
    """Commit one start; whether it won."""
    runs_on = [warm_pools.used(decision.warm, after)] if decision.warm is not None else []
    change, cursors = [(decision.job, after)], decision.cursors
    won = context.store.transition(change, fence=report.pass_number, warm=runs_on, cursors=cursors)
    if won:
        report.started.append(after.name)
    else:
        report.conflicts += 1
    return won


def _chosen_type(context: ManagerContext, decision: Start) -> str:
    """The instance type that the queue has chosen; "" where the request says it, or SageMaker chooses."""
    pool = context.pools.get(next(iter(decision.units))) if decision.job.demand.ours else None
    return "" if pool is None else pool.instance_type


def _preempt(context: ManagerContext, decision: Preempt, kept: dict[str, Job], report: PassReport) -> None:
    """Commit the victims, the jobs that shrink, and the hold as one, then ask each to stop, or to let instances go.

    `kept` has the jobs that got a hold in this pass: a large gang needs several decisions, and its version has moved
    on with the first.
    """
    now = context.clock.now()
    waiting = kept.get(decision.job.name, decision.job)
    holder = lifecycle.keep_for(waiting, decision.hold)
    victims = [(victim, lifecycle.preempt(victim, holder.name, now)) for victim in decision.victims]
    shrinks = [(shrink.job, _sized(shrink, now, shrink.freed_for or holder.name)) for shrink in decision.shrinks]
    if not context.store.transition([*victims, *shrinks, (waiting, holder)], fence=report.pass_number):
        report.conflicts += 1
        return
    kept[holder.name] = holder
    for _, victim in victims:
        report.preempted.append(victim.name)
        _act(context, victim, report, stop)
    for _, shrinking in shrinks:
        report.resized.append(shrinking.name)
        _act(context, shrinking, report, resume)


def _resize(context: ManagerContext, decision: Resize, report: PassReport) -> None:
    """Commit another size of a running job, then begin with what it takes."""
    with isolate_fault(decision.job.name, context.faults):
        after = _sized(decision, context.clock.now(), decision.freed_for or None)
        if not context.store.transition([(decision.job, after)], fence=report.pass_number):
            report.conflicts += 1
            return
        report.resized.append(after.name)
        _act(context, after, report, resume)


def _sized(decision: Resize, now: datetime, freed_for: str | None) -> Job:
    """The job as it is from the decision on."""
    job, size = decision.job, decision.size
    until = resizing.until(job, size, now)
    return lifecycle.resize(job, size, decision.cause, now, until=until, freed_for=freed_for)


def _end_warm(context: ManagerContext, decision: EndWarm, kept: dict[str, Job], report: PassReport) -> None:
    """Commit the end of a warm pool and the hold as one, then have it ended.

    Where SageMaker tells at once that it is gone, the job that it was ended for starts with the next pass.
    """
    waiting = kept.get(decision.job.name, decision.job)
    holder = lifecycle.keep_for(waiting, decision.hold)
    ending = replace(decision.warm, ending_since=context.clock.now())
    if not context.store.transition([(waiting, holder)], fence=report.pass_number, warm=[ending]):
        report.conflicts += 1
        return
    kept[holder.name] = holder
    report.ended_warm_pools.append(ending.training_job_name)
    if report.throttled:
        return
    try:
        if warm_pools.end(context, ending):
            context.store.transition([], fence=report.pass_number, ended_warm=[ending.training_job_name])
            report.freed_warm_pool = True
    except Throttled:
        report.throttled = True
    except (Unavailable, NotPermitted) as error:
        cause = {"trainingJob": ending.training_job_name, "cause": str(error)}
        log.warning("could not end a warm pool; the next pass tries again", extra=cause)


def _act(context: ManagerContext, job: Job, report: PassReport, act: Callable[[ManagerContext, Job], _T]) -> _T | None:
    """What comes of it; None where it did not come about, so that the next pass tries again."""
    if report.throttled:
        return None
    try:
        with isolate_fault(job.name, context.faults):
            return act(context, job)
    except Throttled:
        report.throttled = True
    except Fenced:
        raise
    except ServiceTrouble as error:
        log.warning("could not act; the next pass tries again", extra={"job": job.name, "cause": str(error)})
    return None
