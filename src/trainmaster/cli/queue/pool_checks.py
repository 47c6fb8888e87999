"""Checks of `trainmaster pools set`: instance types, and the API's objections in the words of its options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import typer

from trainmaster.cli.common.usage import nearest
from trainmaster.client.api.errors import Refused
from trainmaster.domain.capacity.instance_table import SHIPPED

if TYPE_CHECKING:
    from trainmaster.client.views.types import PoolSetting

PoolSettings = dict[str, "PoolSetting"]
_RESOURCES = ("vcpus", "memoryGib", "accelerators")
_MEMBER: Final = re.compile(r"pools\[([0-9]+)\](?:\.([A-Za-z]+))?")
_WORDS: Final[Mapping[str, str]] = {
    "instanceType": "--type",
    "trainingPlanArn": "--plan",
    "memoryGib": "--memory-gib",
    "acceleratorMemoryGib": "--accelerator-memory-gib",
    "countExternal": "--count-external",
    **{name: f"--{name}" for name in ("kind", "price", "vcpus", "accelerators", "accelerator")},
}
"""Options by the member of a pool that they set."""


def with_caps(now: PoolSettings, caps_by_pool: Mapping[str, int], properties: Mapping[str, Any]) -> PoolSettings:
    """Return the settings with these caps and properties for the named pools. Raises typer.BadParameter."""
    for name in caps_by_pool:
        _check_type(name, properties, now)
    return now | {name: _setting(name, cap, properties, now.get(name)) for name, cap in caps_by_pool.items()}


def in_words_of_pools(error: Refused, names: Sequence[str]) -> Refused:
    """Return the error with names of pools and options for `pools[2].trainingPlanArn`."""

    def words(text: str) -> str:
        return _MEMBER.sub(lambda found: _in_words(found, names), text)

    changed = type(error)(error.message, type=error.type, field=error.field, hint=error.hint, status=error.status)
    changed.message = words(error.message)
    changed.field = words(error.field) if error.field else None
    return changed


def _in_words(found: re.Match[str], names: Sequence[str]) -> str:
    index, member = int(found[1]), found[2]
    name = names[index] if index < len(names) else found[0]
    return f"{name}: {_WORDS.get(member, member)}" if member else name


def _setting(name: str, cap: int, properties: Mapping[str, Any], now: PoolSetting | None) -> PoolSetting:
    changes = {key: value for key, value in properties.items() if value is not None}
    setting: dict[str, Any] = {**(now or {"instanceType": name}), "cap": cap, **changes}
    if setting["instanceType"] != name:
        setting["name"] = name
    return cast("PoolSetting", setting)


def _check_type(name: str, properties: Mapping[str, Any], now: PoolSettings) -> None:
    """Raise BadParameter if the pool would be new and of a type that SageMaker does not have, as far as is known."""
    given = properties["instanceType"]
    instance_type = given or name
    described = any(properties[each] for each in _RESOURCES) and instance_type.startswith("ml.")
    if instance_type in SHIPPED or described or (given is None and name in now):
        return
    near = _nearest_type(instance_type)
    guess = f". Did you mean {near}?" if near else ""
    if given is None and not name.startswith("ml."):
        message = f"there is no pool {name!r}{guess or '; to create it, set its instance type with --type'}"
        raise typer.BadParameter(message, param_hint="'POOL=CAP'")
    rest = "" if guess else ". For a newer type, describe it with --vcpus, --memory-gib and --accelerators"
    hint = "'POOL=CAP'" if given is None else "'--type'"
    raise typer.BadParameter(f"{instance_type!r} is no known instance type{guess}{rest}", param_hint=hint)


def _nearest_type(word: str) -> str | None:
    return nearest(word if word.startswith("ml.") else f"ml.{word}", SHIPPED)
