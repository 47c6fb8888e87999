"""Reader of `trainmaster:resources`: the resources that a job requests of each instance instead of an instance type.

Members are `name=value`, separated by commas, spaces or `+`. Tags of SageMaker must not contain commas (API reference,
`Tag`), so a request is sent with `+` in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.requests.fields import did_you_mean, entries, shown, text
from trainmaster.domain.requests.tag_names import RESOURCES_TAG

MEMBERS = tuple(each.name for each in fields(Resources))
MAX_ACCELERATORS = 1_000
MAX_VCPUS = 10_000
MAX_GIB = 99_999.9
"""More than any instance has, by far; with one decimal, so that `str(Resources)` gives back what was read."""

_BETWEEN = re.compile(r"[ ,+]+")
_COUNT = re.compile(r"[0-9]{1,5}")
_GIB = re.compile(r"[0-9]{1,5}(\.[0-9])?")
_MAKER = re.compile(r"[a-z][a-z0-9-]{0,31}")
_TAKES: Mapping[str, str] = {
    "accelerators": f"a whole number up to {MAX_ACCELERATORS}",
    "accelerator_memory_gib": f"GiB of all accelerators of an instance, with at most one decimal, up to {MAX_GIB}",
    "vcpus": f"a whole number up to {MAX_VCPUS}",
    "memory_gib": f"GiB with at most one decimal, up to {MAX_GIB}",
    "accelerator": "their manufacturer: 'nvidia', 'aws', 'amd' or 'habana'",
}
_EXAMPLE = "'accelerators=8+vcpus=96+memory_gib=768'"
_Wrong = tuple[str, str]


def resources_in(value: str) -> Resources | None:
    """Return the resources that the text requests; None if it is invalid or requests nothing."""
    read = _read(value)
    return read if isinstance(read, Resources) else None


def wrong_with(value: str) -> tuple[str, str]:
    """Return the problem with an invalid text, without a full stop, and a hint."""
    read = _read(value)
    return ("", "") if isinstance(read, Resources) else read


def sendable(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the request without commas in the tag; the same object if there are none."""
    if not any(text(tag, "Key") == RESOURCES_TAG and "," in (text(tag, "Value") or "") for tag in _tags(request)):
        return request
    return {**request, "Tags": [_plain(tag) for tag in request["Tags"]]}


def shortfalls(asked: Resources, kind: InstanceType) -> Iterator[str]:
    """Return the resources of which an instance of the type has too little, as `name=value`, with its own value."""
    for name in MEMBERS:
        wanted, has = getattr(asked, name), getattr(kind, name)
        if wanted and (has != wanted if isinstance(wanted, str) else has < wanted):
            yield f"{name}={has if isinstance(has, str) else f'{has:g}'}"


def _tags(request: object) -> list[Mapping[str, object]]:
    return entries(request, "Tags")


def _plain(tag: Any) -> Any:
    if not isinstance(tag, Mapping) or text(tag, "Key") != RESOURCES_TAG or not isinstance(tag.get("Value"), str):
        return tag
    return {**tag, "Value": tag["Value"].replace(",", "+")}


def _read(value: str) -> Resources | _Wrong:
    given: dict[str, Any] = {}
    for member in filter(None, _BETWEEN.split(value)):
        name, equals, amount = member.partition("=")
        if name not in MEMBERS:
            return _unknown(name)
        if name in given:
            return f"{name} is specified twice", "Specify each member once."
        number = _value(name, amount) if equals else None
        if number is None:
            return f"{name} is {shown(amount)}" if equals else f"{name} has no value", f"It must be {_TAKES[name]}."
        given[name] = number
    if not any(given.values()):
        return "no resource is requested", f"Specify members such as {_EXAMPLE}, or omit the tag and name a type."
    return Resources(**given)


def _value(name: str, amount: str) -> int | float | str | None:
    if name == "accelerator":
        maker = amount.casefold()
        return maker if _MAKER.fullmatch(maker) else None
    if name in ("accelerators", "vcpus"):
        maximum = MAX_ACCELERATORS if name == "accelerators" else MAX_VCPUS
        return int(amount) if _COUNT.fullmatch(amount) and int(amount) <= maximum else None
    return float(amount) if _GIB.fullmatch(amount) else None


_ELSEWHERE = {
    **dict.fromkeys(("gpu", "gpus", "nvidia.com/gpu", "accelerator_count"), "accelerators"),
    **dict.fromkeys(("cpu", "cpus", "cores"), "vcpus"),
    **dict.fromkeys(("mem", "memory", "ram", "memory_gb"), "memory_gib"),
    **dict.fromkeys(("gpu_memory", "gpu_memory_gib", "vram"), "accelerator_memory_gib"),
}
"""Names of resources in other tools."""


def _unknown(name: str) -> _Wrong:
    meant = _ELSEWHERE.get(name.casefold()) or did_you_mean(name, MEMBERS)
    guess = f"Did you mean '{meant}'? " if meant else ""
    return f"there is no member {shown(name)}", f"{guess}The members are: {', '.join(MEMBERS)}."
