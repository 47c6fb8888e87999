"""Apply a plan: commit each decision in one fenced transaction, then carry it out at SageMaker.

A decision that loses its transaction is dropped, since its job has changed; an action that fails after its commit is
repeated by the next pass (`reconcile`). Most starts are committed several at once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from trainmaster.domain.capacity.refusals import kind_of
from trainmaster.domain.capacity.units import Units, reclaimed_at
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.errors import Fenced, NotPermitted, ServiceError, Throttled, Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ACTIVE, WAITING, Job, Reservation
from trainmaster.domain.plan import Cursors, EndWarm, Plan, Preempt, Resize, Snapshot, Start, Widen
from trainmaster.ports.sagemaker import CreateResult
from trainmaster.ports.store import Request
from trainmaster.service import resizing
from trainmaster.service.capacity import expansion, warm_pools
from trainmaster.service.context import ManagerContext
from trainmaster.service.events import feasibility
from trainmaster.service.faults import isolate_fault
from trainmaster.service.launch import confirm_launch, create_training_job, launch, stop, will_report
from trainmaster.service.reconcile import resume

log = logging.getLogger(__name__)
_T = TypeVar("_T")

MAX_BATCH = 10
"""Starts in one transaction. A conflict costs the batch another try, so it is smaller than DynamoDB would allow."""


@dataclass(slots=True)
class PassReport:
    """The actions and the outcome of a pass.

    Attributes:
        pass_number: the pass's fence.
        snapshot: the reconciled snapshot that the plan was made from; None if the pass did not get so far.
        started: jobs that were started.
        preempted: jobs that were asked to stop for others.
        resized: jobs whose resize began.
        requeued: started jobs for which SageMaker had no capacity.
        created_pools: pools that the pass made or enlarged.
        removed_pools: pools that the pass removed or shrank.
        ended_warm_pools: training jobs whose warm pools were to end.
        freed_warm_pool: whether any of those has ended already, so that another pass can use its instances.
        conflicts: decisions that lost their transaction.
        fenced: whether a later pass began before this one was done.
        refused: whether starts were refused for other reasons than capacity, so that others may have their units.
        throttled: whether AWS throttled a start, a growth or a warm pool's end; no more of these are committed then.
        more_to_do: whether another pass would find more to do at once.
        faults: jobs for which an action failed with an unexpected exception.
        orphans: training jobs of the queue that no job had as an attempt, and that were stopped.
    """

    pass_number: int
    snapshot: Snapshot | None = None
    plan: Plan = field(default_factory=Plan)
    started: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    requeued: list[str] = field(default_factory=list)
    created_pools: list[str] = field(default_factory=list)
    removed_pools: list[str] = field(default_factory=list)
    ended_warm_pools: list[str] = field(default_factory=list)
    freed_warm_pool: bool = False
    conflicts: int = 0
    fenced: bool = False
    refused: bool = False
    throttled: bool = False
    more_to_do: bool = False
    faults: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)


def apply_plan(context: ManagerContext, snapshot: Snapshot, report: PassReport) -> Snapshot:
    """Apply the report's plan and note in the report what was done; return the snapshot with its pools changed.

    Raises `Fenced`.
    """
    snapshot = _change_pools(context, snapshot, report)
    current = context if snapshot.pools is context.pools else replace(context, pools=snapshot.pools)
    decisions = _Decisions(current, report)
    decisions.apply()
    # Without a pool that the plan counts on, its verdicts may be wrong.
    if len(report.created_pools) == len(report.plan.expansions):
        decisions.record_feasibility(snapshot)
    return snapshot


def _change_pools(context: ManagerContext, snapshot: Snapshot, report: PassReport) -> Snapshot:
    """Make, shrink and remove the manager's own pools; return the snapshot with the resulting pools."""
    if not expansion.change_pools(context, snapshot, report.plan):
        report.conflicts += 1
        return snapshot
    report.created_pools = [decision.pool.name for decision in report.plan.expansions]
    report.removed_pools = [decision.pool.name for decision in report.plan.retirements]
    return expansion.with_changed_pools(snapshot, report.plan)


@dataclass(slots=True)
class _Decisions:
    """The decisions about jobs of one plan, and how far their application has come.

    Attributes:
        context: with the pools as the pass has changed them.
        report: receives what was done.
        reserved: jobs that received a reservation in this pass, as stored. A large job may need several decisions, and
            each changes its version.
        full: pools in which SageMaker has no capacity, or that could not be made; they are skipped in this pass.
        refused_kinds: kinds of jobs of which one was refused in this pass; the others are skipped.
    """

    context: ManagerContext
    report: PassReport
    reserved: dict[str, Job] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)
    refused_kinds: set[str] = field(default_factory=set)

    def apply(self) -> None:
        """Apply all decisions; those that free capacity come first, because it takes minutes to become free."""
        plan = self.report.plan
        self.full = {decision.pool.name for decision in plan.expansions} - {*self.report.created_pools}
        shrinks, growths = _shrinks_and_growths(plan.resizes)
        for ending in plan.warm_ends:
            self._isolated(ending.job.name, partial(self._end_warm_pool, ending))
        for preemption in plan.preemptions:
            self._isolated(preemption.job.name, partial(self._preempt, preemption))
        for shrink in shrinks:
            self._isolated(shrink.job.name, partial(self._resize, shrink))
        self._start_all(plan.starts)
        # Waiting jobs come before running jobs that want to grow.
        for growth in growths:
            if not self.report.throttled and self.full.isdisjoint(growth.job.units):
                self._isolated(growth.job.name, partial(self._resize, growth))
        for widening in plan.widenings:
            self._isolated(widening.job.name, partial(self._widen, widening))

    def record_feasibility(self, snapshot: Snapshot) -> None:
        """Commit which waiting jobs no pool can hold, and which again, if that is published."""
        for batch in feasibility.changes(self.context, snapshot, self.report.plan, self.reserved):
            self._commit(batch)

    # -- one method for each kind of decision -----------------------------------------------------------------------
    def _end_warm_pool(self, decision: EndWarm) -> None:
        """Commit a warm pool's end together with the reservation of its units, then end it.

        If SageMaker reports at once that it has ended, the job for which it was ended starts with the next pass.
        """
        ending = replace(decision.warm, ending_since=self.context.clock.now())
        if not self._commit_with_reservation(decision.job, decision.reservation, [], warm=ending):
            return
        name = ending.training_job_name
        self.report.ended_warm_pools.append(name)
        if self.report.throttled:
            return
        try:
            if warm_pools.end(self.context, ending):
                self.context.store.transition([], fence=self.report.pass_number, ended_warm=[name])
                self.report.freed_warm_pool = True
        except Throttled:
            self.report.throttled = True
        except (Unavailable, NotPermitted) as error:
            cause = {"trainingJob": name, "cause": str(error)}
            log.warning("could not end a warm pool; the next pass retries", extra=cause)

    def _preempt(self, decision: Preempt) -> None:
        """Commit the victims, the shrinks and the reservation together, then stop the victims and begin the shrinks."""
        now, beneficiary = self.context.clock.now(), decision.job.name
        victims = [(victim, lifecycle.preempt(victim, beneficiary, now)) for victim in decision.victims]
        shrinks = [(shrink.job, self._resized(shrink, shrink.freed_for or beneficiary)) for shrink in decision.shrinks]
        if not self._commit_with_reservation(decision.job, decision.reservation, [*victims, *shrinks]):
            return
        for _, victim in victims:
            self.report.preempted.append(victim.name)
            self._act(victim, stop, of_stop=True)
        for _, shrinking in shrinks:
            self.report.resized.append(shrinking.name)
            self._act(shrinking, partial(resume, retry=False), of_stop=True)

    def _resize(self, decision: Resize) -> None:
        """Commit another size of a running job, then take the first step towards it."""
        after = self._resized(decision, decision.freed_for or None)
        if self._commit([(decision.job, after)]):
            self.report.resized.append(after.name)
            self._act(after, partial(resume, retry=False), of_stop=decision.size < lifecycle.current(decision.job).size)

    def _widen(self, decision: Widen) -> None:
        """Commit more units of a running job of another kind; the next tick has its run use them."""
        self._commit([(decision.job, lifecycle.widen(decision.job, decision.units, self.context.clock.now()))])

    def _start_all(self, starts: Iterable[Start]) -> None:
        """Start jobs, in each pool in the plan's order; throttling ends the round, a full pool skips its own starts."""
        for batch in _batches(starts):
            if self.report.throttled:
                return
            self._start([start for start in batch if self._may_succeed(start)])

    def _may_succeed(self, start: Start) -> bool:
        """Return whether no start of this pass was refused for a reason that would meet this one too."""
        alone = not self.refused_kinds or kind_of(start.job) not in self.refused_kinds
        return alone and self.full.isdisjoint(start.units)

    def _start(self, decisions: Sequence[Start]) -> None:
        """Commit a batch of starts, then launch each, and note why some were refused."""
        starts = self._commit_starts(decisions)
        started = [after for _, after in starts]
        stored = self._launch_one(started[0]) if len(started) == 1 else self._launch_several(started)
        if refused := {job.name: job for job in stored if job.state not in ACTIVE}:
            self._note_refused([(start, refused[after.name]) for start, after in starts if after.name in refused])

    def _note_refused(self, refused: Sequence[tuple[Start, Job]]) -> None:
        """Note starts that were refused, and give back the warm pools that they would have used."""
        self.report.requeued += [job.name for _, job in refused if job.state in WAITING]
        for start, job in refused:
            if job.attempt is not None and job.attempt.found_no_capacity:
                self.full.update(start.units)
            else:
                self.report.refused = True
            if job.attempt is not None and job.attempt.unstartable:
                self.refused_kinds.add(kind_of(job))
        unused = [start.warm for start, job in refused if job.state in WAITING and start.warm is not None]
        if unused:
            self.context.store.transition([], fence=self.report.pass_number, warm=unused)

    # -- starts -----------------------------------------------------------------------------------------------------
    def _commit_starts(self, decisions: Sequence[Start]) -> list[tuple[Start, Job]]:
        """Commit starts in one transaction, or each in its own if that fails; return those that were committed."""
        starts, won = [], []
        for decision in decisions:
            with isolate_fault(decision.job.name, self.context.faults):
                starts.append((decision, self._started(decision)))
        if self._commit_together(starts):
            return starts
        for decision, after in starts:
            with isolate_fault(decision.job.name, self.context.faults):
                if self._commit_start(decision, after):
                    won.append((decision, after))
        return won

    def _commit_together(self, starts: Sequence[tuple[Start, Job]]) -> bool:
        """Commit several starts in one transaction; return False if each has to be tried alone."""
        if len(starts) < 2:
            return False
        with isolate_fault(", ".join(after.name for _, after in starts), self.context.faults):
            changes = [(decision.job, after) for decision, after in starts]
            if self.context.store.transition(changes, fence=self.report.pass_number):
                self.report.started += [after.name for _, after in starts]
                return True
        return False

    def _commit_start(self, decision: Start, after: Job) -> bool:
        """Commit one start, with the warm pool that it uses and the placement policy's cursors."""
        warm = [warm_pools.used(decision.warm, after)] if decision.warm is not None else []
        won = self._commit([(decision.job, after)], warm=warm, cursors=decision.cursors)
        if won:
            self.report.started.append(after.name)
        return won

    def _started(self, decision: Start) -> Job:
        """Return the job as it starts."""
        pools, units, now = self.context.pools, decision.units, self.context.clock.now()
        return lifecycle.start(
            expansion.with_pool_note(lifecycle.set_feasible(decision.job, now), units, pools, now),
            units,
            decision.choices,
            now,
            reclaimed_at=reclaimed_at(units, pools),
            instance_type=self._chosen_type(decision.job, units),
            instead_of=decision.instead_of,
        )

    def _chosen_type(self, job: Job, units: Units) -> str:
        """Return the instance type that the queue chose; "" if the request names it, or SageMaker chooses."""
        pool = self.context.pools.get(next(iter(units))) if job.demand.queue_selects_pool else None
        return "" if pool is None else pool.instance_type

    def _launch_one(self, job: Job) -> list[Job]:
        """Launch a job and take the first step of its resizing hook; return it as stored, nothing if that failed."""
        stored = self._act(job, lambda context, job: resizing.advance(context, launch(context, job), retry=False))
        return [] if stored is None else [stored]

    def _launch_several(self, jobs: Sequence[Job]) -> list[Job]:
        """Launch several jobs and confirm the new ones that will not report; return those stored in another way."""
        requests = self._requests_of([job for job in jobs if job.work is None])
        results = [
            (job, self._act(job, lambda context, job: create_training_job(replace(context, requests=requests), job)))
            for job in jobs
        ]
        new = [job for job, result in results if result is CreateResult.NEW and not will_report(job)]
        unconfirmed = [] if self._confirm_together(new) else [(job, CreateResult.NEW) for job in new]
        unconfirmed += [(job, result) for job, result in results if result is CreateResult.ALREADY_THERE]
        confirmed = [self._act(job, partial(confirm_launch, created=result)) for job, result in unconfirmed]
        failed = [result for _, result in results if isinstance(result, Job)]
        return [*failed, *(job for job in confirmed if job is not None)]

    def _requests_of(self, jobs: Sequence[Job]) -> Mapping[str, Request]:
        """Return the requests of these jobs as far as one read has them."""
        names = [job.name for job in jobs]
        return self._act(jobs[0], lambda context, _: context.store.requests_of(names)) or {} if jobs else {}

    def _confirm_together(self, jobs: Sequence[Job]) -> bool:
        """Commit that several jobs are launched; return False if each has to be confirmed alone."""
        if len(jobs) < 2:
            return False
        changes = [(job, lifecycle.mark_launched(job, self.context.clock.now())) for job in jobs]
        return bool(self._act(jobs[0], lambda context, _: context.store.transition(changes)))

    # -- commits and actions ----------------------------------------------------------------------------------------
    def _commit_with_reservation(
        self, job: Job, reservation: Reservation, changes: Sequence[tuple[Job, Job]], warm: WarmPool | None = None
    ) -> bool:
        """Commit changes together with the reservation of what they free; return whether they were committed."""
        waiting = self.reserved.get(job.name, job)
        holder = lifecycle.reserve(waiting, reservation)
        if not self._commit([*changes, (waiting, holder)], warm=[] if warm is None else [warm]):
            return False
        self.reserved[holder.name] = holder
        return True

    def _commit(
        self, changes: Sequence[tuple[Job, Job]], *, warm: Sequence[WarmPool] = (), cursors: Cursors | None = None
    ) -> bool:
        """Commit changes under the pass's fence; return whether they were committed, count a conflict if not."""
        won = self.context.store.transition(changes, fence=self.report.pass_number, warm=warm, cursors=cursors)
        self.report.conflicts += not won
        return won

    def _resized(self, decision: Resize, freed_for: str | None) -> Job:
        """Return the job as its resize begins."""
        job, size, now = decision.job, decision.size, self.context.clock.now()
        until = resizing.until(job, size, now)
        return lifecycle.resize(job, size, decision.cause, now, until=until, freed_for=freed_for)

    def _isolated(self, name: str, apply: Callable[[], None]) -> None:
        """Apply a decision; an unexpected exception costs its job this pass, and no other."""
        with isolate_fault(name, self.context.faults):
            apply()

    def _act(self, job: Job, act: Callable[[ManagerContext, Job], _T], *, of_stop: bool = False) -> _T | None:
        """Return the result of an action; None if it failed and is left to the next pass. Raises `Fenced`.

        Throttled starts do not keep jobs from stopping, nor the other way round.
        """
        if self.report.throttled and not of_stop:
            return None
        try:
            with isolate_fault(job.name, self.context.faults):
                return act(self.context, job)
        except Throttled:
            self.report.throttled |= not of_stop
        except Fenced:
            raise
        except ServiceError as error:
            log.warning("an action failed; the next pass retries", extra={"job": job.name, "cause": str(error)})
        return None


def _shrinks_and_growths(resizes: Iterable[Resize]) -> tuple[list[Resize], list[Resize]]:
    """Return the resizes to smaller and to larger sizes."""
    shrinks: list[Resize] = []
    growths: list[Resize] = []
    for resize in resizes:
        (growths if resize.size > lifecycle.current(resize.job).size else shrinks).append(resize)
    return shrinks, growths


def _batches(starts: Iterable[Start]) -> Iterator[Sequence[Start]]:
    """Yield the starts in the batches that are committed together; those in the same pool keep their order."""
    left = list(starts)
    tried: Counter[str] = Counter()
    while left:
        batch, later, passed = list[Start](), list[Start](), set[str]()
        for start in left:
            if passed.isdisjoint(start.units) and _joins(start, batch, tried):
                batch.append(start)
            else:
                later.append(start)
                passed.update(start.units)
        yield batch
        tried.update(pool for each in batch for pool in each.units)
        left = later


def _joins(start: Start, batch: Sequence[Start], tried: Mapping[str, int]) -> bool:
    """Return whether a start is committed with those of a batch.

    Of each pool, as many training jobs are as were tried there before, or one if none was: if SageMaker has no capacity
    in a pool, later starts there are not tried. Services do not refuse jobs, since the queue knows how many requests
    each takes.
    """
    if not batch:
        return True
    if len(batch) == MAX_BATCH or _starts_alone(start) or _starts_alone(batch[0]):
        return False
    if start.job.work is not None:
        return True
    return all(sum(pool in other.units for other in batch) < max(tried.get(pool, 0), 1) for pool in start.units)


def _starts_alone(start: Start) -> bool:
    """Return whether a start is committed alone: with other rows, or of an elastic job, which may go a step further."""
    return start.warm is not None or start.cursors is not None or start.job.elastic is not None
