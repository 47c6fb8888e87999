"""The nearest of several words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.domain.requests.fields import did_you_mean, edit_distance

WORDS = st.text("abc", max_size=6)


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("wiat", ["with", "wait"], "wait"),
        ("wiat", ["wait", "with"], "wait"),
        ("prioirty", ["priority", "priorities"], "priority"),
        ("ml.p5.48xlage", ["ml.p5.48xlarge", "ml.p5e.48xlarge"], "ml.p5.48xlarge"),
        ("WAIT", ["Wait"], "Wait"),
        ("lz", ["ls", "why"], "ls"),
        ("z", ["a", "b"], None),
        ("", ["a"], None),
        ("ml.nosuch.large", ["ml.p5.48xlarge"], None),
        ("accel", ["accelerators", "vcpus"], "accelerators"),
        ("max", ["max-restarts", "max-instances"], None),
        ("xyzzy", ["wait", "with"], None),
        ("a" * 101, ["a" * 100], None),
    ],
)
def test_the_nearest_word_has_the_fewest_mistakes(word: str, known: list[str], meant: str | None) -> None:
    assert did_you_mean(word, known) == meant


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [("", "", 0), ("", "ab", 2), ("wiat", "wait", 1), ("wiat", "with", 2), ("ca", "abc", 3), ("kitten", "sitting", 3)],
)
def test_a_swap_of_neighbors_is_one_edit(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


@given(WORDS, WORDS)
def test_the_distance_is_symmetric_and_zero_for_equal_words_alone(first: str, second: str) -> None:
    distance = edit_distance(first, second)
    assert distance == edit_distance(second, first)
    assert (distance == 0) == (first == second)
    assert abs(len(first) - len(second)) <= distance <= max(len(first), len(second))


@given(st.text("abc", min_size=1, max_size=6), st.lists(WORDS, max_size=4))
def test_no_known_word_is_nearer_than_the_one_that_is_meant(word: str, known: list[str]) -> None:
    meant = did_you_mean(word, known)
    if meant is not None:
        assert edit_distance(word, meant) == min(edit_distance(word, name) for name in known) or meant.startswith(word)
    if word in known:
        assert meant == word
