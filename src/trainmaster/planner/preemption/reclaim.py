"""The options of a blocked job to get units: end idle warm pools, shrink elastic jobs, preempt victims.

No job is preempted if shrinking suffices, and none shrinks unless the blocked job then gets all that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.job import Job, backing_off
from trainmaster.domain.times import NEVER
from trainmaster.planner.elastic.resize import ShrinkCandidate, accelerators_of, can_shrink, cost_of, elastic_of
from trainmaster.planner.elastic.scale_down import (
    Permits,
    ShrinkChoice,
    by_cost,
    choose_shrinks,
    drop_redundant,
    partial_job,
    remaining,
)
from trainmaster.planner.placement.warm_pools import WarmPoolsToEnd
from trainmaster.planner.preemption.preempt import NO_VICTIMS, Candidates, VictimChoice, protected_until
from trainmaster.planner.state import JobView, PlanState


class ReclaimOption(NamedTuple):
    """One way to get units for a blocked job. A tuple, since a plan makes one for each blocked job.

    Attributes:
        units: what the job is to start on.
        warm: warm pools to end.
        choice: victims to preempt, or the protected jobs that prevent it.
        shrinks: elastic jobs to shrink.
    """

    units: Units
    warm: WarmPoolsToEnd
    choice: VictimChoice = NO_VICTIMS
    shrinks: tuple[ShrinkChoice, ...] = ()

    @property
    def sufficient(self) -> bool:
        """True if it frees all that is missing."""
        return bool(self.choice.victims or self.shrinks) or (bool(self.warm.pools) and not self.warm.missing)

    @property
    def cost(self) -> float:
        """Accelerator-seconds of work that it loses."""
        return self.choice.cost + sum(chosen.candidate.cost for chosen in self.shrinks)


@dataclass(slots=True)
class ReclaimOptions:
    """The reclaim options of one plan.

    Attributes:
        state: what is free, claimed and allowed.
    """

    state: PlanState
    _shrinkable: dict[str, ShrinkCandidate] | None = None
    _work_behind: dict[tuple[str, int, int], dict[str, float]] = field(default_factory=dict)

    def option(self, view: JobView, units: Units) -> ReclaimOption:
        """Return how a job could get these units; not `sufficient` if it could not."""
        state, job = self.state, view.job
        missing = view.missing(units)
        warm = state.warm.pools_to_end(job, missing) if state.snapshot.warm else WarmPoolsToEnd((), missing)
        if not warm.missing:
            return ReclaimOption(units, warm)
        if state.elastic_jobs and state.snapshot.policy.resizes.enabled:
            return self._with_shrinks(view, ReclaimOption(units, warm))
        return ReclaimOption(units, warm, view.victims(units, warm.missing))

    def record_shrink(self, chosen: ShrinkChoice) -> None:
        """Record that this plan shrinks a job, which can then shrink further at no cost."""
        candidate = chosen.candidate
        if self._shrinkable is not None:
            self._shrinkable[candidate.job.name] = replace(candidate, size=chosen.size, cost=0.0, equal=False)

    def remove(self, victims: Sequence[Job]) -> None:
        """Remove jobs that this plan preempts."""
        for victim in victims if self._shrinkable else ():
            self.shrinkable.pop(victim.name, None)

    @property
    def shrinkable(self) -> dict[str, ShrinkCandidate]:
        """Jobs that can shrink now, by name."""
        if self._shrinkable is None:
            self._shrinkable = {candidate.job.name: candidate for candidate in self._find()}
        return self._shrinkable

    def _find(self) -> Iterator[ShrinkCandidate]:
        state, snapshot = self.state, self.state.snapshot
        for job in state.elastic_jobs:
            if job.elastic is None or not can_shrink(job) or (found := elastic_of(job)) is None:
                continue
            startup = snapshot.records.history.startup(job)
            if job.elastic.hook is Hook.RESTART and self._protected(job, startup):
                continue
            curve = state.curve(job)
            cost = cost_of(job, snapshot.records.history, snapshot.pools, state.now, curve)
            accelerators = accelerators_of(job, snapshot.pools)
            yield ShrinkCandidate(
                job, next(iter(job.units)), found[1].size, cost, curve=curve, accelerators=accelerators
            )

    def _protected(self, job: Job, startup: float) -> bool:
        """Return True if the job may not be stopped yet; the preemption limit does not keep a job from shrinking."""
        until = protected_until(job, self.state.snapshot.policy.preemption, startup, self.state.now)
        return until not in {None, NEVER}

    def _with_shrinks(self, view: JobView, option: ReclaimOption) -> ReclaimOption:
        """Return the option with shrinks, and with victims for what shrinks do not free."""
        state, missing = self.state, option.warm.missing
        permits = self._permits(view.job, option.units, missing)
        share = view.job.share if state.shares.enabled else None
        seconds = state.expected_ends.run_time(view.job).total_seconds()
        taken = choose_shrinks(by_cost(self._useful(view.job, missing), missing, share, seconds), missing, permits)
        left = remaining(missing, taken)
        if not left:
            fewer = _drop_redundant(taken, missing)
            allowed = permits is None or _permitted(fewer, permits)
            return option._replace(shrinks=tuple(fewer if allowed else taken))
        if not taken:
            return option._replace(choice=view.victims(option.units, missing))
        choice = self._victims_besides(view, option.units, left, taken)
        if not choice.victims:
            return option._replace(choice=choice)
        shrinks = self._shrinks_besides(view, option, taken, choice.victims)
        return option._replace(choice=choice, shrinks=tuple(shrinks))

    def _shrinks_besides(
        self, view: JobView, option: ReclaimOption, taken: Sequence[ShrinkChoice], victims: Sequence[Job]
    ) -> Sequence[ShrinkChoice]:
        """Return the shrinks that are needed besides victims; a victim releases all that it has."""
        names, missing = {victim.name for victim in victims}, option.warm.missing
        rest = [chosen for chosen in taken if chosen.candidate.job.name not in names]
        frees = [victim.staying for victim in victims]
        needed = {pool: n - sum(units.get(pool, 0) for units in frees) for pool, n in missing.items()}
        fewer = _drop_redundant(rest, needed)
        parts = [partial_job(chosen.candidate, chosen.freed) for chosen in fewer]
        permits = view.permits(option.units, missing, parts)
        allowed = permits is None or all(permits(victim, victims[:place]) for place, victim in enumerate(victims))
        return fewer if allowed else rest

    def _useful(self, job: Job, missing: Units) -> Iterator[ShrinkCandidate]:
        """Yield the candidates whose rank lets the job shrink them; the rules of shares come later."""
        state = self.state
        rank = state.ranking.rank
        for candidate in self.shrinkable.values():
            if missing.get(candidate.pool, 0) <= 0:
                continue
            if rank(candidate.job) < rank(job) or (state.shares.enabled and candidate.job.share != job.share):
                yield candidate
            elif candidate.job.priority == job.priority and self._pays_off(job, candidate, missing):
                yield replace(candidate, equal=True)

    def _pays_off(self, job: Job, candidate: ShrinkCandidate, missing: Units) -> bool:
        """Return True if an equal's instances bring the job `payback` times the work that the shrink costs.

        With `shrink_equals`, all work that the job does with them counts, and that of the jobs behind it: a shrink
        costs the same however many instances it releases. Else, in an order in which equals preempt each other, only
        what the job does more than the equal: nothing if that scales linearly, or has not been learned.
        """
        state, resizes = self.state, self.state.snapshot.policy.resizes
        if resizes.shrink_equals:
            gained = self._work_from(job, candidate, missing)
        elif state.order.preempts_equals:
            spared = candidate.spared(min(candidate.max_freed, missing[candidate.pool]))
            gained = spared * state.expected_ends.run_time(job).total_seconds()
        else:
            return False
        return gained > 0 and gained * candidate.accelerators >= resizes.payback * candidate.cost

    def _work_from(self, job: Job, candidate: ShrinkCandidate, missing: Units) -> float:
        """Return the instance-seconds that a job, and its equals behind it, do with instances of a candidate."""
        key = (candidate.pool, candidate.max_freed, job.priority)
        behind = self._work_behind.get(key)
        if behind is None:
            behind = self._work_behind[key] = dict(self._work_behind_each(job.priority, candidate))
        count = min(candidate.max_freed, missing[candidate.pool])
        return count * self.state.expected_ends.run_time(job).total_seconds() + behind.get(job.name, 0.0)

    def _work_behind_each(self, priority: int, candidate: ShrinkCandidate) -> Iterator[tuple[str, float]]:
        """Yield the waiting jobs of a priority, the last first, each with the instance-seconds of those behind it."""
        behind = 0.0
        for job in reversed(self.state.ranking.waiting_in_order()):
            if job.priority == priority:
                yield job.name, behind
                behind += self._work(job, candidate)

    def _work(self, job: Job, candidate: ShrinkCandidate) -> float:
        """Return the instance-seconds that a waiting job does in a candidate's pool; 0 if it could not start there."""
        view = self.state.view_for(job)
        for units in job.demand.alternatives:
            count = units.get(candidate.pool, 0)
            fits = len(units) == 1 and 0 < count <= candidate.max_freed
            if fits and not backing_off(job, self.state.now) and (not view.has_rules or view.refusal(units) is None):
                return count * self.state.expected_ends.run_time(job).total_seconds()
        return 0.0

    def _permits(self, job: Job, units: Units, missing: Units) -> Permits | None:
        """Return the rule of which parts of other jobs the job may take; None if rank alone decides."""
        state = self.state
        if not state.shares.enabled:
            return None
        rank = state.ranking.rank

        def permits(candidate: ShrinkCandidate, part: Job, taken: Sequence[Job]) -> bool:
            outranks = candidate.equal or rank(candidate.job) < rank(job)
            return state.shares.may_preempt(job, units, part, taken, outranks=outranks, missing=missing)

        return permits

    def _victims_besides(self, view: JobView, units: Units, left: Units, taken: Sequence[ShrinkChoice]) -> VictimChoice:
        """Return the victims for what is still missing after all possible shrinks."""
        state = self.state
        shrunk = {chosen.candidate.job.name: chosen for chosen in taken}
        known = state.candidates.by_name
        smaller = (_smaller(c.job, shrunk.get(name)) for name, c in known.items())
        snapshot = replace(state.snapshot, active=tuple(smaller))
        parts = [partial_job(chosen.candidate, chosen.freed) for chosen in taken]
        candidates = Candidates.of(snapshot, state.now, state.ranking.rank)
        choice = candidates.victims(view.job, left, view.permits(units, left, parts))
        return replace(
            choice,
            victims=tuple(known[victim.name].job for victim in choice.victims),
            protected=tuple(known[other.name].job for other in choice.protected),
        )


def _smaller(job: Job, chosen: ShrinkChoice | None) -> Job:
    return job if chosen is None else partial_job(chosen.candidate, chosen.size)


def _drop_redundant(taken: Sequence[ShrinkChoice], missing: Units) -> list[ShrinkChoice]:
    """Return the shrinks without what is not needed."""
    spare = {pool: -count for pool, count in missing.items()}
    for chosen in taken:
        spare[chosen.candidate.pool] = spare.get(chosen.candidate.pool, 0) + chosen.freed
    return drop_redundant(taken, spare)


def _permitted(taken: Sequence[ShrinkChoice], permits: Permits) -> bool:
    """Return True if the rules permit each shrink in full after those before it."""
    parts: list[Job] = []
    for chosen in taken:
        again = choose_shrinks(
            [chosen.candidate],
            {chosen.candidate.pool: chosen.freed},
            lambda candidate, part, _: permits(candidate, part, parts),
        )
        if not again or again[0].size > chosen.size:
            return False
        parts.append(partial_job(chosen.candidate, chosen.freed))
    return True
