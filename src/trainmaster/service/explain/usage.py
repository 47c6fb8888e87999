"""Report what shares, pools, users or priorities used in a period, from ended jobs and those that have not ended.

The jobs are read in bounded parts: the numbers of all parts add up to those of the period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain import paging
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.job import ACTIVE, ENDED, Job, JobState
from trainmaster.domain.jobs.listing import Filter, newest_of_each
from trainmaster.domain.shares.usage_totals import Part, Rates, Span, UsageTotals, parts_of
from trainmaster.service.change import ApiContext

BEFORE = timedelta(days=7)
"""The period that is reported by default, until now."""
MAX_SPAN = timedelta(days=366)
MAX_JOBS = 500
"""Jobs that one request reads at most."""
UNKNOWN_USER = "unknown"
_UNFINISHED = frozenset(JobState) - ENDED


class By(StrEnum):
    """Groups of a usage report."""

    SHARE = "share"
    POOL = "pool"
    USER = "user"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A part of the usage in a period.

    Attributes:
        at: the time of the first part: what happened later counts in no part.
        jobs_read: jobs of this part.
        total: over all jobs of this part, each counted once.
        groups: by name; a job counts in each of its pools.
        cursor: names the next part; None on the last one.
    """

    at: datetime
    span: Span
    by: By
    jobs_read: int
    total: UsageTotals
    groups: Mapping[str, UsageTotals]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a part.

    Attributes:
        at: the time of the first part.
        ended: whether ended jobs are read.
        cursor: of the store's listing.
    """

    at: datetime
    ended: bool = False
    cursor: str | None = None

    def text(self) -> str:
        """Return the place as a cursor for callers."""
        return paging.cursor_text([self.at.isoformat(), int(self.ended), self.cursor or ""])

    @classmethod
    def read(cls, values: list[Any]) -> _Place:
        """Return the place of a caller's cursor. Raises ValueError, TypeError."""
        at, ended, cursor = values
        if not isinstance(cursor, str) or ended not in (0, 1):
            raise ValueError("not a place")
        return cls(paging.read_moment(at), bool(ended), cursor or None)


def read_usage(  # noqa: PLR0913 -- the parameters of the query
    context: ApiContext,
    caller: Caller,
    since: datetime | None,
    until: datetime | None,
    *,
    by: By,
    limit: int,
    cursor: str | None,
) -> UsageReport:
    """Return a part of the usage in a period.

    A job that changes while the parts are read may be missing; none counts twice.

    Args:
        context: the dependencies.
        caller: the caller.
        since: UTC; None for a week before the end.
        until: UTC; None for now.
        by: what the numbers are grouped by.
        limit: jobs to read, at most.
        cursor: of the previous part; None for the first.

    Raises `InvalidRequest`, `AccessDenied`.
    """
    context.require(caller, Action.READ)
    place = _Place(context.clock.now()) if cursor is None else paging.read_cursor(cursor, _Place.read)
    end = until or place.at
    span = _checked(Span(end - BEFORE if since is None else since, end))
    jobs, after = _jobs(context, place, span, limit)
    if cursor is not None:
        jobs = [job for job in jobs if not _may_have_been_read(job, place.at)]
    in_force = context.store.settings()
    rates, now = Rates(in_force.pools, in_force.catalogue), place.at
    shown = Span(span.since, min(span.until, now))
    parts = [(job, part) for job in jobs for part in parts_of(job, shown, rates, now)]
    total = sum((part.totals for _, part in parts), start=UsageTotals())
    return UsageReport(now, span, by, len(jobs), total, _grouped(parts, by), None if after is None else after.text())


def _checked(span: Span) -> Span:
    if span.since >= span.until:
        raise InvalidRequest("`from` is not before `to`.", field="to", hint="Choose an earlier `from` or a later `to`.")
    if span.until - span.since > MAX_SPAN:
        raise InvalidRequest(f"A period has at most {MAX_SPAN.days} days.", field="from", hint="Ask for less.")
    return span


def _jobs(context: ApiContext, place: _Place, span: Span, limit: int) -> tuple[list[Job], _Place | None]:
    """Return the jobs of a part, and the place of the next one."""
    found: list[Job] = []
    if not place.ended:
        page = context.store.list_jobs(Filter(states=_UNFINISHED), limit=limit, cursor=place.cursor)
        if page.cursor is not None:
            return list(page.jobs), _Place(place.at, ended=False, cursor=page.cursor)
        found, place = list(page.jobs), _Place(place.at, ended=True)
    if (room := limit - len(found)) <= 0:
        return found, place
    which = Filter(states=ENDED, ended_since=span.since)
    page = context.store.list_jobs(which, limit=room, cursor=place.cursor)
    jobs = list(newest_of_each((*found, *page.jobs)))
    return jobs, None if page.cursor is None else _Place(place.at, ended=True, cursor=page.cursor)


def _may_have_been_read(job: Job, at: datetime) -> bool:
    """Return whether a job may have left a part of the listing that was read before: it has changed since."""
    return job.state not in ACTIVE and bool(job.history) and job.history[-1].at > at


def _grouped(parts: Iterable[tuple[Job, Part]], by: By) -> Mapping[str, UsageTotals]:
    groups: dict[str, UsageTotals] = {}
    for job, part in parts:
        for name in _names(job, part, by):
            groups[name] = groups.get(name, UsageTotals()) + part.totals
    return dict(sorted(groups.items(), key=lambda item: -int(item[0]) if by is By.PRIORITY else item[0]))


def _names(job: Job, part: Part, by: By) -> Iterable[str]:
    if by is By.POOL:
        return part.pools
    names = {By.SHARE: job.share, By.USER: job.submitted_by or UNKNOWN_USER, By.PRIORITY: str(job.priority)}
    return (names[by],)
