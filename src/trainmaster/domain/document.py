"""Settings and similar dataclasses as JSON documents, and back: stored, sent, and kept in files in this one form.

A member has the name of its field in camelCase; a duration is a number of seconds, with `Seconds` in its name
(`min_runtime` is `minRuntimeSeconds`). Values in a mapping do not repeat their key as `name`.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from trainmaster.domain.compat import parse_iso

Document = dict[str, Any]
T = TypeVar("T")
_NAME = "name"


def document(value: Any, *, sparse: bool = False) -> Document:
    """Return the document of a dataclass's value; a sparse one omits members with their default value."""
    return {
        member: written(getattr(value, each.name), sparse=sparse)
        for member, each, _ in _members(value.__class__)
        if not (sparse and _is_default(each, getattr(value, each.name)))
    }


def value_of(kind: type[T], values: Mapping[str, Any], **others: Any) -> T:
    """Return the dataclass's value of a document, with defaults for omitted members; unknown members are ignored.

    Raises ValueError, TypeError or OverflowError for a document that this module has not written.
    """
    # mypy does not accept a type variable's class as hashable.
    members = _members(cast("Any", kind))
    read = {each.name: _read(hint, values[member]) for member, each, hint in members if member in values}
    return kind(**others, **read)


def keep_unknown(kind: Any, document: Mapping[str, Any], stored: Mapping[str, Any]) -> Document:
    """Return the document with the members of the stored one that `kind` does not have, at every depth.

    A newer release may have written them. Entries of mappings that the document does not have stay removed.
    """
    hints = {member: hint for member, _, hint in _members(kind)}
    kept = {name: value for name, value in stored.items() if name not in hints} | dict(document)
    for name in hints.keys() & stored.keys():
        inside = _kept_inside(hints[name], kept.get(name, {}), stored[name])
        if inside:
            kept[name] = inside
    return kept


def _kept_inside(hint: Any, document: Any, stored: Any) -> Any:
    """Return a member with what the stored one has beyond it; None for a member that is no document."""
    kind = next(each for each in _choices(hint) if each is not type(None))
    if not (isinstance(document, Mapping) and isinstance(stored, Mapping)):
        return None
    if is_dataclass(kind):
        return keep_unknown(kind, document, stored)
    value = (get_args(kind) or (None,))[-1]
    if not is_dataclass(value):
        return None
    return {key: keep_unknown(value, each, stored.get(key, {})) for key, each in document.items()}


def member_name(name: str, *, seconds: bool = False) -> str:
    """Return the name of a field in a document."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(map(str.capitalize, rest)) + ("Seconds" if seconds else "")


@lru_cache(maxsize=64)
def _members(kind: Any) -> tuple[tuple[str, Field[Any], Any], ...]:
    """Return the members of a dataclass's documents: name, field, type."""
    hints = get_type_hints(kind)
    return tuple(
        (member_name(each.name, seconds=timedelta in _choices(hints[each.name])), each, hints[each.name])
        for each in fields(kind)
    )


def _choices(hint: Any) -> tuple[Any, ...]:
    """Return the types that a value may have."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _is_default(each: Field[Any], value: Any) -> bool:
    if each.default_factory is not MISSING:
        return bool(value == each.default_factory())
    return each.default is not MISSING and bool(value == each.default)


def written(value: Any, *, sparse: bool = False) -> Any:
    """Return a value as the document has it."""
    if is_dataclass(value):
        return document(value, sparse=sparse)
    if isinstance(value, Mapping):
        return {str(key): _without_name(written(each, sparse=sparse), key) for key, each in value.items()}
    if isinstance(value, tuple):
        return [written(each, sparse=sparse) for each in value]
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return int(seconds) if seconds.is_integer() else seconds
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else value


def _without_name(written: Any, key: str) -> Any:
    if isinstance(written, dict) and written.get(_NAME) == key:
        return {member: each for member, each in written.items() if member != _NAME}
    return written


def _read(hint: Any, value: Any) -> Any:
    kind = next(each for each in _choices(hint) if each is not type(None))
    if value is None and kind is not hint:
        return None
    origin, inside = get_origin(kind) or kind, get_args(kind)
    if origin is tuple:
        return tuple(_read(inside[0], each) for each in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_read(inside[0], key): _named(inside[1], key, each) for key, each in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return value_of(kind, value)
    return _READERS[kind](value) if kind in _READERS else kind(value)


def _named(kind: Any, name: str, value: Any) -> Any:
    """Return the value under a key, which is its `name` if it has such a field."""
    if isinstance(kind, type) and is_dataclass(kind) and any(each.name == _NAME for each in fields(kind)):
        return value_of(kind, value, name=name)
    return _read(kind, value)


_READERS: Mapping[Any, Any] = {
    timedelta: lambda value: timedelta(seconds=value),
    datetime: parse_iso,
}
