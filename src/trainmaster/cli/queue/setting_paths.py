"""Settings one by one: `preemption.minRuntimeSeconds=600`, `shares.vision.nominal.ml.p5.48xlarge=4`.

Names of shares and pools may have dots in them, so a path is read along the members that settings have. Whether a
setting exists and makes sense, the queue says. It must not ask the queue anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmaster.cli.common.request import no_number
from trainmaster.client.api.errors import Refused
from trainmaster.domain.document import document
from trainmaster.domain.policy.settings import Share

_SHARES = "shares"
_SHARE = document(Share(name=""))
"""A share's members; those that are objects have pools as their members."""


def steps_of(path: str) -> list[str]:
    """The members that a path goes through."""
    first, _, rest = path.partition(".")
    if first != _SHARES or not rest:
        return path.split(".")
    words = rest.split(".")
    for at in range(1, len(words)):
        if words[at] in _SHARE:
            share, member, below = ".".join(words[:at]), words[at], words[at + 1 :]
            by_pool = isinstance(_SHARE[member], Mapping)
            return [_SHARES, share, member, *([".".join(below)] if by_pool and below else below)]
    return [_SHARES, rest]


def value_of(text: str) -> Any:
    """What a text on the command line stands for: JSON where it is some, else itself."""
    try:
        return json.loads(text, parse_constant=no_number)
    except ValueError:
        return text


def with_value(settings: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The settings with one of them set. Raises Refused."""
    *above, last = steps_of(path)
    return _changed(settings, above, path, lambda members: {**members, last: value})


def without(settings: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The settings with one of them left out. Raises Refused where it is not there."""
    *above, last = steps_of(path)

    def leave_out(members: Mapping[str, Any]) -> dict[str, Any]:
        if last not in members:
            raise Refused(f"There is no setting {path}.", type="InvalidRequest", hint="See `trainmaster settings`.")
        return {name: value for name, value in members.items() if name != last}

    return _changed(settings, above, path, leave_out)


def lines_of(settings: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Each setting as `set` takes it."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from lines_of(value, f"{above}{name}.")
        else:
            yield f"{above}{name}={_text(value)}"


def _changed(settings: Mapping[str, Any], above: Sequence[str], path: str, change: Any) -> dict[str, Any]:
    if not above:
        changed: dict[str, Any] = change(settings)
        return changed
    first, *rest = above
    inside = settings.get(first)
    if inside is None:
        inside = {}
    if not isinstance(inside, Mapping):
        raise Refused(f"{first} has no members.", type="InvalidRequest", field=path)
    return {**settings, first: _changed(inside, rest, path, change)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
