"""The article's four jobs, and what people do to jobs, through the shipped manager on a virtual clock."""

from __future__ import annotations

import pytest

from builders import P5
from tables import new_table
from world import World


@pytest.fixture
def dynamodb():
    with new_table() as client:
        yield client


def the_articles_jobs(world):
    """Article, "use case example": one every 20 seconds."""
    for name, priority, seconds in (("job1", 1, 900), ("job2", 2, 600), ("job3", 1, 300), ("job4", 3, 900)):
        world.submit(name, priority=priority, training_seconds=seconds)
        world.run(200)
        yield name


def test_the_articles_tables(dynamodb):
    world = World(dynamodb)
    names = ("job1", "job2", "job3", "job4")
    steps = the_articles_jobs(world)
    assert [next(steps) for _ in range(3)] == ["job1", "job2", "job3"]
    assert world.states("job2", "job1", "job3") == {"job2": "running", "job1": "running", "job3": "pending"}
    next(steps)
    assert world.states(*names) == {"job1": "preempted", "job2": "running", "job3": "pending", "job4": "running"}
    world.run(240)
    assert world.states(*names) == {"job1": "running", "job2": "completed", "job3": "pending", "job4": "running"}
    world.run_until_ended(*names)
    assert set(world.states(*names).values()) == {"completed"}
    assert world.opened == ["job1", "job2", "job4", "job1-qstamp-2", "job3"]
    assert world.peaks == {P5: 2}
    assert not world.doubles
