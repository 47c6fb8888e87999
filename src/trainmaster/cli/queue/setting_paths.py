"""Reads and changes single settings by path, such as `shares.vision.nominal.ml.p5.48xlarge=4`.

Names of shares and pools may contain dots, so a path is split along the members that settings have. The queue validates
the settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmaster.cli.common.request import reject_constant
from trainmaster.client.api.errors import Refused
from trainmaster.domain.document import document
from trainmaster.domain.policy.settings import Share

_SHARES = "shares"
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
    *above, last = split_path(path)
    return _change_at(settings, above, path, lambda members: {**members, last: value})


def remove_value(settings: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the settings without one of them. Raises Refused if it is absent."""
    *above, last = split_path(path)

    def leave_out(members: Mapping[str, Any]) -> dict[str, Any]:
        if last not in members:
            raise Refused(f"There is no setting {path}.", type="InvalidRequest", hint="See `trainmaster settings`.")
        return {name: value for name, value in members.items() if name != last}

    return _change_at(settings, above, path, leave_out)


def setting_lines(settings: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield each setting in the form that `set` accepts."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from setting_lines(value, f"{above}{name}.")
        else:
            yield f"{above}{name}={_text(value)}"


def _change_at(settings: Mapping[str, Any], above: Sequence[str], path: str, change: Any) -> dict[str, Any]:
    if not above:
        changed: dict[str, Any] = change(settings)
        return changed
    first, *rest = above
    members = settings.get(first)
    if members is None:
        members = {}
    if not isinstance(members, Mapping):
        raise Refused(f"{first} has no members.", type="InvalidRequest", field=path)
    return {**settings, first: _change_at(members, rest, path, change)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
