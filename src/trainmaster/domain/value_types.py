"""Checks of values against the types of dataclasses' fields; each is made once and then called for every row."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

from trainmaster.domain.times import YEARS

Check: TypeAlias = Callable[[Any], bool]
_MAX_SPAN = timedelta(days=36_525)


def checks_of_fields(kind: type) -> Mapping[str, Check]:
    """Return a check for each field of a dataclass, which tells whether a value has the field's type."""
    return dict(_checks(kind).checks)


def check_fields(value: Any) -> None:
    """Raise `TypeError` if a field of a dataclass's value has a value of another type."""
    if is_dataclass(value) and (field := _first_wrong(value)) is not None:
        raise TypeError(f"{field} has a value of another type")


def _first_wrong(value: Any) -> str | None:
    """Return the first field of a dataclass's value that has a value of another type; most have their default."""
    values_of, defaults, checks = _checks(value.__class__)
    values = values_of(value)
    for found, (name, check) in compress(zip(values, checks, strict=True), map(is_not, values, defaults)):
        if not check(found):
            return name
    return None


class _Checks(NamedTuple):
    """The fields of a dataclass: their values in an instance, their defaults, and their names with a check."""

    values_of: Callable[[Any], tuple[Any, ...]]
    defaults: tuple[Any, ...]
    checks: tuple[tuple[str, Check], ...]


@cache
def _checks(kind: type) -> _Checks:
    hints, all_of = get_type_hints(kind), fields(kind)
    names = [field.name for field in all_of]
    # An `attrgetter` of one name returns no tuple.
    values_of = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
    defaults = tuple(field.default for field in all_of)
    return _Checks(values_of, defaults, tuple((name, check_of(hints[name])) for name in names))


@cache
def check_of(hint: Any) -> Check:
    """Return a function that tells whether a value has a type."""
    origin, inside = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, types.UnionType):
        optional, checks = types.NoneType in inside, [check_of(each) for each in inside if each is not types.NoneType]
        if len(checks) == 1:
            (only,) = checks
            return lambda value: value is None or only(value)
        return lambda value: optional if value is None else any(check(value) for check in checks)
    if origin is tuple:
        item = check_of(inside[0])
        return lambda value: type(value) is tuple and all(map(item, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = map(check_of, inside)
        return lambda value: isinstance(value, dict) and all(map(key, value)) and all(map(item, value.values()))
    if is_dataclass(origin) and isinstance(origin, type):
        return lambda value: isinstance(value, origin) and _first_wrong(value) is None
    return _SCALARS.get(hint) or (lambda value: isinstance(value, origin))


def is_time(value: Any) -> bool:
    """Return whether a value is a time with a zone, in a year that the queue stores."""
    return isinstance(value, datetime) and value.tzinfo is not None and value.year in YEARS


_SCALARS: Mapping[Any, Check] = {
    Any: lambda _: True,
    str: lambda value: value.__class__ is str,
    int: lambda value: value.__class__ is int,
    float: lambda value: type(value) in (int, float) and math.isfinite(value),
    datetime: is_time,
    timedelta: lambda value: isinstance(value, timedelta) and abs(value) <= _MAX_SPAN,
}
