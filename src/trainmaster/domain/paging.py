"""Pages of listings, and the cursors by which callers continue them.

A cursor comes from callers, so every value in it is checked, and it determines only where to continue, never what may
be read.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from trainmaster.domain.compat import UTC, parse_iso
from trainmaster.domain.errors import InvalidRequest

MAX_EXAMINED = 1_000
"""Maximum number of items that one call examines, so that rare matches take several calls and not one long one."""
MAX_PAGE_LENGTH = 1_000
"""Maximum number of items on a page."""

_MAX_CURSOR_LENGTH = 2_000

Item = TypeVar("Item")
Place = TypeVar("Place")


def page_of(items: Iterable[Item], matches: Callable[[Item], bool], limit: int) -> tuple[tuple[Item, ...], Item | None]:
    """Return a page of matching items and the last examined item, behind which the next page begins.

    The page may be short if matches are rare; the last item is None only at the end.
    """
    found: list[Item] = []
    last: Item | None = None
    for examined, item in enumerate(items):
        if last is not None and (len(found) == limit or examined >= MAX_EXAMINED):
            return tuple(found), last
        if matches(item):
            found.append(item)
        last = item
    return tuple(found), None


def check_limit(limit: int, items: str = "jobs") -> None:
    """Raise `InvalidRequest` for an invalid page length; the message names the items in the plural."""
    if not 1 <= limit <= MAX_PAGE_LENGTH:
        raise InvalidRequest(f"A page can have 1 to {MAX_PAGE_LENGTH} {items}.", field="limit")


def cursor_text(place: Sequence[str | int]) -> str:
    """Return a place as opaque text for a URL."""
    packed = json.dumps(list(place), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def read_cursor(text: str, read: Callable[[list[Any]], Place]) -> Place:
    """Return the place of a caller's cursor, from its values; `read` raises ValueError or TypeError for wrong ones.

    Raises `InvalidRequest`.
    """
    try:
        return read(_unpacked(text))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidRequest(
            "The cursor is not valid.",
            field="cursor",
            hint="Omit it to start with the first page, or pass a nextCursor unchanged.",
        ) from error


def read_moment(value: Any) -> datetime:
    """Return the time that a cursor contains. Raises ValueError or TypeError."""
    moment = parse_iso(value)
    if moment.tzinfo is None:
        raise ValueError("not a moment")
    return moment.astimezone(UTC)


def _unpacked(text: str) -> list[Any]:
    if len(text) > _MAX_CURSOR_LENGTH:
        raise ValueError("too long")
    try:
        packed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    place = json.loads(packed)
    if not isinstance(place, list) or not place:
        raise ValueError("not a place")
    return place
