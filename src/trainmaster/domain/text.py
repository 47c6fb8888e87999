"""Sanitize untrusted text: one line, without characters that control a terminal or reorder what it shows."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TypeVar, cast

MAX_REASON_LENGTH = 1024
"""Maximum length of a reason, as of SageMaker's `FailureReason`: in characters, in SQS messages in bytes."""
T = TypeVar("T")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format and surrogate characters, line and paragraph separators."""


def one_line(text: str) -> str:
    """Return the text with each such character replaced by a blank."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(character) in _UNSEEN else character for character in text)


def sanitize(view: T) -> T:
    """Return a JSON value with `one_line` applied to each string in it, names of members included.

    Text views of answers of the API are made of sanitized values: names, reasons, hosts and errors come from other
    people, their jobs and their models.
    """
    if isinstance(view, str):
        return cast("T", one_line(view))
    if isinstance(view, Mapping):
        return cast("T", {sanitize(key): sanitize(value) for key, value in view.items()})
    return cast("T", [sanitize(value) for value in view]) if isinstance(view, list | tuple) else view
