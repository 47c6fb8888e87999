"""Sanitize untrusted text for reasons: one line, without control characters."""

from __future__ import annotations

import unicodedata

MAX_REASON_LENGTH = 1024
"""Maximum length of a reason, as of SageMaker's `FailureReason`: in characters, in SQS messages in bytes."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format and surrogate characters, line and paragraph separators."""


def one_line(text: str) -> str:
    """Return the text with each such character replaced by a blank."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(character) in _UNSEEN else character for character in text)
