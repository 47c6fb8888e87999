"""Text of strangers, as it may stand in a reason: on one line, with nothing in it that a terminal would obey.

It must not know who says what.
"""

from __future__ import annotations

import unicodedata

MAX_REASON_LENGTH = 1024
"""Of a reason, so much is kept: as much as SageMaker keeps of why a job failed (`FailureReason`), in characters; in a
message of SQS, where it shares the room with the message, in bytes."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode: controls, marks that turn the direction of text, halves of characters, separators of lines."""


def one_line(text: str) -> str:
    """The text with a blank for each such character."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(each) in _UNSEEN else each for each in text)
