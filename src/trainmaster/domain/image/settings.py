"""The guide's settings of capacity checks, read from the variables that it names ("Configuration Options").

What is absent or empty has the guide's default; what is wrong is refused, never replaced by a default. It must not
read the environment: who does hands it over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.image.endpoint import Limits

HIGHEST_TARGET = 1.5
"""The guide's bound of `CAPACITY_TARGET_PERCENTAGE`."""
MOST_AT_ONCE = 10_000
"""Of anything that is counted in requests."""
LARGEST_REGION = 1_000_000
"""Pixels per axis."""
_PAIR = re.compile(r"\s*\(?\s*([0-9]{1,7})\s*,\s*([0-9]{1,7})\s*\)?\s*", re.ASCII)


def limits_in(given: Mapping[str, str]) -> Limits:
    """The settings in these variables. Raises `InvalidRequest` naming the variable that is wrong."""
    told = {name: given[name] for name in _READERS if given.get(name)}
    return Limits(**{_READERS[name][0]: _read(name, text) for name, text in told.items()})


def _read(name: str, text: str) -> Any:
    try:
        return _READERS[name][1](text)
    except ValueError as error:
        raise InvalidRequest(f"{name} is {text!r}.", field=name, hint=_READERS[name][2]) from error


def _switch(text: str) -> bool:
    answer = {"true": True, "false": False}.get(text.strip().lower())
    return _wrong() if answer is None else answer


def _target(text: str) -> float:
    value = float(text)
    return value if 0 <= value <= HIGHEST_TARGET else _wrong()


def _count(text: str) -> int:
    value = int(text)
    return value if 1 <= value <= MOST_AT_ONCE else _wrong()


def _size(text: str) -> tuple[int, int]:
    """As the guide's deployments write it: `(10240, 10240)`; without the parentheses, too."""
    found = _PAIR.fullmatch(text)
    width, height = (int(part) for part in found.groups()) if found else (0, 0)
    return (width, height) if 0 < width <= LARGEST_REGION and 0 < height <= LARGEST_REGION else _wrong()


def _wrong() -> Any:
    raise ValueError("out of range")


_COUNTS = f"Give a whole number from 1 to {MOST_AT_ONCE}."
_READERS: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "SCHEDULER_THROTTLING_ENABLED": ("throttling", _switch, "Give True or False."),
    "CAPACITY_TARGET_PERCENTAGE": ("target", _target, f"Give a number from 0.0 to {HIGHEST_TARGET}."),
    "DEFAULT_INSTANCE_CONCURRENCY": ("instance_concurrency", _count, _COUNTS),
    "DEFAULT_HTTP_ENDPOINT_CONCURRENCY": ("http_concurrency", _count, _COUNTS),
    "TILE_WORKERS_PER_INSTANCE": ("tile_workers", _count, _COUNTS),
    "REGION_SIZE": ("region_size", _size, "Give pixels per axis, such as (10240, 10240)."),
}
