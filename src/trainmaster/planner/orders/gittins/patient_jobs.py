"""The jobs beyond the patience that go before all others: the oldest, as far as a part of the pools holds them.

In an overloaded pool nearly all jobs wait longer than the patience. If all of those went first, the pool would be first
in, first out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from trainmaster.domain.capacity.units import covers
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.settings import Policy

PART = 0.5
"""Part of the accelerators on which jobs beyond the patience go first."""
LimitedTogether = tuple[str, str, str]
"""Share, user and group, as far as limits may apply to them."""


class PatientJob(NamedTuple):
    """A job beyond the patience; sorted in the order of arrival.

    Attributes:
        arrived: its entry time.
        name: of the job.
        width: its accelerators.
        runs: whether it holds units.
        limited: the jobs that may have to wait for the same limit.
    """

    arrived: datetime
    name: str
    width: int
    runs: bool
    limited: LimitedTogether

    @classmethod
    def of(cls, job: Job, width: int, policy: Policy) -> PatientJob:
        """Return a job of so many accelerators, with what the limits of the policy may apply to."""
        share = policy.shares.get(job.share)
        user = job.submitted_by if share is not None and share.max_per_user else None
        limited = (job.share if policy.shares else "", user or "", job.group or "")
        return cls(job.entry_time, job.name, width, bool(job.units), limited)


def fits_when_empty(job: Job, caps: Mapping[str, int]) -> bool:
    """Return True if pools with these caps could hold the job if they were empty."""
    return any(covers(caps, units) for units in job.demand.alternatives)


def go_first(jobs: Iterable[PatientJob], room: float) -> Iterator[str]:
    """Yield the names of the jobs that go first: the oldest, however wide, and those after it that fit.

    Those that wait take room only from jobs that the same limits apply to: a job that waits for a limit, and not for
    its turn, must not keep the others from going first.

    Args:
        jobs: of one priority and one group of pools, that the pools could hold if they were empty.
        room: accelerators on which they go first.
    """
    held, kept = 0, dict[LimitedTogether, int]()
    for job in sorted(jobs):
        before = held if job.runs else held + kept.get(job.limited, 0)
        if before and before + job.width > room:
            continue
        yield job.name
        if job.runs:
            held += job.width
        else:
            kept[job.limited] = kept.get(job.limited, 0) + job.width
