"""Merges two sorted lists of training jobs, page by page: SageMaker's, which comes in pages, and the queue's own."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

_PREFIX = "queue."
Entry = dict[str, Any]
Page = tuple[Sequence[Entry], "str | None"]
"""Entries, and SageMaker's token of the page after them."""
SortKey = tuple[Any, str]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the merged list, which `NextToken` names.

    Attributes:
        token: SageMaker's own token of the page that comes next; None for the first.
        after: sort key of the last entry that was taken from that page.
        own: sort key of the last entry that was taken from the queue.
        ended: whether SageMaker's list has come to its end.
    """

    token: str | None = None
    after: SortKey | None = None
    own: SortKey | None = None
    ended: bool = False

    def encode(self) -> str:
        """Return the place as a `NextToken`."""
        return _PREFIX + base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def decode(cls, token: str | None) -> Place | None:
        """Return the place of a `NextToken`; the start without one, and None for a token of SageMaker's."""
        if token is None:
            return cls()
        if not token.startswith(_PREFIX):
            return None
        try:
            place = json.loads(base64.urlsafe_b64decode(token.removeprefix(_PREFIX)))
            keys = {member: tuple(place[member]) for member in ("after", "own") if place[member]}
            return cls(**place | keys)
        except (ValueError, TypeError, KeyError):
            return None


@dataclass(frozen=True, slots=True)
class Order:
    """Order of entries: by a key, names breaking ties."""

    key: Callable[[Entry], Any]
    name: Callable[[Entry], str]
    descending: bool

    def of(self, entry: Entry) -> SortKey:
        """Return the entry's sort key."""
        value = self.key(entry)
        return (value.timestamp() if isinstance(value, datetime) else value), self.name(entry)

    def precedes(self, one: SortKey, other: SortKey) -> bool:
        """Return whether one key comes before the other; a missing value is the least of all."""
        first, second = _comparable(one), _comparable(other)
        return first > second if self.descending else first < second

    def sort(self, entries: Sequence[Entry], after: SortKey | None) -> list[Entry]:
        """Return the entries in order, without those up to a key."""
        ordered = sorted(entries, key=lambda entry: _comparable(self.of(entry)), reverse=self.descending)
        return [entry for entry in ordered if after is None or self.precedes(after, self.of(entry))]


def merge(page: Page, own: Sequence[Entry], place: Place, order: Order, size: int) -> tuple[list[Entry], Place | None]:
    """Return the next entries, at most `size`, and the place after them; None at the end.

    Args:
        page: SageMaker's page at the place, without the queue's attempts; its order is kept.
        own: the queue's entries from the place on, in order.
        place: where to begin.
        order: the order of both lists.
        size: how many entries at most.
    """
    entries, following = page
    i, j, merged = _taken(entries, place.after, order), 0, list[Entry]()
    while len(merged) < size and (i < len(entries) or (following is None and j < len(own))):
        if i == len(entries) or (j < len(own) and order.precedes(order.of(own[j]), order.of(entries[i]))):
            merged.append(own[j])
            j += 1
        else:
            merged.append(entries[i])
            i += 1
    last_own = order.of(own[j - 1]) if j else place.own
    if i < len(entries):
        return merged, Place(place.token, order.of(entries[i - 1]) if i else None, last_own)
    if following is not None:
        return merged, Place(following, None, last_own)
    return merged, Place(None, None, last_own, ended=True) if j < len(own) else None


def _taken(page: Sequence[Entry], after: SortKey | None, order: Order) -> int:
    """Return how many of the page's entries were taken: those up to one, or, if that is gone, up to its place."""
    if after is None:
        return 0
    names = [order.name(entry) for entry in page]
    if after[1] in names:
        return names.index(after[1]) + 1
    return sum(not order.precedes(after, order.of(entry)) for entry in page)


def _comparable(key: SortKey) -> tuple[bool, Any, str]:
    value, name = key
    return value is not None, value if value is not None else 0, name
