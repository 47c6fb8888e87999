"""Turns of a tick: each has one in time, and no tick has too many."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from trainmaster.domain.times import is_turn, names_in_turn

MINUTE = timedelta(minutes=1)
names = st.text("abc", min_size=1, max_size=6)


@given(st.lists(names, max_size=60, unique=True), st.integers(1, 6), st.integers(1, 5), st.integers(0, 10**6))
def test_each_name_has_one_turn_in_a_period_and_no_minute_has_too_many(waiting, period, limit, start):
    rounds = max(period, -(-len(waiting) // limit))
    turns = [names_in_turn(waiting, NOW + (start + minute) * MINUTE, period, limit) for minute in range(rounds)]
    assert Counter(name for turn in turns for name in turn) == Counter(waiting)
    assert all(len(turn) <= limit for turn in turns)


@given(names, st.integers(1, 20))
def test_a_name_alone_has_one_turn_in_a_period(name, period):
    assert sum(is_turn(name, NOW + minute * MINUTE, period) for minute in range(period)) == 1
