"""Differences between two JSON values, so that a page gets only what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Change = list[Any]
"""Path of a member, and its new value; a member that is gone has no value.

With a third element, the change rearranges a list of named items: the second has the items that are new, and the third
the old place of each item of the new list, -1 for the next of those that are new.
"""


def differences(old: Any, new: Any) -> list[Change]:
    """Return the changes that make `new` of `old`. Jobs and pools that a list keeps are not sent again."""
    return list(_changes(old, new, ()))


def _changes(old: Any, new: Any, path: tuple[str | int, ...]) -> Iterator[Change]:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from ([[*path, key]] for key in old if key not in new)
        for key, value in new.items():
            if key in old:
                yield from _changes(old[key], value, (*path, key))
            else:
                yield [[*path, key], value]
    elif isinstance(old, list) and isinstance(new, list) and (places := _places(old, new)) is not None:
        if places != list(range(len(old))):
            yield [list(path), [item for item, place in zip(new, places, strict=True) if place < 0], places]
        for number, place in enumerate(places):
            if place >= 0:
                yield from _changes(old[place], new[number], (*path, number))
    elif type(old) is not type(new) or old != new:
        yield [list(path), new]


def _places(old: list[Any], new: list[Any]) -> list[int] | None:
    """Return the old place of each item of a new list, -1 for new items; None if the list is to be replaced whole.

    Without distinct names the items of lists of one length keep their places.
    """
    names, now = list(map(_name, old)), list(map(_name, new))
    if not (_are_distinct(names) and _are_distinct(now)):
        return list(range(len(old))) if names == now else None
    known = {name: number for number, name in enumerate(names)}
    places = [known.get(name, -1) for name in now]
    return places if max(places, default=-1) >= 0 else None


def _are_distinct(names: list[str | None]) -> bool:
    return None not in names and len(set(names)) == len(names)


def _name(item: Any) -> str | None:
    """Return the name by which an item of a list is the same item as before."""
    found = (item.get("jobName") or item.get("name")) if isinstance(item, dict) else None
    return found if isinstance(found, str) else None
