"""Chooses the elastic jobs that shrink for another job, and their sizes: the cheapest first, only as far as needed.

A shrink costs a job the same however many units it releases, so the choice prefers few jobs that release many units,
and as few units beyond the need as legal sizes allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.elastic.resize import ShrinkCandidate

Permits = Callable[[ShrinkCandidate, Job, Sequence[Job]], bool]
"""A function that returns True if a job may be shrunk by this part after the parts before it."""


@dataclass(frozen=True, slots=True)
class ShrinkChoice:
    """A job that shrinks to a size for another job."""

    candidate: ShrinkCandidate
    size: int

    @property
    def freed(self) -> int:
        """Instances that it releases."""
        return self.candidate.size - self.size


def choose_shrinks(
    shrinkable: Iterable[ShrinkCandidate], missing: Units, permits: Permits | None = None
) -> list[ShrinkChoice]:
    """Return which jobs shrink and to which sizes, until nothing is missing or none can shrink further.

    Args:
        shrinkable: candidates, in the order in which they shrink.
        missing: units that are missing, by pool.
        permits: None if every candidate may shrink as far as it can.
    """
    left, taken = dict(missing), list[ShrinkChoice]()
    parts: list[Job] = []
    for candidate in shrinkable:
        chosen = _choose_shrink(candidate, left.get(candidate.pool, 0), parts, permits)
        if chosen is not None:
            taken.append(chosen)
            left[candidate.pool] -= chosen.freed
    return taken


def by_cost(
    shrinkable: Iterable[ShrinkCandidate], missing: Units, share: str | None = None, seconds: float = 0.0
) -> list[ShrinkCandidate]:
    """Return useful candidates by cost of an instance; equals of the job for which they shrink come last.

    A job that scales worse than linearly loses less work by a shrink than the other job does with the instances.

    Args:
        shrinkable: the candidates.
        missing: units that are missing, by pool.
        share: the share whose own jobs come first; None to ignore shares.
        seconds: how long the instances are missed.
    """
    some = (candidate for candidate in shrinkable if candidate.max_freed > 0 and missing.get(candidate.pool, 0) > 0)

    def key(candidate: ShrinkCandidate) -> tuple[bool, bool, float, int, str]:
        of_use = min(candidate.max_freed, missing[candidate.pool])
        other = share is not None and candidate.job.share != share
        cost = candidate.cost - candidate.spared(of_use) * candidate.accelerators * seconds
        return other, candidate.equal, cost / of_use, candidate.job.priority, candidate.job.name

    return sorted(some, key=key)


def remaining(missing: Units, taken: Iterable[ShrinkChoice]) -> Units:
    """Return what is missing after these shrinks."""
    left = dict(missing)
    for chosen in taken:
        left[chosen.candidate.pool] = left.get(chosen.candidate.pool, 0) - chosen.freed
    return {pool: count for pool, count in left.items() if count > 0}


def drop_redundant(taken: Sequence[ShrinkChoice], spare: Mapping[str, int]) -> list[ShrinkChoice]:
    """Return the shrinks without what is not needed: first whole shrinks, the most expensive first, then parts.

    Args:
        taken: the shrinks.
        spare: instances that are freed beyond need, by pool.
    """
    left = dict(spare)
    kept = {chosen.candidate.job.name: chosen for chosen in taken}
    for chosen in sorted(
        taken, key=lambda chosen: (not chosen.candidate.equal, -chosen.candidate.cost, chosen.candidate.job.name)
    ):
        pool, name = chosen.candidate.pool, chosen.candidate.job.name
        size = _largest_kept(chosen, left.get(pool, 0))
        left[pool] = left.get(pool, 0) - (size - chosen.size)
        if size == chosen.candidate.size:
            del kept[name]
        else:
            kept[name] = replace(chosen, size=size)
    return list(kept.values())


def partial_job(candidate: ShrinkCandidate, count: int) -> Job:
    """Return a job that holds only this many of the instances, for rules about the jobs that units are taken from."""
    attempt = candidate.job.attempt
    return (
        candidate.job
        if attempt is None
        else replace(candidate.job, attempt=replace(attempt, units={candidate.pool: count}))
    )


def _choose_shrink(
    candidate: ShrinkCandidate, wanted: int, parts: list[Job], permits: Permits | None
) -> ShrinkChoice | None:
    """Return how far a candidate shrinks for what is wanted; adds each step that it takes to `parts`."""
    size = candidate.size
    for next_ in candidate.sizes if wanted > 0 else ():
        part = partial_job(candidate, size - next_) if permits is not None else candidate.job
        if permits is not None and not permits(candidate, part, parts):
            break
        parts.append(part)
        size = next_
        if candidate.size - size >= wanted:
            break
    return ShrinkChoice(candidate, size) if size < candidate.size else None


def _largest_kept(chosen: ShrinkChoice, spare: int) -> int:
    """Return the largest size that the job can keep if this many freed instances are not needed."""
    sizes = (chosen.candidate.size, *chosen.candidate.sizes)
    return max(size for size in sizes if size - chosen.size <= spare)
