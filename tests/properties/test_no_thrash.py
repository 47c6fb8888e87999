"""On any finite list of arrivals preemptions end, and no two jobs preempt each other in turn."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import G5, P5
from trainmaster.domain.job import JobState, Outcome
from trainmaster.local.simulator import Profile
from world import World

CAPS = {P5: 3, G5: 4}
BRISK = Profile(seeking_seconds=1, starting_seconds=5, downloading_seconds=2, uploading_seconds=2, stopping_seconds=5)

arrivals = st.lists(
    st.tuples(
        st.integers(0, 120),  # seconds after the one before
        st.sampled_from((P5, G5)),
        st.integers(1, 3),  # instances
        st.integers(0, 3),  # priority
        st.integers(5, 300),  # seconds of training
    ),
    min_size=2,
    max_size=9,
)


@pytest.fixture(autouse=True, scope="module")
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def preemptions(world: World, names: list[str]) -> set[tuple[str, str]]:
    """Who stepped aside for whom."""
    attempts = [(name, attempt) for name in names for attempt in world.job(name).attempts]
    return {(name, str(a.freed_for)) for name, a in attempts if a.outcome is Outcome.PREEMPTED}


@given(arrivals)
@settings(max_examples=40, deadline=None)
def test_no_two_jobs_preempt_each_other_in_turn_and_all_come_to_their_end(jobs):
    world = World(pools=f"{P5}=3,{G5}=4", profile=BRISK)
    names = []
    for index, (pause, kind, count, priority, seconds) in enumerate(jobs):
        world.run(pause, step=15)
        world.submit(f"j{index}", kind=kind, count=count, priority=priority, training_seconds=seconds)
        names.append(f"j{index}")
    world.run_until_ended(*names)
    pairs = preemptions(world, names)
    assert not {(victim, winner) for victim, winner in pairs if (winner, victim) in pairs}
    assert all(world.job(victim).priority < world.job(winner).priority for victim, winner in pairs)
    assert {world.job(name).state for name in names} == {JobState.COMPLETED}
    # Each arrival can make a job step aside at most once for itself, and once more where a better one took its hold.
    assert all(len(world.job(name).attempts) <= 2 * len(jobs) for name in names)
    assert all(world.peaks[kind] <= cap for kind, cap in CAPS.items())
    assert not world.doubles
