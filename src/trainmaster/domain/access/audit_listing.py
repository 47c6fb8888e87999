"""The listing of audit entries, newest first: its filter, its pages, and the cursors by which callers continue it.

A cursor comes from callers, so every value in it is checked, and it determines only where to continue.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from trainmaster.domain.access.audit import AuditAction, AuditEntry
from trainmaster.domain.errors import InvalidRequest

MAX_EXAMINED = 1_000
"""Entries that one call examines, so that rare matches take several calls and not one long one."""
MAX_LISTED = 1_000
"""Entries on a page, at most."""
_MAX_CURSOR_LENGTH = 400

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
    found: list[AuditEntry] = []
    last: AuditPlace | None = None
    for examined, (place, entry) in enumerate(stored):
        if last is not None and (len(found) == limit or examined >= MAX_EXAMINED):
            return AuditPage(tuple(found), cursor_text(last))
        if entry is not None and which.matches(entry):
            found.append(entry)
        last = place
    return AuditPage(tuple(found))


def check_listing(limit: int, which: AuditFilter) -> None:
    """Raise `InvalidRequest` for an invalid page length, or for a time span that is empty."""
    if not 1 <= limit <= MAX_LISTED:
        raise InvalidRequest(f"A page can have 1 to {MAX_LISTED} entries.", field="limit")
    if which.since >= which.until:
        raise InvalidRequest(
            "`since` is not before `until`.", field="since", hint="`until` is the present time if it is omitted."
        )


def cursor_text(place: AuditPlace) -> str:
    """Return the cursor that continues after this place, as opaque text for a URL."""
    packed = json.dumps([place[0].isoformat(), place[1]], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def read_cursor(text: str | None) -> AuditPlace | None:
    """Return the place that a caller's cursor names; None for none. Raises `InvalidRequest`."""
    if text is None:
        return None
    try:
        return _place(text)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidRequest(
            "The cursor is not valid.",
            field="cursor",
            hint="Omit it to start with the newest entry, or pass a nextCursor unchanged.",
        ) from error


def _place(text: str) -> AuditPlace:
    if len(text) > _MAX_CURSOR_LENGTH:
        raise ValueError("too long")
    try:
        packed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    values: Any = json.loads(packed)
    if not isinstance(values, list):
        raise TypeError("not a place")
    moment, id_ = values
    if not (isinstance(id_, str) and id_.isascii() and id_.isprintable() and len(id_) <= _MAX_CURSOR_LENGTH):
        raise ValueError("not an id")
    at = datetime.fromisoformat(moment)
    if at.tzinfo is None:
        raise ValueError("not a moment")
    return at.astimezone(UTC), id_
