"""Text from outside, on one line."""

import unicodedata
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trainmaster.domain.text import one_line, sanitize

ANY_TEXT = st.text(st.characters(codec=None))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(ANY_TEXT)
def test_each_control_format_and_surrogate_character_becomes_a_blank(text: str) -> None:
    line = one_line(text)
    assert len(line) == len(text)
    for before, after in zip(text, line, strict=True):
        unseen = unicodedata.category(before) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        assert after == (" " if unseen else before)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(text for member in value.values() for text in _texts(member))]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


@given(VALUES)
def test_a_sanitized_value_has_no_such_character_anywhere(value: Any) -> None:
    sanitized = sanitize(value)
    assert all(one_line(text) == text for text in _texts(sanitized))
    if all(one_line(text) == text for text in _texts(value)):
        assert sanitized == value
