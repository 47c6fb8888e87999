"""Reader of `trainmaster:instance-values`: all sizes of an elastic job."""

from __future__ import annotations

import re
from itertools import pairwise

from trainmaster.domain.policy.declaration import MAX_COUNT
from trainmaster.domain.requests.fields import shown
from trainmaster.domain.requests.values import positive

_BETWEEN = re.compile(r"[ +]+")


def sizes_in(text: str) -> tuple[int, ...] | None:
    """Return whole numbers from 1, separated by spaces or `+`, ascending and distinct; None if the text is invalid."""
    read = _read(text)
    return read if read and all(before < after for before, after in pairwise(read)) else None


def wrong_with_sizes(text: str) -> tuple[str, str]:
    """Return the problem with an invalid text, without a full stop, and a hint.

    Sizes are not sorted for the user: a wrong order or a repeated size may be a typing error.
    """
    read = _read(text)
    if read is None:
        bad = next(part for part in _parts(text) if positive(part) is None)
        takes = f"whole numbers from 1 to {MAX_COUNT} with spaces or '+' between them, such as '2+4+8'"
        return f"{shown(bad)} is not a number of instances", f"It must be {takes}."
    if not read:
        return "no size is specified", "Specify at least one, such as '2+4+8', or omit the tag."
    hint = f"Did you mean {'+'.join(map(str, sorted(set(read))))}?"
    for before, after in pairwise(read):
        if after <= before:
            return (f"{after} appears twice" if after == before else f"{after} follows {before}"), hint
    return "", ""


def _read(text: str) -> tuple[int, ...] | None:
    found = [positive(part) for part in _parts(text)]
    return None if None in found else tuple(number for number in found if number is not None)


def _parts(text: str) -> list[str]:
    return [part for part in _BETWEEN.split(text) if part]
