"""The listing of audit entries, newest first: its filter, its pages, and the places at which callers continue it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from trainmaster.domain import paging
from trainmaster.domain.access.audit import AuditAction, AuditEntry
from trainmaster.domain.errors import InvalidRequest

_MAX_ID_LENGTH = 400

AuditPlace: TypeAlias = tuple[datetime, str]
"""The time of an entry, and its id: the order of the listing, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Filter of a listing.

    Attributes:
        since: only entries from this time on.
        until: only entries before this time.
        job: only entries of this job; None for all.
        who: only callers whose principal or ARN contains this text; None for all.
        action: None for all.
    """

    since: datetime
    until: datetime
    job: str | None = None
    who: str | None = None
    action: AuditAction | None = None

    def matches(self, entry: AuditEntry) -> bool:
        """Return whether an entry between the two times matches."""
        named = self.who is None or self.who in entry.principal or self.who in entry.arn
        return named and self.job in (None, entry.job) and self.action in (None, entry.action)


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of the listing; `cursor` names the next page, None on the last one."""

    entries: tuple[AuditEntry, ...]
    cursor: str | None = None


def audit_page(stored: Iterable[tuple[AuditPlace, AuditEntry | None]], which: AuditFilter, limit: int) -> AuditPage:
    """Return a page of matching entries; it may be short if matches are rare. Unreadable entries are None."""
    found, last = paging.page_of(stored, lambda item: item[1] is not None and which.matches(item[1]), limit)
    entries = tuple(entry for _, entry in found if entry is not None)
    return AuditPage(entries, None if last is None else cursor_text(last[0]))


def check_listing(limit: int, which: AuditFilter) -> None:
    """Raise `InvalidRequest` for an invalid page length, or for a time span that is empty."""
    paging.check_limit(limit, "entries")
    if which.since >= which.until:
        raise InvalidRequest(
            "`since` is not before `until`.", field="since", hint="`until` is the present time if it is omitted."
        )


def cursor_text(place: AuditPlace) -> str:
    """Return the cursor that continues after this place."""
    return paging.cursor_text([place[0].isoformat(), place[1]])


def read_cursor(text: str | None) -> AuditPlace | None:
    """Return the place that a caller's cursor names; None for none. Raises `InvalidRequest`."""
    return None if text is None else paging.read_cursor(text, _place)


def _place(values: list[Any]) -> AuditPlace:
    moment, id_ = values
    if not (isinstance(id_, str) and id_.isascii() and id_.isprintable() and len(id_) <= _MAX_ID_LENGTH):
        raise ValueError("not an id")
    return paging.read_moment(moment), id_
