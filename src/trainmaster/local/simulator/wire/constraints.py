"""Checks of values against the service model: types, required members, lengths, ranges, enums, patterns.

botocore's validator checks types and minimum sizes; this module adds the checks that only the service makes. It is
applied to requests and, in tests, to responses, and is the same for all operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape
from botocore.validate import ParamValidator

from trainmaster.domain.java_patterns import matches
from trainmaster.local.simulator.wire.errors import ApiError, invalid

MAX_VALUE_LENGTH = 256
"""Characters of an offending value that the error repeats."""


def check_request(value: Any, shape: Shape) -> None:
    """Raise `ApiError`: `SerializationException` for a wrong type, else `ValidationException` as the service words it.

    The message lists all violations, as that of the service does.
    """
    report = ParamValidator().validate(value, shape)
    wrong_types = [str(error) for error in report._errors if error[0] == "invalid type"]  # noqa: SLF001
    if wrong_types:
        raise ApiError("SerializationException", report.generate_report())
    found = list(violations(value, shape, ""))
    if found:
        plural = "s" if len(found) > 1 else ""
        raise invalid(f"{len(found)} validation error{plural} detected: {'; '.join(found)}")
    if report.has_errors():
        raise invalid(report.generate_report())


def check_answer(value: Any, shape: Shape | None) -> None:
    """Raise `AssertionError` if a response violates the service model, so that the simulator stays accurate."""
    if shape is None:
        if value:
            raise AssertionError(f"an answer where the model has none: {value}")
        return
    report = ParamValidator().validate(value, shape)
    found = list(violations(value, shape, "")) if not report.has_errors() else [report.generate_report()]
    if found:
        raise AssertionError("; ".join(found))


def violations(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Every constraint that the value breaks, in the service's words."""
    if isinstance(shape, StructureShape):
        yield from _in_structure(value, shape, path)
    elif isinstance(shape, ListShape):
        yield from _in_size(value, shape, path, len(value))
        for index, each in enumerate(value, 1):
            yield from violations(each, shape.member, f"{path}.{index}.member")
    elif isinstance(shape, MapShape):
        yield from _in_size(value, shape, path, len(value))
        for key, each in value.items():
            yield from violations(key, shape.key, path)
            yield from violations(each, shape.value, f"{path}.{key}")
    else:
        yield from _in_scalar(value, shape, path)


def _in_structure(value: Any, shape: StructureShape, path: str) -> Iterator[str]:
    for name in shape.required_members:
        if name not in value:
            yield f"Value null at '{_joined(path, name)}' failed to satisfy constraint: Member must not be null"
    for name, each in value.items():
        if name in shape.members:
            yield from violations(each, shape.members[name], _joined(path, name))


def _joined(path: str, name: str) -> str:
    name = name[0].lower() + name[1:]
    return f"{path}.{name}" if path else name


def _in_size(value: Any, shape: Shape, path: str, size: int) -> Iterator[str]:
    minimum, maximum = shape.metadata.get("min"), shape.metadata.get("max")
    if minimum is not None and size < minimum:
        yield _told(value, path, f"Member must have length greater than or equal to {minimum}")
    if maximum is not None and size > maximum:
        yield _told(value, path, f"Member must have length less than or equal to {maximum}")


def _in_scalar(value: Any, shape: Shape, path: str) -> Iterator[str]:
    if shape.type_name == "string":
        yield from _in_size(value, shape, path, len(value))
        yield from _in_text(value, shape, path)
    elif shape.type_name in ("integer", "long", "float", "double"):
        minimum, maximum = shape.metadata.get("min"), shape.metadata.get("max")
        if minimum is not None and value < minimum:
            yield _told(value, path, f"Member must have value greater than or equal to {minimum}")
        if maximum is not None and value > maximum:
            yield _told(value, path, f"Member must have value less than or equal to {maximum}")


def _in_text(value: str, shape: Shape, path: str) -> Iterator[str]:
    enum, pattern = getattr(shape, "enum", None), shape.metadata.get("pattern")
    if enum and value not in enum:
        yield _told(value, path, f"Member must satisfy enum value set: [{', '.join(enum)}]")
    if pattern and not matches(pattern, value):
        yield _told(value, path, f"Member must satisfy regular expression pattern: {pattern}")


def _told(value: Any, path: str, rule: str) -> str:
    return f"Value '{str(value)[:MAX_VALUE_LENGTH]}' at '{path}' failed to satisfy constraint: {rule}"
