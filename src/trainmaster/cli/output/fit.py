"""Shortens text to a number of terminal columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

ELLIPSIS = "…"


def columns_of(text: str) -> int:
    """Return how many columns of a terminal the text takes: wide characters take two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, width: int) -> str:
    """Return the text, cut at its end to the width."""
    return text if columns_of(text) <= width else _start(text, width - 1).rstrip() + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """Return the text, cut in its middle to the width: names often differ at their ends."""
    if columns_of(text) <= width:
        return text
    end = (width - 1) // 2
    return _start(text, width - 1 - end) + ELLIPSIS + _start(text[::-1], end)[::-1]


def shrink(widths: Sequence[int], minimums: Sequence[int | None], limit: int) -> list[int]:
    """Return the widths after taking from those furthest above their minimum, until their sum is within the limit.

    None is for widths that stay. If all are at their minimum, the sum may be above the limit.
    """
    left = list(widths)
    for _ in range(max(sum(widths) - limit, 0)):
        spare = [(have - least, at) for at, (have, least) in enumerate(zip(left, minimums, strict=True)) if least]
        if not spare or max(spare)[0] <= 0:
            break
        left[max(spare)[1]] -= 1
    return left


def _start(text: str, width: int) -> str:
    """Return the longest start of the text that takes no more columns than the width."""
    kept = 0
    for length, character in enumerate(text):
        kept += _columns(character)
        if kept > width:
            return text[:length]
    return text


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
