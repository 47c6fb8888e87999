"""Differences between two JSON values, so that a page gets only what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Change = list[Any]
"""Path of a member, and its new value; a member that is gone has no value."""


def differences(old: Any, new: Any) -> list[Change]:
    """Return the changes that make `new` of `old`. A list of another length, or of other jobs, is replaced whole."""
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
    elif isinstance(old, list) and isinstance(new, list) and list(map(_name, old)) == list(map(_name, new)):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, (*path, number))
    elif type(old) is not type(new) or old != new:
        yield [list(path), new]


def _name(item: Any) -> object:
    """Return the name by which an item of a list is the same item as before."""
    return (item.get("jobName"), item.get("name")) if isinstance(item, dict) else None
