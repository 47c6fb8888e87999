"""Reads a draft of the settings, checked as the API checks settings, but without the packages of its model.

The members, their types and their bounds come from the declarations, as in that model; `problems` has the other rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, get_args, get_origin

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.policy.declaration import Member, is_mapping, members_of
from trainmaster.domain.policy.document import policy_of
from trainmaster.domain.policy.problems import policy_problems
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.requests.fields import Problem, shown

_DEFAULT = Policy()
_NO_MEMBER = "Omit it; `trainmaster settings schema` prints the members."


def checked_policy(document: Mapping[str, Any], pools: Mapping[str, Pool], default: Policy = _DEFAULT) -> Policy:
    """Return the settings of a draft. Raises `InvalidRequest` for its first problem, with the path of the field.

    Args:
        document: the draft; its version does not matter.
        pools: pools of the queue.
        default: settings that the draft omits.
    """
    given = {name: value for name, value in document.items() if name != "version"}
    for problem in shape_problems(given):
        raise problem.refusal()
    policy = policy_of(given, default)
    for problem in policy_problems(policy, pools):
        raise problem.refusal()
    return policy


def shape_problems(document: Mapping[str, Any], kind: Any = Policy, path: str = "") -> Iterator[Problem]:
    """Yield the members of a document that do not exist, and the values that their settings do not allow, by path.

    Args:
        document: a settings document, or a part of one.
        kind: the dataclass that it describes.
        path: the path of the part.
    """
    members = {member.name: member for member in members_of(kind)}
    for name, value in document.items():
        here = _below(path, name)
        if name not in members:
            yield Problem(here, f"There is no member {here}.", _NO_MEMBER)
        elif not (value is None and members[name].optional):
            yield from _value(value, members[name].type, members[name], here)


def _value(value: Any, kind: Any, member: Member, path: str) -> Iterator[Problem]:
    """Yield what is wrong with a value of this type."""
    if is_mapping(kind) or is_dataclass(kind):
        if isinstance(value, Mapping):
            yield from _members(value, kind, member, path)
        else:
            yield Problem(path, f"{path} should be an object.", "Write its members in braces.")
    elif get_origin(kind) is tuple:
        yield from _items(value, get_args(kind)[0], member, path)
    elif not _is_of(value, kind, member):
        yield Problem(path, f"{path} is {shown(value)}.", f"Specify {_wanted(kind, member)}.")


def _members(value: Mapping[str, Any], kind: Any, member: Member, path: str) -> Iterator[Problem]:
    if is_dataclass(kind):
        yield from shape_problems(value, kind, path)
        return
    inner, allowed = get_args(kind)[1], member.setting.keys
    for key, each in value.items():
        here = _below(path, key)
        if allowed is not None and key not in allowed:
            yield Problem(here, f"There is no member {here}.", _NO_MEMBER)
        else:
            yield from _value(each, inner, member, here)


def _items(value: Any, kind: Any, member: Member, path: str) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield Problem(path, f"{path} should be a list.", 'Write it in brackets: ["a", "b"].')
        return
    for index, each in enumerate(value):
        yield from _value(each, kind, member, f"{path}[{index}]")


def _is_of(value: Any, kind: type, member: Member) -> bool:
    """Return whether a single value has its type and is within its bounds; a bool is no number."""
    if issubclass(kind, Enum):
        return isinstance(value, str) and value in {each.value for each in kind}
    if kind in (bool, str):
        return isinstance(value, kind)
    numbers = int if kind is int else int | float
    if isinstance(value, bool) or not isinstance(value, numbers):
        return False
    return member.setting.allows(value)


def _wanted(kind: type, member: Member) -> str:
    if issubclass(kind, Enum):
        return f"one of: {', '.join(str(each.value) for each in kind)}"
    if kind is bool:
        return "true or false"
    return "a text" if kind is str else member.wanted()


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
