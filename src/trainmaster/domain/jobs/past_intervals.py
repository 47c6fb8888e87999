"""The sizes that an attempt has had, which the history of an elastic job tells, and the work that its end lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState


@dataclass(frozen=True, slots=True)
class PastSize:
    """Units that an attempt held for a while, and holds no longer."""

    units: Units
    since: datetime
    until: datetime


def past_sizes(job: Job, attempt: Attempt) -> tuple[PastSize, ...]:
    """Return what an attempt held until its end, or until it began to hold its present units, in the order of time.

    A first size that the history no longer tells is derived from the work that the attempt has done.
    """
    if attempt.given:
        return tuple(_sizes_of_parts(attempt))
    end = attempt.held_since if attempt.ended_at is None else attempt.ended_at
    if end <= attempt.created_at:
        return ()
    changes = [
        (line.at, line.size)
        for line in job.history
        if line.attempt == attempt.number
        and line.size is not None
        and attempt.created_at < line.at < end
        and line.before is JobState.RESIZING
    ]
    if not changes:
        return (
            (PastSize(attempt.units, attempt.created_at, end),) if attempt.ended_at is not None else _unknown(attempt)
        )
    pool = next(iter(attempt.units))
    times = [attempt.created_at, *(at for at, _ in changes), end]
    sizes = [_first_size(attempt, changes, end), *(size for _, size in changes)]
    spans = zip(sizes, times, times[1:], strict=False)
    return tuple(PastSize({pool: size}, since, until) for size, since, until in spans if size > 0 and until > since)


def present_since(attempt: Attempt) -> datetime:
    """Return the time from which an active attempt has held what `past_sizes` leaves out."""
    return attempt.releases[-1].at if attempt.releases else attempt.held_since


def _sizes_of_parts(attempt: Attempt) -> Iterator[PastSize]:
    """Yield the sizes of an attempt of another kind's job, which fall as parts of its work are done."""
    pool = next(iter(attempt.units), None)
    times = [attempt.created_at, *(release.at for release in attempt.releases)]
    sizes = [attempt.given, *(release.left for release in attempt.releases)]
    for size, since, until in zip(sizes, times, [*times[1:], attempt.ended_at], strict=True):
        if pool is not None and until is not None and size > 0 and until > since:
            yield PastSize({pool: size}, since, until)


def lost_seconds(job: Job, attempt: Attempt) -> int:
    """Return the seconds of work since the newest known checkpoint of an attempt, or since its start without one."""
    if attempt.started_at is None or attempt.ended_at is None:
        return 0
    since = attempt.started_at
    if attempt.saved_at is not None and (job.checkpointed or job.work is not None):
        since = max(since, attempt.saved_at)
    return max(int((attempt.ended_at - since).total_seconds()), 0)


def _unknown(attempt: Attempt) -> tuple[PastSize, ...]:
    """Return the size of a running attempt before its first change."""
    pool, since = next(iter(attempt.units), None), attempt.started_at or attempt.created_at
    seconds = (attempt.held_since - since).total_seconds()
    size = int(attempt.served / seconds) if seconds > 0 else 0
    return () if pool is None or size <= 0 else (PastSize({pool: size}, attempt.created_at, attempt.held_since),)


def _first_size(attempt: Attempt, changes: list[tuple[datetime, int]], end: datetime) -> int:
    """Return the size before the first change: the work in all, less that of the later sizes, over its time."""
    served = attempt.served if attempt.ended_at is None else attempt.served_in_all
    ends = [*(at for at, _ in changes[1:]), end]
    later = sum(size * (until - at).total_seconds() for (at, size), until in zip(changes, ends, strict=True))
    seconds = (changes[0][0] - (attempt.started_at or changes[0][0])).total_seconds()
    return max(int((served - later) / seconds + 0.01), 0) if seconds > 0 else 0
