"""A sorted set of keys in chunks, fast for a million keys.

A single list would move half a million pointers for each insertion in its middle.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Any)
_MAX_CHUNK = 1_000
"""Keys in a chunk; a larger chunk is split."""


class SortedKeys(Generic[K]):
    """Unique keys in ascending order."""

    def __init__(self) -> None:
        self._chunks: list[list[K]] = []
        self._tops: list[K] = []

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def add(self, key: K) -> None:
        """Add a key that is not in the set."""
        if not self._chunks:
            self._chunks, self._tops = [[key]], [key]
            return
        at = min(bisect_left(self._tops, key), len(self._chunks) - 1)
        chunk = self._chunks[at]
        insort(chunk, key)
        if len(chunk) > _MAX_CHUNK:
            # A queue grows at its end, where a split in the middle would leave every chunk half full.
            middle = _MAX_CHUNK if chunk[-1] == key else _MAX_CHUNK // 2
            self._chunks.insert(at + 1, chunk[middle:])
            self._tops.insert(at + 1, chunk[-1])
            del chunk[middle:]
        self._tops[at] = chunk[-1]

    def remove(self, key: K) -> None:
        """Remove a key. Raises KeyError if it is not in the set."""
        at = bisect_left(self._tops, key)
        chunk = self._chunks[at] if at < len(self._chunks) else []
        index = bisect_left(chunk, key)
        if index == len(chunk) or chunk[index] != key:
            raise KeyError(key)
        del chunk[index]
        if chunk:
            self._tops[at] = chunk[-1]
        else:
            del self._chunks[at], self._tops[at]

    def first(self, count: int) -> list[K]:
        """Return the first keys in ascending order, at most `count`."""
        found: list[K] = []
        for chunk in self._chunks:
            if len(found) == count:
                break
            found += chunk[: count - len(found)]
        return found

    def after(self, key: K | None = None) -> Iterator[K]:
        """Yield the keys greater than this one in ascending order; all keys for None."""
        at = 0 if key is None else bisect_right(self._tops, key)
        for number in range(at, len(self._chunks)):
            chunk = self._chunks[number]
            yield from chunk[bisect_right(chunk, key) :] if key is not None and number == at else chunk

    def before(self, key: K | None = None) -> Iterator[K]:
        """Yield the keys less than this one in descending order; all keys for None."""
        at = len(self._chunks) - 1 if key is None else min(bisect_left(self._tops, key), len(self._chunks) - 1)
        for number in range(at, -1, -1):
            chunk = self._chunks[number]
            yield from reversed(chunk if key is None or number < at else chunk[: bisect_left(chunk, key)])
