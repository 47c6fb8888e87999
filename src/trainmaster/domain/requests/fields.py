"""Problems of a request, and readers of its fields that take any JSON value without raising.

It must not know any rule of SageMaker.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute

from trainmaster.domain.errors import InvalidRequest

MAX_SHOWN_LENGTH = 60
"""Most characters of a caller's text that a message repeats."""
MAX_COMPARED_LENGTH = 100
"""Comparing two texts takes time in their product, so longer ones get no suggestion."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a request.

    Attributes:
        field: path such as `ResourceConfig.InstanceCount` or `InputDataConfig[0].ChannelName`.
        message: what is wrong, in one sentence.
        hint: what to do about it.
        kind: the error that it becomes.
    """

    field: str
    message: str
    hint: str
    kind: type[InvalidRequest] = attribute(default=InvalidRequest, repr=False)

    def refusal(self) -> InvalidRequest:
        """The error to raise for it."""
        return self.kind(self.message, field=self.field, hint=self.hint)


def part(value: object, *keys: str) -> Mapping[str, object]:
    """The object under those keys; an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def entries(value: object, key: str) -> list[Mapping[str, object]]:
    """The list under that key, what is not an object in it standing as an empty one, so that indexes hold."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return [part(item) for item in found] if isinstance(found, list | tuple) else []


def text(value: Mapping[str, object], key: str) -> str | None:
    """The string under that key; None where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else None


def whole(value: Mapping[str, object], key: str) -> int | None:
    """The integer under that key; None where there is none. `true` is no integer."""
    found = value.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def repeated(values: Iterable[str | None]) -> list[int]:
    """Indexes of the values that have been there before."""
    seen: set[str] = set()
    found = []
    for index, value in enumerate(values):
        if value is not None and value in seen:
            found.append(index)
        elif value is not None:
            seen.add(value)
    return found


def shown(value: object) -> str:
    """A value as a message may repeat it: short, ASCII, never the inside of a list or object."""
    if isinstance(value, str):
        cut = value if len(value) <= MAX_SHOWN_LENGTH else value[: MAX_SHOWN_LENGTH - 3] + "..."
        return ascii(cut)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    # Python refuses to print integers of more than a few thousand digits.
    huge = isinstance(value, int) and value.bit_length() > 128
    return "a huge number" if huge else ascii(value)[:MAX_SHOWN_LENGTH]


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that the given one is probably meant to be, whatever its case."""
    if len(word) > MAX_COMPARED_LENGTH:
        return None
    by_lower = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_lower, n=1)
    return by_lower[close[0]] if close else None
