"""Java regular expressions, as AWS service models have them, matched as the services match them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LINE_END = re.compile("[\n\r\u0085\u2028\u2029]")
# Java's '.' stops at more line ends than Python's; inside a class a '.' is only itself.
_TOKENS = re.compile(r"\\p\{(?P<category>\w+)\}|\\.|\[\^?\]?|\]|(?P<dot>\.)", re.DOTALL)
_DOT = "[^\n\r\u0085\u2028\u2029]"
_CATEGORIES = {"L": "a-zA-Z", "N": "0-9", "Z": " ", "Alnum": "a-zA-Z0-9"}
_TWINS = {"L": "a", "N": "0", "Z": " "}


def matches(pattern: str, value: str) -> bool:
    """Return whether the whole value matches a pattern of the model. Raises KeyError for an unknown category."""
    subject = _ascii_twin(value) if r"\p{" in pattern else value
    return _compiled(pattern).fullmatch(subject) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern in Python's syntax."""
    inside = False

    def translate(token: re.Match[str]) -> str:
        nonlocal inside
        found = token.group()
        if category := token.group("category"):
            return _CATEGORIES[category] if inside else f"[{_CATEGORIES[category]}]"
        if found[0] in "[]":
            inside = found != "]"
        return _DOT if token.group("dot") and not inside else found

    return re.compile(_TOKENS.sub(translate, pattern), re.ASCII)


def _ascii_twin(text: str) -> str:
    """Return the text with an ASCII character of the same category in place of every other one.

    So a pattern with letters, numbers or separators of any script needs no table of Unicode's.
    """
    if text.isascii():
        return text
    twins = (_TWINS.get(unicodedata.category(character)[0], "\0") for character in text)
    return "".join(character if character.isascii() else twin for character, twin in zip(text, twins, strict=True))
