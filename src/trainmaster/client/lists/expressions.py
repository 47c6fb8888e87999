"""Evaluates the search expressions of SageMaker's Search on descriptions of training jobs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from trainmaster.domain.compat import UTC

_NUMERIC: dict[str, Callable[[float, float], bool]] = {
    "GreaterThan": operator.gt,
    "GreaterThanOrEqualTo": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqualTo": operator.le,
}


def matches(description: Mapping[str, Any], expression: Mapping[str, Any]) -> bool:
    """Return whether a description matches a `SearchExpression`; an empty one matches all."""
    results: list[bool] = [
        *(_filter_matches(description, each, each["Name"]) for each in expression.get("Filters", [])),
        *(_nested_matches(description, each) for each in expression.get("NestedFilters", [])),
        *(matches(description, each) for each in expression.get("SubExpressions", [])),
    ]
    return (any(results) or not results) if expression.get("Operator") == "Or" else all(results)


def values_at(value: object, path: str) -> Iterator[Any]:
    """Yield the values of a property such as `Tags.team` or `InputDataConfig.ChannelName`, of all items of a list."""
    if isinstance(value, list):
        for item in value:
            yield from values_at(item, path)
    elif not path:
        yield value
    elif isinstance(value, Mapping):
        member, _, rest = path.partition(".")
        if "Key" in value and "Value" in value and value["Key"] == path:
            yield value["Value"]
        elif path in value:
            yield from values_at(value[path], "")
        elif member in value:
            yield from values_at(value[member], rest)


def _nested_matches(description: Mapping[str, Any], nested: Mapping[str, Any]) -> bool:
    """Return whether one item of a list matches all filters, whose names begin with that of the list."""
    name = nested["NestedPropertyName"]
    items = description.get(name, [])
    return any(
        all(_filter_matches(item, each, each["Name"].removeprefix(f"{name}.")) for each in nested["Filters"])
        for item in (items if isinstance(items, list) else [items])
    )


def _filter_matches(value: object, condition: Mapping[str, Any], path: str) -> bool:
    found = list(values_at(value, path))
    kind: str = condition.get("Operator", "Equals")
    wanted: str = condition.get("Value", "")
    if kind in ("Exists", "NotExists"):
        return bool(found) == (kind == "Exists")
    if kind == "NotEquals":
        return not any(_equals(each, wanted) for each in found)
    return any(_holds(each, kind, wanted) for each in found)


def _holds(value: object, kind: str, wanted: str) -> bool:
    if kind == "Contains":
        return wanted in str(value)
    if kind == "In":
        return any(_equals(value, each) for each in wanted.split(","))
    if kind in _NUMERIC:
        left, right = _number(value), _number(wanted)
        return left is not None and right is not None and _NUMERIC[kind](left, right)
    return _equals(value, wanted)


def _equals(value: object, wanted: str) -> bool:
    if isinstance(value, bool):
        return str(value).lower() == wanted.lower()
    left, right = _number(value), _number(wanted)
    return str(value) == wanted or (left is not None and left == right)


def _number(value: object) -> float | None:
    """Return a number, or a time in epoch seconds; None for other values."""
    if isinstance(value, datetime):
        return value.timestamp()
    try:
        return float(str(value))
    except ValueError:
        return _epoch(str(value))


def _epoch(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
