"""The preemption candidates of a plan by pool and rank, made when they are first asked for.

Victims hold units of the pools that a blocked job lacks, and have low ranks, so a plan mostly needs few of its active
jobs as candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.times import NEVER
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.preemption.candidates import Candidate, Protection


@dataclass(slots=True)
class CandidateLevels:
    """Candidates by pool and rank; one that holds units of several pools is in the levels of each.

    Attributes:
        holders: the active jobs with units of each pool.
        rank: returns the rank of a job.
        make: returns the candidate of a job and its rank; None if it may not be preempted.
        protections: how candidates that were made are protected.
    """

    holders: Mapping[str, Sequence[Job]]
    rank: Callable[[Job], PreemptionRank]
    make: Callable[[Job, PreemptionRank], Candidate | None]
    protections: set[Protection] = field(default_factory=set)
    _jobs: dict[str, dict[PreemptionRank, list[Job]]] = field(default_factory=dict)
    _ranks: dict[str, list[PreemptionRank]] = field(default_factory=dict)
    _made: dict[str, Candidate | None] = field(default_factory=dict)

    def ranks(self, pool: str) -> list[PreemptionRank]:
        """Return the ranks of the jobs with units of a pool, the lowest first."""
        if pool not in self._ranks:
            jobs = self._jobs[pool] = {}
            for job in self.holders.get(pool, ()):
                jobs.setdefault(self.rank(job), []).append(job)
            self._ranks[pool] = sorted(jobs)
        return self._ranks[pool]

    def at(self, pool: str, rank: PreemptionRank) -> list[Candidate]:
        """Return the candidates of a pool and one of its ranks, in the order in which they are preempted.

        Those that may be preempted first come first, then the cheapest.
        """
        made = [self._candidate(job, rank) for job in self._jobs[pool][rank]]
        return sorted((each for each in made if each is not None and pool in each.units), key=_order)

    def of_pool(self, pool: str) -> list[Candidate]:
        """Return all candidates of a pool, those of the lowest rank first."""
        return [candidate for rank in self.ranks(pool) for candidate in self.at(pool, rank)]

    def by_name(self) -> dict[str, Candidate]:
        """Return the candidates of all pools by name."""
        return {candidate.job.name: candidate for pool in self.holders for candidate in self.of_pool(pool)}

    def remove(self, job: Job) -> Candidate | None:
        """Remove a job from the levels; return its candidate if it was made."""
        candidate, self._made[job.name] = self._made.get(job.name), None
        return candidate

    def _candidate(self, job: Job, rank: PreemptionRank) -> Candidate | None:
        """Return the candidate of a job, made once, so that all pools have the same."""
        if job.name not in self._made:
            made = self._made[job.name] = self.make(job, rank)
            if made is not None:
                self.protections.add(made.protection)
        return self._made[job.name]


def _order(candidate: Candidate) -> tuple[bool, datetime, float, str]:
    until = candidate.until
    return until is not None, until or NEVER, candidate.cost, candidate.job.name
