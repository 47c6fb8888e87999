"""Victims: the jobs that a job of higher rank preempts, and the rules that protect jobs for a while.

Victims have strictly lower rank, so that no two jobs can preempt each other in turn. The lowest ranks that suffice are
the cutoff; within it, the set that loses the least work is preempted, without redundant jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Preemption
from trainmaster.domain.shares.usage import accelerators_of
from trainmaster.domain.times import NEVER
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.preemption.candidates import Candidate, CumulativeUnits, Permits, Protection
from trainmaster.planner.preemption.eligible import CandidateIndex, EligibleCandidates, Preemptor, below
from trainmaster.planner.preemption.levels import CandidateLevels
from trainmaster.planner.preemption.victims import best_set, drop_redundant, take_in_order


@dataclass(frozen=True, slots=True)
class VictimChoice:
    """The victims; or, if only protection prevents preemption, the protected jobs.

    Attributes:
        victims: an irreducible set, in the order in which each is permitted; empty if no set suffices.
        highest_rank: the highest rank among them.
        cost: GPU-seconds that are lost in all.
        protected: jobs that could be preempted but for their protection.
        until: when the protection of all of them has ended; None if it does not end.
    """

    victims: tuple[Job, ...] = ()
    highest_rank: PreemptionRank = ()
    cost: float = 0.0
    protected: tuple[Job, ...] = ()
    until: datetime | None = None


NO_VICTIMS = VictimChoice()
_STOPPABLE = (JobState.STARTING, JobState.RUNNING, JobState.RESIZING)


def may_be_preempted(job: Job) -> bool:
    """Return True if a job can be preempted: SageMaker knows it, and it is neither stopping nor exempt.

    Not a job of another kind whose parts are done, which holds nothing; nor an elastic job whose
    base has ended, since its members are about to release their units.
    """
    attempt = job.attempt
    known = attempt is not None and attempt.launched and attempt.stop_asked_at is None
    return known and job.preemptible and job.state in _STOPPABLE and any(job.staying.values())


def protected_until(job: Job, rules: Preemption, startup: float, now: datetime) -> datetime | None:
    """Return until when the rules protect an active job; None if they do not, `NEVER` at the preemption limit.

    The job's own settings override the queue's. An attempt that is not running yet counts from its expected start, so
    that a job for which AWS has no instances is not protected forever.

    Args:
        job: the job.
        rules: the queue's.
        startup: seconds that a start of the job is expected to take.
        now: UTC.
    """
    attempt, overrides = job.attempt, job.preemption_overrides
    if attempt is None:
        return None
    limit = rules.max_preemptions if overrides.max_preemptions is None else overrides.max_preemptions
    preemptions = job.preemptions if job.past else 0
    if limit is not None and preemptions >= limit:
        return NEVER
    span = protected_for(job, rules, preemptions)
    if not span:
        return None
    until = (attempt.started_at or attempt.created_at + timedelta(seconds=startup)) + span
    return until if until > now else None


def protected_for(job: Job, rules: Preemption, preemptions: int) -> timedelta:
    """Return how long a running attempt of the job is protected; the job's own settings override the queue's."""
    overrides = job.preemption_overrides
    span = rules.min_runtime if overrides.min_runtime is None else overrides.min_runtime
    if preemptions:
        span = max(span, rules.cooldown if overrides.cooldown is None else overrides.cooldown)
    return span


def lost_work(job: Job, startup: float, now: datetime) -> float:
    """Return the seconds of work that preempting an active job would cost each of its accelerators.

    Work since the newest checkpoint, or since the start without checkpoints, is done again, and so is the start. A
    start in progress costs only the time that has passed.
    """
    attempt = job.attempt
    if attempt is None:
        return 0.0
    if attempt.started_at is None:
        return min(startup, max((now - attempt.created_at).total_seconds(), 0.0))
    since = attempt.started_at
    if job.checkpointed and attempt.saved_at is not None:
        since = max(since, attempt.saved_at)
    return max((now - since).total_seconds(), 0.0) + startup


@dataclass(slots=True)
class Candidates:
    """Active jobs that may be preempted, and those that are protected for now."""

    snapshot: Snapshot
    now: datetime
    rank: Callable[[Job], PreemptionRank]
    _levels: CandidateLevels | None = None
    _held: dict[str, dict[str, CumulativeUnits]] = field(default_factory=dict)
    _indexes: dict[Protection, CandidateIndex] = field(default_factory=dict)
    _choices: dict[EligibleCandidates, VictimChoice | None] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime, rank: Callable[[Job], PreemptionRank]) -> Candidates:
        """Return the candidates among the active jobs of a snapshot, which are computed when first asked for."""
        return cls(snapshot, now, rank)

    @property
    def levels(self) -> CandidateLevels:
        """Candidates by pool and rank."""
        if self._levels is None:
            # No method of this object: a cycle would keep the plan until the garbage collector runs.
            make = partial(_candidate, self.snapshot, self.now)
            self._levels = CandidateLevels(self.snapshot.holders, self.rank, make)
        return self._levels

    @property
    def by_name(self) -> dict[str, Candidate]:
        """All candidates by name."""
        return self.levels.by_name()

    def victims(
        self, job: Job, missing: Units, permits: Permits | None = None, permit_key: Hashable = None
    ) -> VictimChoice:
        """Return the victims for a job that lacks these units.

        Args:
            job: the preemptor.
            missing: units that it lacks, by pool; all positive.
            permits: which victims are allowed; None for those of strictly lower rank.
            permit_key: with `permits`, equal for calls in which it answers alike, which are answered once.
        """
        rank = self.rank(job)
        if permits is None and self._no_lower_rank(rank, missing):
            return NO_VICTIMS
        preemptor = Preemptor(job.share, rank, missing, permits, permit_key)
        return self._choose(preemptor) or self._protected(preemptor) or NO_VICTIMS

    def units_below(self, job: Job, pool: str) -> int:
        """Return the units of a pool that running jobs of the job's share hold that it may preempt, now or later."""
        held = self._held_by_share(pool).get(job.share)
        return 0 if held is None else held.up_to(below(self.rank(job)))

    def _held_by_share(self, pool: str) -> dict[str, CumulativeUnits]:
        """Return the units of a pool that candidates below their preemption limit hold, by share."""
        if pool not in self._held:
            self._held[pool] = {}
            for candidate in self.levels.of_pool(pool):
                self._count_held(pool, candidate, 1)
        return self._held[pool]

    def _count_held(self, pool: str, candidate: Candidate, sign: int) -> None:
        if candidate.until != NEVER:
            held = self._held[pool].setdefault(candidate.job.share, CumulativeUnits())
            held.add(candidate.rank, sign * candidate.units[pool])

    def _no_lower_rank(self, rank: PreemptionRank, missing: Units) -> bool:
        """Return True if no job has a lower rank in one of these pools, so that no candidate need be looked at."""
        return any(not (ranks := self.levels.ranks(pool)) or ranks[0] >= rank for pool in missing)

    def preemptible_by(self, job: Job, at: datetime) -> bool:
        """Return True if a waiting job, started now, would be past its protection by then."""
        rules, overrides = self.snapshot.policy.preemption, job.preemption_overrides
        limit = rules.max_preemptions if overrides.max_preemptions is None else overrides.max_preemptions
        preemptions = job.preemptions if job.attempt is not None else 0
        if not job.preemptible or (limit is not None and preemptions >= limit):
            return False
        return self.now + protected_for(job, rules, preemptions) <= at

    def remove(self, victims: Iterable[Job]) -> None:
        """Remove jobs that the plan preempts."""
        for victim in victims:
            candidate = self.levels.remove(victim)
            if candidate is not None:
                for index in self._indexes.values():
                    index.drop(candidate)
                for pool in candidate.units.keys() & self._held.keys():
                    self._count_held(pool, candidate, -1)
        self._choices.clear()

    def _choose(self, preemptor: Preemptor) -> VictimChoice | None:
        eligible = self._index(Protection.NONE).eligible(preemptor)
        return None if eligible is None else self._cached(eligible, lambda: _choice(best_set(eligible, preemptor)))

    def _protected(self, preemptor: Preemptor) -> VictimChoice | None:
        """Return the protected jobs that could be preempted later; else those at their preemption limit."""
        for kind in (Protection.FOR_A_TIME, Protection.FOR_GOOD):
            # Those that could be victims have all been looked at by now.
            eligible = self._index(kind).eligible(preemptor) if kind in self.levels.protections else None
            if (
                eligible is not None
                and (choice := self._cached(eligible, partial(_protected_choice, eligible, preemptor))) is not None
            ):
                return choice
        return None

    def _cached(self, eligible: EligibleCandidates, answer: Callable[[], VictimChoice | None]) -> VictimChoice | None:
        """Return the answer for these eligible candidates, computed once."""
        if eligible not in self._choices:
            self._choices[eligible] = answer()
        return self._choices[eligible]

    def _index(self, most_protected: Protection) -> CandidateIndex:
        """Return the candidates that are protected like this or less."""
        if most_protected not in self._indexes:
            self._indexes[most_protected] = CandidateIndex(self.levels, most_protected)
        return self._indexes[most_protected]


def _candidate(snapshot: Snapshot, now: datetime, job: Job, rank: PreemptionRank) -> Candidate | None:
    """Return an active job as a candidate; None if it may not be preempted."""
    if not may_be_preempted(job):
        return None
    history, attempt = snapshot.records.history, job.attempt
    startup = history.startup(job) if history.startups else 0.0
    units = job.units if attempt is None or attempt.resizing is None else job.staying
    # Jobs of other kinds have no accelerators; those with the fewest requests are the cheapest.
    accelerators = accelerators_of(units, snapshot.pools) or sum(units.values())
    until = protected_until(job, snapshot.policy.preemption, startup, now)
    return Candidate(job, units, rank, lost_work(job, startup, now) * accelerators, until)


def _choice(taken: Sequence[Candidate]) -> VictimChoice | None:
    if not taken:
        return None
    highest = max(candidate.rank for candidate in taken)
    return VictimChoice(
        tuple(candidate.job for candidate in taken), highest, sum(candidate.cost for candidate in taken)
    )


def _protected_choice(eligible: EligibleCandidates, preemptor: Preemptor) -> VictimChoice | None:
    """Return the protected jobs that are needed, those whose protection ends first, and when it has ended for all."""

    def soonest(candidate: Candidate) -> tuple[bool, bool, datetime, float, str]:
        other = preemptor.permits is not None and candidate.job.share != preemptor.share
        until = candidate.until
        return other, until is not None, until or NEVER, candidate.cost, candidate.job.name

    missing, permits = preemptor.missing, preemptor.permits
    ordered = sorted(eligible.candidates(missing), key=soonest)
    taken = drop_redundant(take_in_order(ordered, missing, permits), missing, permits)
    latest = max((candidate.until for candidate in taken if candidate.until is not None), default=None)
    if latest is None:
        return None
    for_good = latest == NEVER
    held = [c.job for c in taken if c.until is not None and (c.until == NEVER or not for_good)]
    return VictimChoice(protected=tuple(held), until=None if for_good else latest)
