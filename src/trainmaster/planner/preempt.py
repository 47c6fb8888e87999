"""Which jobs step aside for a job of better standing, and which may not. It must not decide whether anybody should.

Victims have strictly lower standing, so that no two jobs can preempt each other in turn; the rules against thrashing
protect some of them for a while. The lowest standings that suffice are the cutoff; within it the set that loses least
work steps aside, and nobody who is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import prod

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Job, JobState
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy import Preemption
from trainmaster.planner.victims import (
    Candidate,
    Permits,
    Shelf,
    Standing,
    cheapest,
    cutoff_of,
    in_turn,
    irreducible,
    relevant,
    thrifty,
)

EXACT_WORK = 20_000
"""Steps of the exact search for the cheapest victims (a few milliseconds); beyond it, the nearly cheapest are taken."""
NEVER = datetime.max.replace(tzinfo=UTC)
"""Until when a job is protected that has been preempted as often as a job may be."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Who steps aside; or, where the rules against thrashing alone stand in the way, whom they protect.

    Attributes:
        victims: an irreducible set, in the order in which each is permitted; empty where no set suffices.
        highest: the best standing among them.
        cost: GPU-seconds that are lost in all.
        protected: whom the job could have preempted, but for the rules.
        until: when those may be preempted; None where some of them may not be any more.
    """

    victims: tuple[Job, ...] = ()
    highest: Standing = ()
    cost: float = 0.0
    protected: tuple[Job, ...] = ()
    until: datetime | None = None


NOBODY = Choice()


def may_step_aside(job: Job) -> bool:
    """Whether a job may be preempted at all: SageMaker has it, and it neither stops already nor is exempt."""
    attempt = job.attempt
    known = attempt is not None and attempt.launched and attempt.stop_asked_at is None
    return known and job.preemptible and job.state in (JobState.STARTING, JobState.RUNNING)


def protected_until(job: Job, rules: Preemption, startup: float, now: datetime) -> datetime | None:
    """Until when the rules against thrashing protect an active job; None where they do not.

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
    most = rules.most if wishes.most is None else wishes.most
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

    standing: Callable[[Job], Standing]
    rules: Preemption
    now: datetime
    open_: dict[str, Shelf] = field(default_factory=dict)
    all_: dict[str, Shelf] = field(default_factory=dict)
    by_name: dict[str, Candidate] = field(default_factory=dict)
    _known: dict[tuple[Standing, tuple[tuple[str, int], ...]], Choice] = field(default_factory=dict)

    @classmethod
    def among(cls, snapshot: Snapshot, now: datetime, standing: Callable[[Job], Standing]) -> Candidates:
        """The candidates among the active jobs of a snapshot."""
        candidates = cls(standing, snapshot.policy.preemption, now)
        found = [_candidate(job, snapshot, now, standing(job)) for job in filter(may_step_aside, snapshot.active)]
        for candidate in sorted(found, key=lambda c: (c.cost, c.job.name)):
            candidates.by_name[candidate.job.name] = candidate
            for pool in candidate.units:
                candidates.all_.setdefault(pool, Shelf(pool)).put(candidate)
                if candidate.until is None:
                    candidates.open_.setdefault(pool, Shelf(pool)).put(candidate)
        return candidates

    def victims(self, job: Job, missing: Units, permits: Permits | None = None) -> Choice:
        """Who steps aside for a job that lacks these units.

        Args:
            job: for whom.
            missing: units still lacking, by pool; all positive.
            permits: which victims are allowed; None: those of strictly lower standing.
        """
        standing = self.standing(job)
        if permits is None:
            permits = self._lower(standing)
            cutoff = cutoff_of(self.open_, missing)
            if cutoff is not None and cutoff < standing:
                return self._cheapest(missing, cutoff)
            beyond = cutoff_of(self.all_, missing)
            if beyond is None or beyond >= standing:
                return NOBODY
            return _protected(in_turn(self.all_, missing, permits))
        taken = in_turn(self.open_, missing, permits)
        if taken:
            return _choice(irreducible(taken, missing, permits))
        return _protected(in_turn(self.all_, missing, permits))

    def would_yield(self, job: Job, at: datetime) -> bool:
        """Whether a waiting job, started now, could be preempted by then: the rules would not protect it any more."""
        rules, wishes = self.rules, job.wishes
        most = rules.most if wishes.most is None else wishes.most
        preemptions = job.preemptions if job.attempt is not None else 0
        if not job.preemptible or (most is not None and preemptions >= most):
            return False
        return self.now + protected_for(job, rules, preemptions) <= at

    def remove(self, victims: Iterable[Job]) -> None:
        """These are taken; nobody else may count on them."""
        for victim in victims:
            candidate = self.by_name.pop(victim.name)
            for pool in candidate.units:
                self.all_[pool].drop(candidate)
                if candidate.until is None:
                    self.open_[pool].drop(candidate)
        self._known.clear()

    def _lower(self, standing: Standing) -> Permits:
        return lambda victim, taken: self.by_name[victim.name].standing < standing  # noqa: ARG005 -- a Permits

    def _cheapest(self, missing: Units, cutoff: Standing) -> Choice:
        key = (cutoff, tuple(sorted(missing.items())))
        if key not in self._known:
            items = relevant(self.open_, missing, cutoff)
            exact = len(items) * prod(count + 1 for count in missing.values()) <= EXACT_WORK
            self._known[key] = _choice(cheapest(items, missing) if exact else thrifty(items, missing))
        return self._known[key]


def _candidate(job: Job, snapshot: Snapshot, now: datetime, standing: Standing) -> Candidate:
    startup = snapshot.records.history.startup(job)
    pools, units = snapshot.pools, job.units
    accelerators = sum(count * (pools[name].accelerators if name in pools else 1) for name, count in units.items())
    until = protected_until(job, snapshot.policy.preemption, startup, now)
    return Candidate(job, units, standing, lost_work(job, startup, now) * accelerators, until)


def _choice(taken: Sequence[Candidate]) -> Choice:
    if not taken:
        return NOBODY
    ordered = sorted(taken, key=lambda c: (c.standing, c.cost, c.job.name))
    return Choice(tuple(c.job for c in ordered), ordered[-1].standing, sum(c.cost for c in ordered))


def _protected(taken: Sequence[Candidate]) -> Choice:
    times = [c.until for c in taken if c.until is not None]
    if not times:
        return NOBODY
    latest = max(times)
    return Choice(protected=tuple(c.job for c in taken if c.until), until=None if latest == NEVER else latest)
