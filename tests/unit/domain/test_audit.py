"""Changed values of audit entries: what differs, by path, and never much of it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from trainmaster.domain.access.audit import MAX_AUDIT_TEXT_LENGTH, MAX_CHANGED_VALUES, MORE, changed_values

KEYS = st.text(st.characters(exclude_characters="."), min_size=1, max_size=5)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=600), st.lists(st.integers(), max_size=3))
DOCUMENTS = st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, max_size=5)), max_size=80)


def test_only_what_differs_is_kept():
    before = {"order": "fifo", "shares": {"vision": {"weight": 1, "lends": {"p5": 2}}}, "gone": {}}
    after = {"order": "fifo", "shares": {"vision": {"weight": 2, "lends": {"p5": 2}}, "nlp": {"weight": 3}}}
    assert changed_values(before, after) == (
        {"gone": "{}", "shares.vision.weight": 1},
        {"shares.nlp.weight": 3, "shares.vision.weight": 2},
    )


def test_lists_count_as_one_value():
    assert changed_values({"roles": ["a"]}, {"roles": ["a", "b"]}) == ({"roles": '["a"]'}, {"roles": '["a", "b"]'})


def test_the_other_changes_of_a_large_one_are_counted():
    before, after = changed_values({}, {f"k{number:03d}": number for number in range(MAX_CHANGED_VALUES + 7)})
    assert (len(after), after[MORE], before) == (MAX_CHANGED_VALUES + 1, 7, {MORE: 7})


@given(DOCUMENTS, DOCUMENTS)
def test_an_entry_is_small_and_plain_whatever_changed(before, after):
    for values in changed_values(before, after):
        assert len(values) <= MAX_CHANGED_VALUES + 1
        for text in filter(lambda each: isinstance(each, str), values.values()):
            assert len(text) <= MAX_AUDIT_TEXT_LENGTH
            assert "\n" not in text
        json.dumps(values)


@given(DOCUMENTS)
def test_equal_documents_differ_in_nothing(document):
    assert changed_values(document, dict(document)) == ({}, {})
