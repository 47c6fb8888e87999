"""Checks of requests against SageMaker's service model.

`problems` walks botocore's own shapes, so types, limits, patterns and allowed values are AWS's. The model is the
trimmed one (`service_model`), whatever botocore the runtime has. `domain/requests` checks what fields mean together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from trainmaster.adapters.sagemaker.service_model import shape
from trainmaster.domain.java_patterns import LINE_END, matches
from trainmaster.domain.requests.fields import Problem, did_you_mean, shown

MAX_PROBLEMS = 100
"""Limit of problems in one answer, which bounds the work for a body of megabytes."""
_INPUT = "CreateTrainingJobRequest"
# Ranges of SageMaker's number types; the model itself bounds few numbers.
_BITS = {"integer": 31, "long": 63}
_MAX_MATCHED_LENGTH = 8192
_MAX_NAMED = 12
_MAX_NAME_LENGTH = 64
_ROLE, _ROLE_EXAMPLE = "RoleArn", "arn:aws:iam::111122223333:role/NAME"
_NAME, _NAME_HINT = "TrainingJobName", "Use letters, digits and hyphens inside, at most 63 characters."

Found = Iterator[Problem]


def problems(request: object) -> list[Problem]:
    """Return what in a CreateTrainingJob request, any JSON value, violates SageMaker's service model.

    At most `MAX_PROBLEMS`, in the request's own order, an object's missing members first. botocore checks less before
    it sends; this also checks maximum lengths and values, patterns, allowed values, the range of numbers, and that text
    is Unicode. `field` ends in ` (key)` if the key of a map is wrong.
    """
    return list(islice(_check(shape(_INPUT), request, ""), MAX_PROBLEMS))


def _check(rule: Any, value: object, path: str) -> Found:
    yield from _CHECKS[rule.type_name](rule, value, path)


def _structure(rule: Any, value: object, path: str) -> Found:
    if not isinstance(value, Mapping):
        yield _wrong_type(rule, value, path)
        return
    members = rule.members
    if rule.is_tagged_union and len(value) != 1:
        yield _problem(path, f"has {len(value)} members.", f"Specify exactly one of: {_named(members)}.")
    for name in rule.required_members:
        if name not in value:
            yield Problem(_join(path, name), f"{name} is missing.", f"Add it; it is {_KINDS[members[name].type_name]}.")
    for name, child in value.items():
        if name in members:
            yield from _check(members[name], child, _join(path, name))
        else:
            yield _unknown_member(name, members, path)


def _list(rule: Any, value: object, path: str) -> Found:
    if not isinstance(value, list | tuple):
        yield _wrong_type(rule, value, path)
        return
    size_problems = list(_size(rule, len(value), path, "entries"))
    yield from size_problems
    if not size_problems:
        for index, child in enumerate(value):
            yield from _check(rule.member, child, f"{path}[{index}]")


def _map(rule: Any, value: object, path: str) -> Found:
    if not isinstance(value, Mapping):
        yield _wrong_type(rule, value, path)
        return
    size_problems = list(_size(rule, len(value), path, "entries"))
    yield from size_problems
    if not size_problems:
        for key, child in value.items():
            yield from _check(rule.key, key, _join(path, key) + " (key)")
            yield from _check(rule.value, child, _join(path, key))


def _string(rule: Any, value: object, path: str) -> Found:
    if not isinstance(value, str):
        yield _wrong_type(rule, value, path)
        return
    if path == _ROLE and not value.startswith("arn:"):
        yield _problem(path, f"is {shown(value)}, which is no ARN.", f"Write it in full, such as {_ROLE_EXAMPLE}.")
        return
    size = list(_size(rule, len(value), path, "characters"))
    allowed = rule.enum
    if not value.isascii() and not _encodable(value):
        yield _problem(path, "has half of a surrogate pair, which no encoding supports.", "Send valid Unicode.")
    elif size:
        yield from size
    elif allowed and value not in allowed:
        yield _problem(path, f"is {shown(value)}.", _allowed_hint(value, allowed))
    elif "pattern" in rule.metadata:
        yield from _pattern(rule.metadata["pattern"], value, path)


def _number(rule: Any, value: object, path: str) -> Found:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _wrong_type(rule, value, path)
        return
    limit: int = 2 ** _BITS[rule.type_name]
    minimum, maximum = rule.metadata.get("min", -limit), rule.metadata.get("max", limit - 1)
    if not minimum <= value <= maximum:
        yield _problem(path, f"is {shown(value)}.", f"Specify a whole number from {minimum} to {maximum}.")


def _boolean(rule: Any, value: object, path: str) -> Found:
    if not isinstance(value, bool):
        yield _wrong_type(rule, value, path)


_CHECKS: Mapping[str, Callable[[Any, object, str], Found]] = {
    "structure": _structure,
    "list": _list,
    "map": _map,
    "string": _string,
    "integer": _number,
    "long": _number,
    "boolean": _boolean,
}
"""By kind of rule; a test walks the model to prove that it has no other."""
_KINDS = {
    "structure": "an object",
    "list": "a list",
    "map": "an object",
    "string": "a string",
    "integer": "a whole number",
    "long": "a whole number",
    "boolean": "true or false",
}


def _size(rule: Any, length: int, path: str, unit: str) -> Found:
    minimum, maximum = rule.metadata.get("min", 0), rule.metadata.get("max")
    if length < minimum:
        yield _problem(path, f"has {length} {unit}.", f"At least {minimum} are needed.")
    elif maximum is not None and length > maximum:
        yield _problem(path, f"has {length} {unit}.", f"At most {maximum} are allowed.")


def _pattern(pattern: str, value: str, path: str) -> Found:
    # One string of the model has no maximum length, and a match takes time.
    if len(value) > _MAX_MATCHED_LENGTH:
        yield _problem(path, f"has {len(value)} characters.", f"At most {_MAX_MATCHED_LENGTH} are allowed.")
    elif not matches(pattern, value):
        broken = matches(pattern, LINE_END.sub("", value))
        wanted = _NAME_HINT if path == _NAME else f"It has to match the pattern {pattern}"
        hint = "Remove the line breaks." if broken else wanted
        yield _problem(path, f"is {shown(value)}.", hint)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _join(path: str, name: object) -> str:
    plain = isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= _MAX_NAME_LENGTH
    if not plain:
        return f"{path}[{shown(name)}]"
    return f"{path}.{name}" if path else str(name)


def _problem(path: str, wrong: str, hint: str) -> Problem:
    return Problem(path or "request", f"{path or 'The request'} {wrong}", hint)


def _wrong_type(rule: Any, value: object, path: str) -> Problem:
    wanted = _KINDS[rule.type_name]
    hint = "Omit the field instead of sending null." if value is None and path else f"Specify {wanted}."
    return _problem(path, f"is {shown(value)}, not {wanted}.", hint)


def _unknown_member(name: object, members: Mapping[str, object], path: str) -> Problem:
    field = _join(path, name)
    suggestion = did_you_mean(name, members) if isinstance(name, str) else None
    hint = f"Did you mean '{suggestion}'?" if suggestion else f"The members are: {_named(members)}."
    return Problem(field, f"{path or 'The request'} has no member {shown(name)}.", hint)


def _allowed_hint(value: str, allowed: list[str]) -> str:
    suggestion = did_you_mean(value, allowed)
    by_similarity = sorted(allowed, key=lambda name: _common_start(name, value), reverse=True)
    if suggestion and len(allowed) > _MAX_NAMED:
        return f"Did you mean '{suggestion}'?"
    return (f"Did you mean '{suggestion}'? " if suggestion else "") + f"The values are: {_named(by_similarity)}."


def _common_start(one: str, other: str) -> int:
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1), len(one))


def _named(names: Any) -> str:
    listed = list(names)
    more = len(listed) - _MAX_NAMED
    return ", ".join(listed[:_MAX_NAMED]) + (f", and {more} more" if more > 0 else "")
