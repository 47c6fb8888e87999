"""Carrying out a plan, decision by decision: each is committed as one fenced transaction, then acted upon.

What does not get done is left to the next pass (`tending`). It must not decide anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.domain import lifecycle
from trainmaster.domain.capacity import reclaimed_at
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable
from trainmaster.domain.job import WAITING, Job
from trainmaster.domain.plan import EndWarm, Plan, Preempt, Resize, Snapshot, Start
from trainmaster.service import expansion, resizing, warm
from trainmaster.service.hands import Hands
from trainmaster.service.launch import launch, stop
from trainmaster.service.tending import go_on

log = logging.getLogger(__name__)


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
    """

    pass_number: int
    snapshot: Snapshot | None = None
    plan: Plan = field(default_factory=Plan)
    started: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    cooled: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    lost: int = 0
    fenced: bool = False
    throttled: bool = False
    gone: bool = False
    again: bool = False


def carry_out(hands: Hands, snapshot: Snapshot, report: PassReport) -> None:
    """Commit and act, decision by decision; a pool that is full, or was not made, is left alone for this pass.

    Raises `Fenced`.
    """
    full = {each.pool.name for each in report.plan.expansions} - {*report.made}
    # Stops first: what they free takes minutes to come.
    kept: dict[str, Job] = {}
    for ending in report.plan.warm_ends:
        _end_warm(hands, ending, kept, report)
    for preemption in report.plan.preemptions:
        _preempt(hands, preemption, kept, report)
    shrinks: list[Resize] = []
    growths: list[Resize] = []
    for resize in report.plan.resizes:
        (growths if resize.size > lifecycle.current(resize.job).size else shrinks).append(resize)
    for shrink in shrinks:
        _resize(hands, shrink, report)
    for decision in report.plan.starts:
        if report.throttled:
            break
        if full.isdisjoint(decision.units):
            full.update(_start(hands, decision, report, reclaimed_at(decision.units, snapshot.pools)))
    # Jobs that wait come before those that only want more.
    for growth in growths:
        if not report.throttled and full.isdisjoint(growth.job.units):
            _resize(hands, growth, report)


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
        stands = resizing.advance(hands, launch(hands, after))
    except Throttled:
        report.throttled = True
        return ()
    except (Unavailable, NotPermitted) as error:
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
    """Commit the victims, the jobs that shrink, and the hold as one, then ask each to stop, or to let instances go.

    `kept` has the jobs that got a hold in this pass: a large gang needs several decisions, and its version has moved
    on with the first.
    """
    now = hands.clock.now()
    waiting = kept.get(decision.job.name, decision.job)
    holder = lifecycle.keep_for(waiting, decision.hold)
    victims = [(victim, lifecycle.preempt(victim, holder.name, now)) for victim in decision.victims]
    shrinks = [(shrink.job, _sized(shrink, now, shrink.freed_for or holder.name)) for shrink in decision.shrinks]
    if not hands.store.transition([*victims, *shrinks, (waiting, holder)], fence=report.pass_number):
        report.lost += 1
        return
    kept[holder.name] = holder
    for _, victim in victims:
        report.preempted.append(victim.name)
        _act(hands, victim, report, stop)
    for _, shrinking in shrinks:
        report.resized.append(shrinking.name)
        _act(hands, shrinking, report, go_on)


def _resize(hands: Hands, decision: Resize, report: PassReport) -> None:
    """Commit another size of a running job, then begin with what it takes."""
    after = _sized(decision, hands.clock.now(), decision.freed_for or None)
    if not hands.store.transition([(decision.job, after)], fence=report.pass_number):
        report.lost += 1
        return
    report.resized.append(after.name)
    _act(hands, after, report, go_on)


def _sized(decision: Resize, now: datetime, freed_for: str | None) -> Job:
    """The job as it is from the decision on."""
    job, size = decision.job, decision.size
    until = resizing.until(job, size, now)
    return lifecycle.resize(job, size, decision.cause, now, until=until, freed_for=freed_for)


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


def _act(hands: Hands, job: Job, report: PassReport, act: Callable[[Hands, Job], Job]) -> None:
    if report.throttled:
        return
    try:
        act(hands, job)
    except Throttled:
        report.throttled = True
    except (Unavailable, NotPermitted) as error:
        log.warning("could not act; the next pass tries again", extra={"job": job.name, "cause": str(error)})
