"""Events reach the bus at least once and tell nothing that was not committed, whatever happens to the manager."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import ADA, P5
from tables import new_table
from trainmaster.service.change import cancel
from world import BRISK, Faults, World, kills

CHUNKS = 10


pytestmark = pytest.mark.usefixtures("quiet")


@contextmanager
def a_world(**arguments: Any) -> Iterator[World]:
    with new_table() as client:
        yield World(client, profile=BRISK, pools=f"{P5}=1", published="all", **arguments)


def story(world: World) -> list[str]:
    """A job is preempted and resumed, another fails, a third is cancelled as it waits."""
    world.submit("victim", training_seconds=90)
    world.run(40, step=10)
    world.submit("urgent", priority=5, training_seconds=20, outcome="failed")
    world.submit("unwanted", training_seconds=20)
    cancel(world.api_context, ADA, "unwanted")
    names = ["victim", "urgent", "unwanted"]
    world.run_until_ended(*names)
    return names


@cache
def calls() -> list[str]:
    with a_world() as world:
        world.check_events(*story(world))
        return world.faults.calls


def test_the_events_of_a_story():
    with a_world() as world:
        story(world)
        of_victim = [detail for detail in world.bus.details if detail["jobName"] == "victim"]
    assert [detail["type"] for detail in of_victim] == [
        "submitted",
        "starting",
        "started",
        "preempting",
        "preempted",
        "starting",
        "resumed",
        "ended",
    ]
    sequences = [detail["sequence"] for detail in of_victim]
    assert sequences == sorted(set(sequences))
    preempted = of_victim[4]
    assert (preempted["preemptedBy"], preempted["attempt"], preempted["units"]) == ("urgent", 1, {P5: 1})
    assert 0 < preempted["lostSeconds"] < 90
    assert preempted["tags"] == {"priority": "0"}


@pytest.mark.parametrize(
    "chunk", [pytest.param(chunk, marks=[pytest.mark.slow] if chunk else []) for chunk in range(CHUNKS)]
)
def test_no_event_is_lost_by_a_manager_killed_after_any_change(chunk):
    for number in kills(calls(), reads=False)[chunk::CHUNKS]:
        with a_world(faults=Faults(kill_after=number)) as world:
            world.check_events(*story(world))
            assert world.killed == 1


@pytest.mark.parametrize(
    "chunk", [pytest.param(chunk, marks=[pytest.mark.slow] if chunk else []) for chunk in range(CHUNKS)]
)
@pytest.mark.parametrize("trouble", ["ThrottlingException", "InternalServerError", "lost answer"])
def test_no_event_is_lost_by_a_call_that_fails_or_whose_answer_is_lost(trouble, chunk):
    ours = [number for number, name in enumerate(calls(), 1) if name in {"PutEvents", "DeleteItem", "PutItem"}]
    for number in ours[chunk::CHUNKS]:
        lost = trouble == "lost answer"
        faults = Faults(lose=frozenset({number})) if lost else Faults(fail={number: trouble})
        with a_world(faults=faults) as world:
            world.check_events(*story(world))


def test_entries_that_the_bus_rejects_are_put_again_alone():
    with a_world() as world:
        world.bus.rejects = lambda number: number % 3 == 0
        world.check_events(*story(world))
        told = [(detail["jobName"], detail["sequence"]) for detail in world.bus.details]
    assert len(told) == len(set(told))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_random_rejections_kills_and_lost_answers_in_memory(seed):
    rng = random.Random(seed)
    world = World(profile=BRISK, pools=f"{P5}=1", published="all")
    world.bus.rejects = lambda number: rng.random() < 0.3
    world.faults.lose = frozenset(number for number in range(1, 120) if rng.random() < 0.1)
    world.faults.kill_after = rng.randint(1, 60)
    names = story(world)
    world.bus.rejects = lambda number: False
    world.check_events(*names)


def test_a_deployment_that_subscribes_to_some_types_gets_these_alone():
    world = World(profile=BRISK, pools=f"{P5}=1", published="ended,preempted")
    story(world)
    assert {detail["type"] for detail in world.bus.details} == {"ended", "preempted"}
    assert not world.api_context.store.outbox(limit=1)
