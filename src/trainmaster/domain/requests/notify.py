"""Read the tag `trainmaster:notify`: the changes of a job that people are notified of."""

from __future__ import annotations

from trainmaster.domain.requests.fields import did_you_mean, shown
from trainmaster.domain.requests.values import BETWEEN_NAMES

NOTIFY_WORDS = ("start", "preempted", "resumed", "resized", "infeasible", "end")


def notified_words(text: str) -> tuple[str, ...] | None:
    """Return the words of a text such as `start+end`, each once; None if it is invalid."""
    words = _words(text)
    return words if words and all(word in NOTIFY_WORDS for word in words) else None


def wrong_with_words(text: str) -> tuple[str, str]:
    """Return the problem with an invalid text, without a full stop, and a hint."""
    known = f"The words are {', '.join(NOTIFY_WORDS)}; join them with '+'."
    unknown = next((word for word in _words(text) if word not in NOTIFY_WORDS), None)
    if unknown is None:
        return "it names no change", known
    meant = did_you_mean(unknown, NOTIFY_WORDS)
    return f"{shown(unknown)} is no change to be notified of", f"Did you mean '{meant}'? {known}" if meant else known


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, BETWEEN_NAMES.split(text))))
