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

    slack: ShrinkCandidate
    size: int

    @property
    def freed(self) -> int:
        """Instances that it gives."""
        return self.slack.size - self.size


def gifts(slacks: Iterable[ShrinkCandidate], missing: Units, permits: Permits | None = None) -> list[ShrinkChoice]:
    """Who gives how much, until nothing is missing, or nobody can give more.

    Args:
        slacks: jobs that may be asked, in the order in which they are.
        missing: units still lacking, by pool.
        permits: None: all that they have.
    """
    left, taken = dict(missing), list[ShrinkChoice]()
    parts: list[Job] = []
    for slack in slacks:
        gift = _gift(slack, left.get(slack.pool, 0), parts, permits)
        if gift is not None:
            taken.append(gift)
            left[slack.pool] -= gift.freed
    return taken


def in_order(slacks: Iterable[ShrinkCandidate], missing: Units, share: str | None = None) -> list[ShrinkCandidate]:
    """Those who give something that is missing, the cheapest by the instance first; equals of the newcomer last.

    `share`: whose own jobs are asked before all others.
    """
    some = (slack for slack in slacks if slack.room > 0 and missing.get(slack.pool, 0) > 0)

    def key(slack: ShrinkCandidate) -> tuple[bool, bool, float, int, str]:
        of_use = min(slack.room, missing[slack.pool])
        other = share is not None and slack.job.share != share
        return other, slack.equal, slack.cost / of_use, slack.job.priority, slack.job.name

    return sorted(some, key=key)


def remaining(missing: Units, taken: Iterable[ShrinkChoice]) -> Units:
    """What is missing once these have given."""
    left = dict(missing)
    for gift in taken:
        left[gift.slack.pool] = left.get(gift.slack.pool, 0) - gift.freed
    return {pool: count for pool, count in left.items() if count > 0}


def drop_redundant(taken: Sequence[ShrinkChoice], spare: Mapping[str, int]) -> list[ShrinkChoice]:
    """The same without what is not needed: whole gifts, the dearest first, then what is too much of one.

    `spare`: instances too many, by pool.
    """
    left = dict(spare)
    kept = {gift.slack.job.name: gift for gift in taken}
    for gift in sorted(taken, key=lambda gift: (not gift.slack.equal, -gift.slack.cost, gift.slack.job.name)):
        pool, name = gift.slack.pool, gift.slack.job.name
        size = _largest(gift, left.get(pool, 0))
        left[pool] = left.get(pool, 0) - (size - gift.size)
        if size == gift.slack.size:
            del kept[name]
        else:
            kept[name] = replace(gift, size=size)
    return list(kept.values())


def part_of(slack: ShrinkCandidate, count: int) -> Job:
    """So many instances of a job, as a job that holds no more: for rules that ask whom they are taken from."""
    attempt = slack.job.attempt
    return slack.job if attempt is None else replace(slack.job, attempt=replace(attempt, units={slack.pool: count}))


def _gift(slack: ShrinkCandidate, wanted: int, parts: list[Job], permits: Permits | None) -> ShrinkChoice | None:
    """What a job gives of what is wanted; what it gives by steps is put to `parts`."""
    size = slack.size
    for next_ in slack.sizes if wanted > 0 else ():
        part = part_of(slack, size - next_) if permits is not None else slack.job
        if permits is not None and not permits(slack, part, parts):
            break
        parts.append(part)
        size = next_
        if slack.size - size >= wanted:
            break
    return ShrinkChoice(slack, size) if size < slack.size else None


def _largest(gift: ShrinkChoice, spare: int) -> int:
    """The largest size that the job can keep where so many of its instances are too many."""
    sizes = (gift.slack.size, *gift.slack.sizes)
    return max(size for size in sizes if size - gift.size <= spare)
