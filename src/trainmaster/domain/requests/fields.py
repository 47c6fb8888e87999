"""Problems of a request, and readers of its fields that accept any JSON value without raising."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute

from trainmaster.domain.errors import InvalidRequest

MAX_SHOWN_LENGTH = 60
"""Maximum characters of a caller's text that a message repeats."""
MAX_COMPARED_LENGTH = 100
"""Comparing two texts takes time in their product, so longer ones get no suggestion."""
MIN_PREFIX_LENGTH = 3
"""Minimum letters of a word that is the beginning of another."""


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

    def at(self, field: str) -> Problem:
        """Return the same problem of another field."""
        return replace(self, field=field)

    def refusal(self) -> InvalidRequest:
        """Return the error to raise."""
        return self.kind(self.message, field=self.field, hint=self.hint)


def part(value: object, *keys: str) -> Mapping[str, object]:
    """Return the object under the keys; an empty one if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def entries(value: object, key: str) -> list[Mapping[str, object]]:
    """Return the list under the key, with an empty object in place of anything else, so that indexes stay valid."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return [part(item) for item in found] if isinstance(found, list | tuple) else []


def text(value: Mapping[str, object], key: str) -> str | None:
    """Return the string under the key; None if there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else None


def whole(value: Mapping[str, object], key: str) -> int | None:
    """Return the integer under the key; None if there is none. `true` is not an integer."""
    found = value.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def repeated(values: Iterable[str | None]) -> list[int]:
    """Return the indexes of values that occurred before."""
    seen: set[str] = set()
    found = []
    for index, value in enumerate(values):
        if value is not None and value in seen:
            found.append(index)
        elif value is not None:
            seen.add(value)
    return found


def shown(value: object) -> str:
    """Return a value as a message may repeat it: short, ASCII, without the contents of lists and objects."""
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
    """Return the known word closest to the given one, ignoring case; None if none is close.

    Close are words with at most a third of their letters wrong, and the only one that begins with the given one.
    """
    if len(word) > MAX_COMPARED_LENGTH:
        return None
    by_lower = {name.casefold(): name for name in known}
    folded = word.casefold()
    distances = {name: edit_distance(folded, name) for name in by_lower if _may_be_close(folded, name)}
    close = [name for name, distance in distances.items() if distance <= _max_distance(folded, name)]
    if not close and len(folded) >= MIN_PREFIX_LENGTH:
        begun = [name for name in by_lower if name.startswith(folded)]
        close = begun if len(begun) == 1 else []
    return by_lower[min(close, key=lambda name: distances.get(name, 0))] if close else None


def _max_distance(first: str, second: str) -> int:
    longest = max(len(first), len(second))
    return max(longest // 3, min(longest - 1, 1))


def _may_be_close(first: str, second: str) -> bool:
    """Return whether so many letters agree, in any order, that the distance need be computed."""
    mine, other = Counter(first), Counter(second)
    return max((mine - other).total(), (other - mine).total()) <= _max_distance(first, second)


def edit_distance(first: str, second: str) -> int:
    """Return the number of letters to insert, delete, replace or swap with their neighbors.

    This is the optimal string alignment distance, a restricted form of that of Damerau and Levenshtein.
    """
    above: list[int] = []
    row: list[int] = [*range(len(second) + 1)]
    for i, letter in enumerate(first, 1):
        above, last, row = row, above, [i]
        for j, other in enumerate(second, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other)))
            if i > 1 and j > 1 and (letter, other) == (second[j - 2], first[i - 2]):
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]
