"""Which jobs step aside for a job of better standing, and which may not. It must not decide whether anybody should.

Victims have strictly lower standing, so that no two jobs can preempt each other in turn; the rules against thrashing
protect some of them for a while. The lowest standings that suffice are the cutoff; within it the set that loses least
work steps aside, and nobody who is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import PRIORITY_LIMIT, Job, JobState
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Preemption
from trainmaster.domain.shares.usage import accelerators_of
from trainmaster.domain.times import NEVER
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.preemption.candidates import Candidate, Permits
from trainmaster.planner.preemption.eligible import CandidateIndex, EligibleCandidates, Preemptor
from trainmaster.planner.preemption.victims import best_set, drop_redundant, take_in_order


@dataclass(frozen=True, slots=True)
class VictimChoice:
    """Who steps aside; or, where the rules against thrashing alone stand in the way, whom they protect.

    Attributes:
        victims: an irreducible set, in the order in which each is permitted; empty where no set suffices.
        highest_rank: the best standing among them.
        cost: GPU-seconds that are lost in all.
        protected: whom the job could have preempted, but for the rules.
        until: when all of those may be preempted; None where they may not be any more.
    """

    victims: tuple[Job, ...] = ()
    highest_rank: PreemptionRank = ()
    cost: float = 0.0
    protected: tuple[Job, ...] = ()
    until: datetime | None = None


NO_VICTIMS = VictimChoice()
_MAY_STOP = (JobState.STARTING, JobState.RUNNING, JobState.RESIZING)
_HIGHEST: PreemptionRank = (PRIORITY_LIMIT + 1,)


def may_be_preempted(job: Job) -> bool:
    """Whether a job may be preempted at all: SageMaker has it, and it neither stops already nor is exempt.

    Nor does an image job whose regions are done: while its results are merged it holds nothing that could be freed. Nor
    an elastic job whose own training job has ended: what its members still hold is on the way to be free.
    """
    attempt = job.attempt
    known = attempt is not None and attempt.launched and attempt.stop_asked_at is None
    return known and job.preemptible and job.state in _MAY_STOP and any(job.staying.values())


def protected_until(job: Job, rules: Preemption, startup: float, now: datetime) -> datetime | None:
    """Until when the rules against thrashing protect an active job; None where they do not.

    `NEVER` for one that has been they have reached the preemption limit.

    Its own wishes go before the queue's rules. An attempt that is not at work yet counts from when it is expected to
    be, so that a job for which AWS has no instances is not protected for ever.

    Args:
        job: the job.
        rules: the queue's.
        startup: seconds that a start of the job is expected to take.
        now: UTC.
    """
    attempt, wishes = job.attempt, job.wishes
    if attempt is None:
        return None
    most = rules.max_preemptions if wishes.max_preemptions is None else wishes.max_preemptions
    preemptions = job.preemptions if job.past else 0
    if most is not None and preemptions >= most:
        return NEVER
    span = protected_for(job, rules, preemptions)
    if not span:
        return None
    until = (attempt.started_at or attempt.created_at + timedelta(seconds=startup)) + span
    return until if until > now else None


def protected_for(job: Job, rules: Preemption, preemptions: int) -> timedelta:
    """How long an attempt of the job is protected once it is at work; its own wishes go before the queue's rules."""
    wishes = job.wishes
    span = rules.min_runtime if wishes.min_runtime is None else wishes.min_runtime
    if preemptions:
        span = max(span, rules.cooldown if wishes.cooldown is None else wishes.cooldown)
    return span


def lost_work(job: Job, startup: float, now: datetime) -> float:
    """Seconds of work that stepping aside would cost each accelerator of an active job.

    What has been done since the newest checkpoint, or since the start where it writes none, is done again, and so is
    its start. A start that is under way costs only what of it has passed.
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
    """Jobs that may step aside, and those that the rules against thrashing protect for now. Made by `among`."""

    snapshot: Snapshot
    now: datetime
    rank: Callable[[Job], PreemptionRank]
    _lowest: PreemptionRank | None = None
    _by_name: dict[str, Candidate] | None = None
    _preemptible_now: CandidateIndex | None = None
    _with_protected: dict[bool, CandidateIndex | None] = field(default_factory=dict)
    _choices: dict[EligibleCandidates, VictimChoice | None] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime, rank: Callable[[Job], PreemptionRank]) -> Candidates:
        """The candidates among the active jobs of a snapshot, looked at when they are first asked for."""
        return cls(snapshot, now, rank)

    @property
    def by_name(self) -> dict[str, Candidate]:
        """Those who are left: first who may step aside now, then who may soonest, the cheapest first."""
        if self._by_name is None:
            now, able = self.now, filter(may_be_preempted, self.snapshot.active)
            found = [_candidate(job, self.snapshot, now, self.rank(job)) for job in able]
            found.sort(key=lambda c: (c.until or now, c.cost, c.job.name))
            self._by_name = {candidate.job.name: candidate for candidate in found}
        return self._by_name

    @property
    def preemptible_now(self) -> CandidateIndex:
        """Those who may step aside now."""
        if self._preemptible_now is None:
            self._preemptible_now = CandidateIndex.of(
                candidate for candidate in self.by_name.values() if candidate.until is None
            )
        return self._preemptible_now

    def victims(
        self, job: Job, missing: Units, permits: Permits | None = None, permit_key: Hashable = None
    ) -> VictimChoice:
        """Who steps aside for a job that lacks these units.

        Args:
            job: for whom.
            missing: units still lacking, by pool; all positive.
            permits: which victims are allowed; None: those of strictly lower standing.
            permit_key: with `permits`, equal for calls in which it answers alike, which are answered once.
        """
        rank = self.rank(job)
        if permits is None and self._no_lower_rank(rank):
            return NO_VICTIMS
        preemptor = Preemptor(job.share, rank, missing, permits, permit_key)
        return self._choose(preemptor) or self._protected(preemptor) or NO_VICTIMS

    def _no_lower_rank(self, rank: PreemptionRank) -> bool:
        """Whether nobody of lower standing is active: then nobody needs to be looked at more closely."""
        if self._lowest is None:
            self._lowest = min(map(self.rank, self.snapshot.active), default=_HIGHEST)
        return self._lowest >= rank

    def preemptible_by(self, job: Job, at: datetime) -> bool:
        """Whether a waiting job, started now, could be preempted by then: the rules would not protect it any more."""
        rules, wishes = self.snapshot.policy.preemption, job.wishes
        most = rules.max_preemptions if wishes.max_preemptions is None else wishes.max_preemptions
        preemptions = job.preemptions if job.attempt is not None else 0
        if not job.preemptible or (most is not None and preemptions >= most):
            return False
        return self.now + protected_for(job, rules, preemptions) <= at

    def remove(self, victims: Iterable[Job]) -> None:
        """These are taken; nobody else may count on them."""
        for victim in victims:
            candidate = self.by_name.pop(victim.name, None)
            if candidate is not None:
                for index in self._indexes_of(candidate):
                    index.drop(candidate)
        self._choices.clear()

    def _indexes_of(self, candidate: Candidate) -> list[CandidateIndex]:
        """The shelves that have been put up with this candidate: one that gives only a part may not be on all."""
        until = candidate.until
        found = [self._preemptible_now] if until is None else []
        found += [index for ever, index in self._with_protected.items() if ever or until != NEVER]
        return [index for index in found if index is not None]

    def _choose(self, preemptor: Preemptor) -> VictimChoice | None:
        eligible = self.preemptible_now.eligible(preemptor)
        return None if eligible is None else self._cached(eligible, lambda: _choice(best_set(eligible, preemptor)))

    def _protected(self, preemptor: Preemptor) -> VictimChoice | None:
        """Whom the job could preempt later, if anybody; else whom it could, had they not been preempted so often."""
        for ever in (False, True):
            index = self._index_with_protected(ever=ever)
            eligible = None if index is None else index.eligible(preemptor)
            if (
                eligible is not None
                and (choice := self._cached(eligible, partial(_protected_choice, eligible, preemptor))) is not None
            ):
                return choice
        return None

    def _cached(self, eligible: EligibleCandidates, answer: Callable[[], VictimChoice | None]) -> VictimChoice | None:
        """Newcomers with the same reach get the same answer, which is looked for once."""
        if eligible not in self._choices:
            self._choices[eligible] = answer()
        return self._choices[eligible]

    def _index_with_protected(self, *, ever: bool) -> CandidateIndex | None:
        """The candidates with those that are protected for a time, or with all; None where that adds nobody."""
        if ever not in self._with_protected:
            among = [c for c in self.by_name.values() if ever or c.until != NEVER]
            adds = any(c.until is not None and (c.until == NEVER) is ever for c in among)
            self._with_protected[ever] = CandidateIndex.of(among) if adds else None
        return self._with_protected[ever]


def _candidate(job: Job, snapshot: Snapshot, now: datetime, rank: PreemptionRank) -> Candidate:
    history = snapshot.records.history
    startup = history.startup(job) if history.startups else 0.0
    pools, attempt = snapshot.pools, job.attempt
    units = job.units if attempt is None or attempt.resizing is None else job.staying
    # Of image jobs, which have no accelerators, those with the fewest requests go first.
    accelerators = accelerators_of(units, pools) or sum(units.values())
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
    """Those among the first to be free of protection that are needed, and when all of them are."""

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
