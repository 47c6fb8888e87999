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
    drop_redundant,
    gifts,
    in_order,
    part_of,
    remaining,
)
from trainmaster.planner.placement.warm_pools import InTheWay
from trainmaster.planner.preemption.preempt import Candidates, Choice, protected_until
from trainmaster.planner.state import PlanState


@dataclass(frozen=True, slots=True)
class ReclaimOption:
    """How a blocked job could get units: what is ended, who shrinks and who steps aside for it."""

    units: Units
    warm: InTheWay
    choice: Choice = field(default_factory=Choice)
    shrinks: tuple[ShrinkChoice, ...] = ()

    @property
    def open(self) -> bool:
        """Whether that frees all that is missing."""
        return bool(self.choice.victims or self.shrinks) or (bool(self.warm.pools) and not self.warm.missing)

    @property
    def cost(self) -> float:
        """Accelerator-seconds that are lost in all."""
        return self.choice.cost + sum(gift.slack.cost for gift in self.shrinks)


@dataclass(slots=True)
class ReclaimOptions:
    """The ways of one plan. Thrown away with it.

    Attributes:
        figures: what is free, promised and allowed.
        sizes: what jobs that shrink by this plan are to have.
    """

    state: PlanState
    sizes: dict[str, int] = field(default_factory=dict)
    _slacks: dict[str, ShrinkCandidate] | None = None

    def way(self, job: Job, units: Units) -> ReclaimOption:
        """How the job could get these units; not `open` where it could not."""
        state = self.state
        missing = state.missing(job, units)
        warm = state.warm.in_the_way(job, missing) if state.snapshot.warm else InTheWay(missing=missing)
        if not warm.missing:
            return ReclaimOption(units, warm)
        if state.elastic and state.snapshot.policy.resizes.enabled:
            return self._with_shrinks(job, ReclaimOption(units, warm))
        return ReclaimOption(units, warm, state.victims(job, units, warm.missing))

    def shrink(self, gift: ShrinkChoice) -> None:
        """The job gives by this plan; it can give more, at no more cost, but is not stopped besides."""
        slack = gift.slack
        self.sizes[slack.job.name] = gift.size
        if self._slacks is not None:
            self._slacks[slack.job.name] = replace(slack, size=gift.size, cost=0.0, equal=False)

    def remove(self, victims: Sequence[Job]) -> None:
        """These step aside whole."""
        for victim in victims if self._slacks else ():
            self.slacks.pop(victim.name, None)

    @property
    def slacks(self) -> dict[str, ShrinkCandidate]:
        """Who could give instances now, by name."""
        if self._slacks is None:
            self._slacks = {slack.job.name: slack for slack in self._find()}
        return self._slacks

    def _find(self) -> Iterator[ShrinkCandidate]:
        state, snapshot = self.state, self.state.snapshot
        for job in state.elastic:
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

    def _with_shrinks(self, job: Job, way: ReclaimOption) -> ReclaimOption:
        state, missing = self.state, way.warm.missing
        permits = self._permits(job, way.units, missing)
        share = job.share if state.shares.in_play else None
        slacks = in_order(self._of_use(job, missing), missing, share)
        taken = gifts(slacks, missing, permits)
        left = remaining(missing, taken)
        if not left:
            fewer = _spared(taken, missing)
            allowed = permits is None or _permitted(fewer, permits)
            return replace(way, shrinks=tuple(fewer if allowed else taken))
        if not taken:
            return replace(way, choice=state.victims(job, way.units, missing))
        choice = self._besides(job, way.units, left, taken)
        if not choice.victims:
            return replace(way, choice=choice)
        return replace(way, choice=choice, shrinks=tuple(self._beside(job, way, taken, choice.victims)))

    def _beside(
        self, job: Job, way: ReclaimOption, taken: Sequence[ShrinkChoice], victims: Sequence[Job]
    ) -> Sequence[ShrinkChoice]:
        """Who gives, as far as that is needed beside victims; whoever steps aside gives all that it has."""
        names, missing = {victim.name for victim in victims}, way.warm.missing
        rest = [gift for gift in taken if gift.slack.job.name not in names]
        frees = [victim.staying for victim in victims]
        needed = {pool: n - sum(units.get(pool, 0) for units in frees) for pool, n in missing.items()}
        fewer = _spared(rest, needed)
        permits = self.state.permits(job, way.units, missing, [part_of(gift.slack, gift.freed) for gift in fewer])
        allowed = permits is None or all(permits(victim, victims[:place]) for place, victim in enumerate(victims))
        return fewer if allowed else rest

    def _of_use(self, job: Job, missing: Units) -> Iterator[ShrinkCandidate]:
        """Who could be asked, were it not for the rules of shares: those of lower standing; equals by the policy."""
        state = self.state
        standing, equals = state.ranking.standing, state.snapshot.policy.resizes.shrink_equals
        for slack in self.slacks.values():
            if missing.get(slack.pool, 0) <= 0:
                continue
            if standing(slack.job) < standing(job) or (state.shares.in_play and slack.job.share != job.share):
                yield slack
            elif equals and slack.job.priority == job.priority and self._worth(job, slack, missing):
                yield replace(slack, equal=True)

    def _worth(self, job: Job, slack: ShrinkCandidate, missing: Units) -> bool:
        """Whether what an equal gives does more work with the newcomer than giving costs, as often as is asked for."""
        state = self.state
        pools, payback = state.snapshot.pools, state.snapshot.policy.resizes.payback
        each = pools[slack.pool].accelerators if slack.pool in pools else 1
        count = min(slack.room, missing[slack.pool])
        return count * each * state.expect.run_time(job).total_seconds() >= payback * slack.cost

    def _permits(self, job: Job, units: Units, missing: Units) -> Permits | None:
        """Whether the job may have a part of another; None where shares are not in play, and standing alone decides."""
        state = self.state
        if not state.shares.in_play:
            return None
        standing = state.ranking.standing

        def permits(slack: ShrinkCandidate, part: Job, taken: Sequence[Job]) -> bool:
            outranks = slack.equal or standing(slack.job) < standing(job)
            return state.shares.may_take(job, units, part, taken, outranks=outranks, missing=missing)

        return permits

    def _besides(self, job: Job, units: Units, left: Units, taken: Sequence[ShrinkChoice]) -> Choice:
        """Who steps aside for what is still missing once all have given that can."""
        state = self.state
        given = {gift.slack.job.name: gift for gift in taken}
        known = state.candidates.by_name
        smaller = (_smaller(c.job, given.get(name)) for name, c in known.items())
        snapshot = replace(state.snapshot, active=tuple(smaller))
        parts = [part_of(gift.slack, gift.freed) for gift in taken]
        among = Candidates.among(snapshot, state.now, state.ranking.standing)
        choice = among.victims(job, left, state.permits(job, units, left, parts))
        return replace(
            choice,
            victims=tuple(known[victim.name].job for victim in choice.victims),
            protected=tuple(known[other.name].job for other in choice.protected),
        )


def _smaller(job: Job, gift: ShrinkChoice | None) -> Job:
    return job if gift is None else part_of(gift.slack, gift.size)


def _spared(taken: Sequence[ShrinkChoice], missing: Units) -> list[ShrinkChoice]:
    """The gifts without what is not needed."""
    spare = {pool: -count for pool, count in missing.items()}
    for gift in taken:
        spare[gift.slack.pool] = spare.get(gift.slack.pool, 0) + gift.freed
    return drop_redundant(taken, spare)


def _permitted(taken: Sequence[ShrinkChoice], permits: Permits) -> bool:
    """Whether each may be asked for all that it gives, after those before it."""
    parts: list[Job] = []
    for gift in taken:
        again = gifts([gift.slack], {gift.slack.pool: gift.freed}, lambda slack, part, _: permits(slack, part, parts))
        if not again or again[0].size > gift.size:
            return False
        parts.append(part_of(gift.slack, gift.freed))
    return True
