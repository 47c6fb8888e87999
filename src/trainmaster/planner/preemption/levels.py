"""The preemption candidates of a plan by rank, each rank made when first asked for.

Victims have low ranks, so a plan mostly needs few of its active jobs as candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.times import NEVER
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.preemption.candidates import Candidate, Protection


@dataclass(slots=True)
class CandidateLevels:
    """Candidates by rank and name.

    Attributes:
        ranks: the ranks of all active jobs, the lowest first.
        protections: how candidates that were made are protected.
    """

    ranks: list[PreemptionRank]
    protections: set[Protection] = field(default_factory=set)
    _jobs: Mapping[PreemptionRank, list[Job]] = field(kw_only=True)
    _make: Callable[[Job, PreemptionRank], Candidate | None] = field(kw_only=True)
    _made: dict[PreemptionRank, dict[str, Candidate]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        active: Iterable[Job],
        rank: Callable[[Job], PreemptionRank],
        make: Callable[[Job, PreemptionRank], Candidate | None],
    ) -> CandidateLevels:
        """Return the levels of these jobs.

        Args:
            active: all active jobs.
            rank: returns the rank of a job.
            make: returns the candidate of a job and its rank; None if it may not be preempted.
        """
        jobs: dict[PreemptionRank, list[Job]] = {}
        for job in active:
            jobs.setdefault(rank(job), []).append(job)
        return cls(sorted(jobs), _jobs=jobs, _make=make)

    def at(self, rank: PreemptionRank) -> dict[str, Candidate]:
        """Return the candidates of a rank by name: those that may be preempted first come first, then the cheapest."""
        if rank not in self._made:
            made = (self._make(job, rank) for job in self._jobs[rank])
            found = sorted((each for each in made if each is not None), key=_order)
            self._made[rank] = {candidate.job.name: candidate for candidate in found}
            self.protections.update(candidate.protection for candidate in found)
        return self._made[rank]


def _order(candidate: Candidate) -> tuple[bool, datetime, float, str]:
    until = candidate.until
    return until is not None, until or NEVER, candidate.cost, candidate.job.name
