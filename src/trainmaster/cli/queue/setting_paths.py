"""Reads and changes single settings by path, such as `shares.vision.nominal.ml.p5.48xlarge=4`.

Names of shares and pools may contain dots, so a path is split along the members that settings have. The queue validates
the settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

from trainmaster.cli.common.request import reject_constant
from trainmaster.cli.common.usage import nearest
from trainmaster.client.api.errors import Refused
from trainmaster.domain.document import document
from trainmaster.domain.policy.settings import Share

_SHARES = "shares"
_DEPTH_OF_SHARES = 2
"""Parts of a path to a share."""
_UNSET = "unset"
_SEE = "`trainmaster settings` lists them."
_SHARE = document(Share(name=""))
"""A share's members; those that are objects have pools as members."""


def split_path(path: str) -> list[str]:
    """Split a path into members."""
    first, _, rest = path.partition(".")
    if first != _SHARES or not rest:
        return path.split(".")
    parts = rest.split(".")
    for index in range(1, len(parts)):
        if parts[index] in _SHARE:
            share, member, below = ".".join(parts[:index]), parts[index], parts[index + 1 :]
            by_pool = isinstance(_SHARE[member], Mapping)
            return [_SHARES, share, member, *([".".join(below)] if by_pool and below else below)]
    return [_SHARES, rest]


def parse_value(text: str) -> Any:
    """Parse a value: JSON if it is valid JSON, else the text itself."""
    try:
        return json.loads(text, parse_constant=reject_constant)
    except ValueError:
        return text


def set_value(settings: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return the settings with one of them set. Raises Refused."""
    *above, last = parts = split_path(path)
    _check_share(path, parts, value)
    return _change_at(settings, above, path, lambda members: {**members, last: value})


def remove_value(settings: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the settings without one of them. Raises Refused if it is absent."""
    *above, last = split_path(path)

    def leave_out(members: Mapping[str, Any]) -> dict[str, Any]:
        if last not in members:
            raise _no_setting(path, settings)
        return {name: value for name, value in members.items() if name != last}

    return _change_at(settings, above, path, leave_out)


def setting_lines(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting in the form that `set` accepts."""
    yield from (f"{path}={text}" for path, text in _leaves(settings))


def changed_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return each path whose value differs, with both values; `unset` where a path is absent."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    paths = [path for path in {**old, **new} if old.get(path) != new.get(path) and not _is_above(path, {**old, **new})]
    return [f"{path}: {old.get(path, _UNSET)} -> {new.get(path, _UNSET)}" for path in paths]


@contextmanager
def helpful(now: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Add the nearest setting or value to an error about one that does not exist; `values` are those to set, by path.

    Raises Refused.
    """
    try:
        yield
    except Refused as error:
        if error.field is None or error.type != "InvalidRequest":
            raise
        raise _with_nearest(error, error.field, now, values) from error


def _with_nearest(error: Refused, field: str, now: Mapping[str, Any], values: Mapping[str, Any]) -> Refused:
    if error.message.startswith("There is no member"):
        return _no_setting(field, now)
    value = values.get(field)
    known = re.findall(r"'([^']+)'", error.message)
    meant = nearest(value, known) if isinstance(value, str) and "should be" in error.message else None
    given = f"{field} is {_text(value)}. It " if field in values and error.message.startswith(field) else ""
    message = given + (error.message.removeprefix(field).lstrip() if given else error.message)
    below = f"Write {field}.NAME=VALUE for what is below it." if "should be an object" in error.message else None
    hint = f"Did you mean {meant}?" if meant else below or error.hint
    return Refused(message, type=error.type, field=field, hint=hint, status=error.status)


def _no_setting(path: str, now: Mapping[str, Any]) -> Refused:
    """Return the error for a path that does not exist, with the nearest one that does."""
    parts = split_path(path)
    known: Any = now
    if parts[0] == _SHARES and len(parts) > _DEPTH_OF_SHARES:
        known, above = _SHARE, parts[:_DEPTH_OF_SHARES]
    else:
        above = list(takewhile(lambda part: isinstance(known, Mapping) and part in known, parts[:-1]))
        for part in above:
            known = known[part]
    members = [name for name in known if name != "version"] if isinstance(known, Mapping) else []
    same = [leaf for leaf, _ in _leaves(now) if leaf.rpartition(".")[2].lower() == parts[-1].lower()]
    near = nearest(parts[len(above)], members) if len(above) < len(parts) else None
    meant = same[0] if same else ".".join([*above, near]) if near else None
    guess = f"Did you mean {meant}? " if meant else ""
    return Refused(f"There is no setting {path}.", type="InvalidRequest", hint=f"{guess}{_SEE}")


def _is_above(path: str, paths: Iterable[str]) -> bool:
    """Return whether there are paths below this one: it is an empty object before or after the change."""
    return any(each.startswith(f"{path}.") for each in paths)


def _leaves(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", _text(value)


def _check_share(path: str, parts: Sequence[str], value: Any) -> None:
    """Raise Refused for a path into a share that has no member of a share, such as shares.a.nominl.POOL=4."""
    if parts[0] == _SHARES and len(parts) == _DEPTH_OF_SHARES and not isinstance(value, Mapping):
        wrong = next((part for part in parts[1].split(".")[1:] if nearest(part, _SHARE)), None)
        guess = f"Did you mean {nearest(wrong, _SHARE)}? " if wrong else ""
        members = ", ".join(name for name in _SHARE if name != "name")
        hint = f"{guess}The settings of a share are: {members}."
        raise Refused(f"{path} is no setting of a share.", type="InvalidRequest", hint=hint)


def _change_at(settings: Mapping[str, Any], above: Sequence[str], path: str, change: Any) -> dict[str, Any]:
    if not above:
        changed: dict[str, Any] = change(settings)
        return changed
    first, *rest = above
    members = settings.get(first)
    if members is None:
        members = {}
    if not isinstance(members, Mapping):
        wrong = f"There is no setting {path}: {first} is {_text(members)}."
        raise Refused(wrong, type="InvalidRequest", hint=_SEE)
    return {**settings, first: _change_at(members, rest, path, change)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
