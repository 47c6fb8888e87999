"""Ranges of hyperparameters, with the bounds and scalings of SageMaker's ParameterRanges, as texts of requests.

Source: SageMaker developer guide, "Define Hyperparameter Ranges", for the scalings and their bounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from trainmaster.client.api.errors import Refused

Scaling = Literal["Auto", "Linear", "Logarithmic", "ReverseLogarithmic"]
"""Distribution of values between the bounds (CreateHyperParameterTuningJob, `ScalingType`)."""
_LOGARITHMIC_FROM: Final = 1000
"""`Auto` is logarithmic if the upper bound is at least this multiple of a positive lower bound."""
_DIGITS: Final = 9
"""Significant digits of values between the bounds."""
MAX_VALUE: Final = 2500
"""Maximum length of a hyperparameter's value (CreateTrainingJob, `HyperParameters`)."""


@dataclass(frozen=True, slots=True)
class Continuous:
    """Real numbers from `low` to `high`, both included. Raises Refused for bounds that the scaling does not allow."""

    low: float
    high: float
    scaling: Scaling = "Auto"

    def __post_init__(self) -> None:
        _check(self.low, self.high, self.scaling, lowest=0.0)

    @property
    def scale(self) -> Scaling:
        """The scaling, chosen if it is `Auto`."""
        return _chosen(self.low, self.high, self.scaling)

    def text(self, fraction: float) -> str:
        """Return the value that lies at a fraction of the scaled range, from 0 to 1."""
        value = _between(self.low, self.high, fraction, self.scale)
        return value_text(min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high))

    def grid(self, points: int | None) -> list[str]:
        """Return so many values at equal distances of the scaled range. Raises Refused without a number."""
        if points is None:
            raise invalid("A grid needs the number of values of each continuous range.", "points", "Set `points`.")
        return _unique(self.text(fraction) for fraction in _fractions(points))


@dataclass(frozen=True, slots=True)
class Integer:
    """Integers from `low` to `high`, both included. Raises Refused for bounds that the scaling does not allow."""

    low: int
    high: int
    scaling: Scaling = "Auto"

    def __post_init__(self) -> None:
        if self.scaling == "ReverseLogarithmic":
            raise invalid("ReverseLogarithmic is for continuous ranges.", "ScalingType", "Use Linear or Logarithmic.")
        _check(self.low, self.high, self.scaling, lowest=1)

    @property
    def scale(self) -> Scaling:
        """The scaling, chosen if it is `Auto`."""
        return _chosen(self.low, self.high, self.scaling)

    def text(self, fraction: float) -> str:
        """Return the value that lies at a fraction of the scaled range, from 0 to 1; each has its part of a scale."""
        value = _between(self.low - 0.5, self.high + 0.5, fraction, self.scale)
        return str(min(max(round(value), self.low), self.high))

    def grid(self, points: int | None) -> list[str]:
        """Return all values, or at most so many at about equal distances of the scaled range."""
        if points is None or self.high - self.low < points:
            return [str(value) for value in range(self.low, self.high + 1)]
        values = (_between(self.low, self.high, fraction, self.scale) for fraction in _fractions(points))
        return _unique(str(round(value)) for value in values)


@dataclass(frozen=True, slots=True)
class Categorical:
    """Some values, as texts of hyperparameters. Raises Refused if there are none."""

    values: tuple[str, ...]

    def __init__(self, *values: object) -> None:
        object.__setattr__(self, "values", tuple(_unique(map(value_text, values))))
        if not self.values:
            raise invalid("A categorical range has no values.", "Values", "Give at least one.")

    def text(self, fraction: float) -> str:
        """Return the value that lies at a fraction of the list, from 0 to 1."""
        return self.values[min(int(fraction * len(self.values)), len(self.values) - 1)]

    def grid(self, _: int | None) -> list[str]:
        """Return all values."""
        return list(self.values)


Range: TypeAlias = Continuous | Integer | Categorical
Space: TypeAlias = Mapping[str, Range]
"""Ranges by the name of their hyperparameter."""


def value_text(value: object) -> str:
    """Return a value as CreateTrainingJob has it: texts as they are, others in JSON. Raises Refused."""
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MAX_VALUE:
        raise invalid("The value of a hyperparameter is too long.", "HyperParameters", f"Use at most {MAX_VALUE}.")
    return text


def parse_ranges(ranges: Mapping[str, Any]) -> dict[str, Range]:
    """Return the space of a CreateHyperParameterTuningJob's ParameterRanges. Raises Refused."""
    space: dict[str, Range] = {}
    for member, parse in _PARSERS.items():
        for index, given in enumerate(_list(ranges.get(member, []), member)):
            where = f"ParameterRanges.{member}[{index}]"
            name = _member(given, "Name", where)
            if name in space:
                raise invalid(f"There are two ranges of {name}.", where, "Give each hyperparameter one range.")
            space[name] = parse(given, where)
    unknown = sorted(ranges.keys() - _PARSERS.keys())
    if unknown:
        hint = f"The ranges are {', '.join(_PARSERS)}."
        raise invalid(f"{unknown[0]} cannot be honored.", f"ParameterRanges.{unknown[0]}", hint)
    return space


def invalid(message: str, field: str, hint: str) -> Refused:
    """Return the error of an invalid sweep."""
    return Refused(message, type="InvalidRequest", field=field, hint=hint)


def number(text: object, where: str) -> float:
    """Return a finite number that is given as one, or as a text. Raises Refused."""
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise invalid(f"{text!r} is not a number.", where, "Give a finite number.")
    return value


def _continuous(given: Mapping[str, Any], where: str) -> Continuous:
    low, high = (number(_member(given, name, where), f"{where}.{name}") for name in ("MinValue", "MaxValue"))
    return Continuous(low, high, _scaling(given, where))


def _integer(given: Mapping[str, Any], where: str) -> Integer:
    bounds = [number(_member(given, name, where), f"{where}.{name}") for name in ("MinValue", "MaxValue")]
    if not all(bound.is_integer() for bound in bounds):
        raise invalid("The bounds of an integer range are not integers.", where, "Use a continuous range.")
    return Integer(int(bounds[0]), int(bounds[1]), _scaling(given, where))


def _categorical(given: Mapping[str, Any], where: str) -> Categorical:
    return Categorical(*_list(given.get("Values", []), f"{where}.Values"))


_PARSERS: Final[Mapping[str, Any]] = {
    "ContinuousParameterRanges": _continuous,
    "IntegerParameterRanges": _integer,
    "CategoricalParameterRanges": _categorical,
}


def _scaling(given: Mapping[str, Any], where: str) -> Scaling:
    scaling = given.get("ScalingType", "Auto")
    if scaling not in get_args(Scaling):
        raise invalid(f"{scaling!r} is no scaling.", f"{where}.ScalingType", f"Use {', '.join(get_args(Scaling))}.")
    found: Scaling = scaling
    return found


def _member(given: Any, name: str, where: str) -> Any:
    if not isinstance(given, Mapping) or given.get(name) in (None, ""):
        raise invalid(f"{name} is missing.", f"{where}.{name}", "Set it.")
    return given[name]


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise invalid(f"{where} is not a list.", where, "Give a list.")
    return value


def _check(low: float, high: float, scaling: Scaling, lowest: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise invalid(f"{low} to {high} is no range.", "MinValue", "Give finite bounds in ascending order.")
    if scaling == "Logarithmic" and (low <= 0 or low < lowest):
        raise invalid(f"A logarithmic range cannot begin at {low}.", "MinValue", "Use a positive bound, or Linear.")
    if scaling == "ReverseLogarithmic" and not 0 <= low <= high < 1:
        raise invalid(f"{low} to {high} has no reverse logarithm.", "MinValue", "Use bounds from 0 to less than 1.")


def _chosen(low: float, high: float, scaling: Scaling) -> Scaling:
    if scaling != "Auto":
        return scaling
    return "Logarithmic" if low > 0 and high / low >= _LOGARITHMIC_FROM else "Linear"


def _between(low: float, high: float, fraction: float, scale: Scaling) -> float:
    if scale == "Logarithmic":
        return math.exp(_between(math.log(low), math.log(high), fraction, "Linear"))
    if scale == "ReverseLogarithmic":
        return -math.expm1(_between(math.log1p(-low), math.log1p(-high), fraction, "Linear"))
    return low + (high - low) * fraction


def _fractions(points: int) -> list[float]:
    return [0.0] if points == 1 else [index / (points - 1) for index in range(points)]


def _unique(values: Any) -> list[str]:
    return list(dict.fromkeys(values))
