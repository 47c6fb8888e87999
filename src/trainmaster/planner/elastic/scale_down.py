"""Which jobs give instances for another, and how many: the cheapest first, no more of each than is needed.

Giving costs a job the same however much it gives, so few give much; what is given beyond need by legal sizes alone is
kept as small as can be. It must not know who may be asked: that is `ways.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.elastic.resize import ShrinkCandidate

Permits = Callable[[ShrinkCandidate, Job, Sequence[Job]], bool]
"""Whether a job may be asked for this part of it, after those before it."""


@dataclass(frozen=True, slots=True)
class ShrinkChoice:
    """A job goes down to a size for another."""

    candidate: ShrinkCandidate
    size: int

    @property
    def freed(self) -> int:
        """Instances that it gives."""
        return self.candidate.size - self.size


def choose_shrinks(
    shrinkable: Iterable[ShrinkCandidate], missing: Units, permits: Permits | None = None
) -> list[ShrinkChoice]:
    """Who gives how much, until nothing is missing, or nobody can give more.

    Args:
        shrinkable: jobs that may be asked, in the order in which they are.
        missing: units still lacking, by pool.
        permits: None: all that they have.
    """
    left, taken = dict(missing), list[ShrinkChoice]()
    parts: list[Job] = []
    for candidate in shrinkable:
        chosen = _choose_shrink(candidate, left.get(candidate.pool, 0), parts, permits)
        if chosen is not None:
            taken.append(chosen)
            left[candidate.pool] -= chosen.freed
    return taken


def by_cost(shrinkable: Iterable[ShrinkCandidate], missing: Units, share: str | None = None) -> list[ShrinkCandidate]:
    """Those who give something that is missing, the cheapest by the instance first; equals of the newcomer last.

    `share`: whose own jobs are asked before all others.
    """
    some = (candidate for candidate in shrinkable if candidate.max_freed > 0 and missing.get(candidate.pool, 0) > 0)

    def key(candidate: ShrinkCandidate) -> tuple[bool, bool, float, int, str]:
        of_use = min(candidate.max_freed, missing[candidate.pool])
        other = share is not None and candidate.job.share != share
        return other, candidate.equal, candidate.cost / of_use, candidate.job.priority, candidate.job.name

    return sorted(some, key=key)


def remaining(missing: Units, taken: Iterable[ShrinkChoice]) -> Units:
    """What is missing once these have given."""
    left = dict(missing)
    for chosen in taken:
        left[chosen.candidate.pool] = left.get(chosen.candidate.pool, 0) - chosen.freed
    return {pool: count for pool, count in left.items() if count > 0}


def drop_redundant(taken: Sequence[ShrinkChoice], spare: Mapping[str, int]) -> list[ShrinkChoice]:
    """The same without what is not needed: whole gifts, the dearest first, then what is too much of one.

    `spare`: instances too many, by pool.
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
    """So many instances of a job, as a job that holds no more: for rules that ask whom they are taken from."""
    attempt = candidate.job.attempt
    return (
        candidate.job
        if attempt is None
        else replace(candidate.job, attempt=replace(attempt, units={candidate.pool: count}))
    )


def _choose_shrink(
    candidate: ShrinkCandidate, wanted: int, parts: list[Job], permits: Permits | None
) -> ShrinkChoice | None:
    """What a job gives of what is wanted; what it gives by steps is put to `parts`."""
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
    """The largest size that the job can keep where so many of its instances are too many."""
    sizes = (chosen.candidate.size, *chosen.candidate.sizes)
    return max(size for size in sizes if size - chosen.size <= spare)
