"""How a blocked job could get units: which idle warm pools are ended, which elastic jobs shrink, and who steps aside.

Nobody is preempted where shrinking suffices; where it does not, nobody shrinks in vain. It must not decide whether to
go that way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.times import NEVER
from trainmaster.planner.elastic.resize import ShrinkCandidate, can_shrink, cost_of, elastic_of
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
from trainmaster.planner.preemption.preempt import Candidates, VictimChoice, protected_until
from trainmaster.planner.state import PlanState


@dataclass(frozen=True, slots=True)
class ReclaimOption:
    """How a blocked job could get units: what is ended, who shrinks and who steps aside for it."""

    units: Units
    warm: WarmPoolsToEnd
    choice: VictimChoice = field(default_factory=VictimChoice)
    shrinks: tuple[ShrinkChoice, ...] = ()

    @property
    def sufficient(self) -> bool:
        """Whether that frees all that is missing."""
        return bool(self.choice.victims or self.shrinks) or (bool(self.warm.pools) and not self.warm.missing)

    @property
    def cost(self) -> float:
        """Accelerator-seconds that are lost in all."""
        return self.choice.cost + sum(chosen.candidate.cost for chosen in self.shrinks)


@dataclass(slots=True)
class ReclaimOptions:
    """The ways of one plan. Thrown away with it.

    Attributes:
        figures: what is free, promised and allowed.
        sizes: what jobs that shrink by this plan are to have.
    """

    state: PlanState
    sizes: dict[str, int] = field(default_factory=dict)
    _shrinkable: dict[str, ShrinkCandidate] | None = None

    def option(self, job: Job, units: Units) -> ReclaimOption:
        """How the job could get these units; not `sufficient` where it could not."""
        state = self.state
        missing = state.missing(job, units)
        warm = state.warm.pools_to_end(job, missing) if state.snapshot.warm else WarmPoolsToEnd(missing=missing)
        if not warm.missing:
            return ReclaimOption(units, warm)
        if state.elastic_jobs and state.snapshot.policy.resizes.enabled:
            return self._with_shrinks(job, ReclaimOption(units, warm))
        return ReclaimOption(units, warm, state.victims(job, units, warm.missing))

    def shrink(self, chosen: ShrinkChoice) -> None:
        """The job gives by this plan; it can give more, at no more cost, but is not stopped besides."""
        candidate = chosen.candidate
        self.sizes[candidate.job.name] = chosen.size
        if self._shrinkable is not None:
            self._shrinkable[candidate.job.name] = replace(candidate, size=chosen.size, cost=0.0, equal=False)

    def remove(self, victims: Sequence[Job]) -> None:
        """These step aside whole."""
        for victim in victims if self._shrinkable else ():
            self.shrinkable.pop(victim.name, None)

    @property
    def shrinkable(self) -> dict[str, ShrinkCandidate]:
        """Who could give instances now, by name."""
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
            cost = cost_of(job, snapshot.records.history, snapshot.pools, state.now)
            yield ShrinkCandidate(job, next(iter(job.units)), found[1].size, cost)

    def _protected(self, job: Job, startup: float) -> bool:
        """Whether the job may not be stopped yet; one that may never be preempted again is not, it goes on."""
        until = protected_until(job, self.state.snapshot.policy.preemption, startup, self.state.now)
        return until not in {None, NEVER}

    def _with_shrinks(self, job: Job, option: ReclaimOption) -> ReclaimOption:
        state, missing = self.state, option.warm.missing
        permits = self._permits(job, option.units, missing)
        share = job.share if state.shares.enabled else None
        shrinkable = by_cost(self._useful(job, missing), missing, share)
        taken = choose_shrinks(shrinkable, missing, permits)
        left = remaining(missing, taken)
        if not left:
            fewer = _drop_redundant(taken, missing)
            allowed = permits is None or _permitted(fewer, permits)
            return replace(option, shrinks=tuple(fewer if allowed else taken))
        if not taken:
            return replace(option, choice=state.victims(job, option.units, missing))
        choice = self._victims_besides(job, option.units, left, taken)
        if not choice.victims:
            return replace(option, choice=choice)
        return replace(option, choice=choice, shrinks=tuple(self._shrinks_besides(job, option, taken, choice.victims)))

    def _shrinks_besides(
        self, job: Job, option: ReclaimOption, taken: Sequence[ShrinkChoice], victims: Sequence[Job]
    ) -> Sequence[ShrinkChoice]:
        """Who gives, as far as that is needed beside victims; whoever steps aside gives all that it has."""
        names, missing = {victim.name for victim in victims}, option.warm.missing
        rest = [chosen for chosen in taken if chosen.candidate.job.name not in names]
        frees = [victim.staying for victim in victims]
        needed = {pool: n - sum(units.get(pool, 0) for units in frees) for pool, n in missing.items()}
        fewer = _drop_redundant(rest, needed)
        permits = self.state.permits(
            job, option.units, missing, [partial_job(chosen.candidate, chosen.freed) for chosen in fewer]
        )
        allowed = permits is None or all(permits(victim, victims[:place]) for place, victim in enumerate(victims))
        return fewer if allowed else rest

    def _useful(self, job: Job, missing: Units) -> Iterator[ShrinkCandidate]:
        """Who could be asked, were it not for the rules of shares: those of lower standing; equals by the policy."""
        state = self.state
        rank, equals = state.ranking.rank, state.snapshot.policy.resizes.shrink_equals
        for candidate in self.shrinkable.values():
            if missing.get(candidate.pool, 0) <= 0:
                continue
            if rank(candidate.job) < rank(job) or (state.shares.enabled and candidate.job.share != job.share):
                yield candidate
            elif equals and candidate.job.priority == job.priority and self._worth(job, candidate, missing):
                yield replace(candidate, equal=True)

    def _worth(self, job: Job, candidate: ShrinkCandidate, missing: Units) -> bool:
        """Whether what an equal gives does more work with the newcomer than giving costs, as often as is asked for."""
        state = self.state
        pools, payback = state.snapshot.pools, state.snapshot.policy.resizes.payback
        each = pools[candidate.pool].accelerators if candidate.pool in pools else 1
        count = min(candidate.max_freed, missing[candidate.pool])
        return count * each * state.expected_ends.run_time(job).total_seconds() >= payback * candidate.cost

    def _permits(self, job: Job, units: Units, missing: Units) -> Permits | None:
        """Whether the job may have a part of another; None where shares are not in play, and standing alone decides."""
        state = self.state
        if not state.shares.enabled:
            return None
        rank = state.ranking.rank

        def permits(candidate: ShrinkCandidate, part: Job, taken: Sequence[Job]) -> bool:
            outranks = candidate.equal or rank(candidate.job) < rank(job)
            return state.shares.may_preempt(job, units, part, taken, outranks=outranks, missing=missing)

        return permits

    def _victims_besides(self, job: Job, units: Units, left: Units, taken: Sequence[ShrinkChoice]) -> VictimChoice:
        """Who steps aside for what is still missing once all have given that can."""
        state = self.state
        given = {chosen.candidate.job.name: chosen for chosen in taken}
        known = state.candidates.by_name
        smaller = (_smaller(c.job, given.get(name)) for name, c in known.items())
        snapshot = replace(state.snapshot, active=tuple(smaller))
        parts = [partial_job(chosen.candidate, chosen.freed) for chosen in taken]
        among = Candidates.among(snapshot, state.now, state.ranking.rank)
        choice = among.victims(job, left, state.permits(job, units, left, parts))
        return replace(
            choice,
            victims=tuple(known[victim.name].job for victim in choice.victims),
            protected=tuple(known[other.name].job for other in choice.protected),
        )


def _smaller(job: Job, chosen: ShrinkChoice | None) -> Job:
    return job if chosen is None else partial_job(chosen.candidate, chosen.size)


def _drop_redundant(taken: Sequence[ShrinkChoice], missing: Units) -> list[ShrinkChoice]:
    """The gifts without what is not needed."""
    spare = {pool: -count for pool, count in missing.items()}
    for chosen in taken:
        spare[chosen.candidate.pool] = spare.get(chosen.candidate.pool, 0) + chosen.freed
    return drop_redundant(taken, spare)


def _permitted(taken: Sequence[ShrinkChoice], permits: Permits) -> bool:
    """Whether each may be asked for all that it gives, after those before it."""
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
