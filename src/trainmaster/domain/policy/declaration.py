"""Declarations of settings: documentation and bounds beside the field that has the name, the type and the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import timedelta
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from trainmaster.domain.document import member_name

MAX_COUNT = 100_000
"""Largest number of preemptions, retries and similar events, in settings and in tags."""
MAX_NUMBER = 1e12
"""No number of the settings is larger."""
_NOUNS: Mapping[Any, str] = {timedelta: "seconds: ", int: "a whole number ", float: "a number "}


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything about a setting that its field does not say.

    Attributes:
        doc: What the setting does, in one sentence.
        minimum: Smallest number, in seconds for a duration; for a mapping, of its values.
        maximum: Largest number, likewise; None for no bound but `MAX_NUMBER`.
        above_minimum: Whether the number must be greater than the minimum.
        max_items: Maximum length of a list or a mapping.
        keys: Allowed keys of a mapping and their documentation; empty if any key is allowed.
        default: Default in words, if it is not that of the field everywhere.
        example: Example value, for lists.
    """

    doc: str
    minimum: float = 0
    maximum: float | None = None
    above_minimum: bool = False
    max_items: int | None = None
    keys: Mapping[str, str] | None = None
    default: str = ""
    example: tuple[str, ...] = ()

    def allows(self, number: float) -> bool:
        """Return whether a number is within the bounds."""
        above = number > self.minimum if self.above_minimum else number >= self.minimum
        return above and number <= (MAX_NUMBER if self.maximum is None else self.maximum)

    def range(self) -> str:
        """Return the bounds in words."""
        if self.maximum is None:
            return f"more than {self.minimum:.15g}" if self.above_minimum else f"{self.minimum:.15g} or more"
        if self.above_minimum:
            return f"more than {self.minimum:.15g}, at most {self.maximum:.15g}"
        return f"from {self.minimum:.15g} to {self.maximum:.15g}"


@dataclass(frozen=True, slots=True)
class Member:
    """One setting of a group of settings.

    Attributes:
        name: Name in the document, such as `minRuntimeSeconds`.
        field: Field of the dataclass.
        type: Type of the value, without None.
        optional: Whether None is allowed.
        setting: The declaration.
    """

    name: str
    field: Field[Any]
    type: Any
    optional: bool
    setting: Setting

    def default(self) -> Any:
        """Return the default value of the field."""
        factory = self.field.default_factory
        return self.field.default if factory is MISSING else factory()

    def wanted(self) -> str:
        """Return a description of the allowed numbers, as a hint gives it."""
        null = ", or null for no limit" if self.optional else ""
        return f"{_NOUNS.get(number_type(self.type), '')}{self.setting.range()}{null}"


@lru_cache(maxsize=64)
def members_of(kind: Any) -> tuple[Member, ...]:
    """Return the settings of a dataclass; fields without a declaration are none."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _member(field, *get_args(hints[field.name]))
        for field in fields(kind)
        if get_origin(hints[field.name]) is Annotated
    )


def number_type(hint: Any) -> Any:
    """Return the type of the numbers of a setting: that of the values for a mapping, its own otherwise."""
    return get_args(hint)[1] if is_mapping(hint) else hint


def is_mapping(hint: Any) -> bool:
    """Return whether a type is that of a mapping."""
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _member(field: Field[Any], hint: Any, setting: Setting) -> Member:
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kind = next(choice for choice in choices if choice is not NoneType)
    return Member(member_name(field.name, seconds=kind is timedelta), field, kind, NoneType in choices, setting)
