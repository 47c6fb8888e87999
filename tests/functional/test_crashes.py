"""A manager that is killed after any one of its AWS calls, or whose call fails, or that hears events wrongly.

Each scenario is run once untouched, to count the manager's calls, then once for every call and every kind of trouble.
At the end nothing may be lost, started twice or over a cap.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from builders import ADA, G5, P5
from samples import sample
from tables import new_table
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import ENDED
from trainmaster.service.change import cancel
from world import BRISK, Faults, World, in_chunks, kills

CHUNKS = 16
CAPS = {P5: 2, G5: 4}
SOME = {0, 5}
"""Chunks that the usual run has of a proof whose other ones are slow: of even and of odd calls."""
some_chunks = pytest.mark.parametrize(
    "chunk", [pytest.param(chunk, marks=[] if chunk in SOME else [pytest.mark.slow]) for chunk in range(CHUNKS)]
)


pytestmark = pytest.mark.usefixtures("quiet")


@contextmanager
def a_world(**arguments: Any) -> Iterator[World]:
    """A world on DynamoDB, where the manager's calls are to be counted or to fail."""
    with new_table() as client:
        yield World(client, profile=BRISK, **arguments)


def article(world: World) -> list[str]:
    """The article's four jobs, shortened."""
    for name, priority, seconds in (("job1", 1, 130), ("job2", 2, 100), ("job3", 1, 20), ("job4", 3, 70)):
        world.submit(name, priority=priority, training_seconds=seconds)
        world.run(30, step=10)
    names = ["job1", "job2", "job3", "job4"]
    world.run_until_ended(*names)
    return names


def crowd(world: World, seed: int) -> list[str]:
    """Gangs, two pools, priorities, a failing job, a cancelled one, one stopped in the console, at random times."""
    rng = random.Random(seed)
    names = []
    for index in range(9):
        kind = rng.choice((P5, G5, G5))
        world.submit(
            f"j{index}",
            priority=rng.randint(0, 2),
            kind=kind,
            count=rng.randint(1, CAPS[kind]),
            training_seconds=rng.randint(20, 300),
            outcome=rng.choice(("completed", "completed", "failed")),
        )
        names.append(f"j{index}")
        world.run(rng.choice((0, 20, 80)), step=20)
    try_to(lambda: cancel(world.api_context, ADA, rng.choice(names)))
    running = [name for name, job in world.training_jobs.items() if job["TrainingJobStatus"] == "InProgress"]
    if running:
        world.simulator.call("StopTrainingJob", TrainingJobName=rng.choice(running))
    world.run_until_ended(*names)
    return names


def try_to(act: Callable[[], Any]) -> None:
    """A person whose wish comes too late is told so."""
    with suppress(IllegalTransition):
        act()


@dataclass(frozen=True)
class Scenario:
    name: str
    run: Callable[[World], list[str]]
    pools: str = f"{P5}=2,{G5}=4"


ARTICLE = Scenario("article", article)
CROWD = Scenario("crowd", lambda world: crowd(world, 7))


def check(world: World, names: list[str]) -> None:
    """The invariants at the end of every story."""
    for kind, peak in world.peaks.items():
        assert peak <= CAPS[kind], f"{peak} x {kind} at once"
    assert not world.doubles, f"two attempts at once: {world.doubles}"
    assert not world.in_use(), "training jobs run on after the queue is empty"
    attempts = {a.training_job_name: a for name in names for a in world.job(name).attempts}
    # A tagged event may report the work and the end of an attempt before a pass has confirmed its launch.
    seen = {n for n, a in attempts.items() if a.launched or a.started_at is not None}
    assert set(world.training_jobs) == seen, "an attempt that no job has"
    for name in names:
        job = world.job(name)
        assert job.state in ENDED
        assert all(attempt.outcome is not Outcome.ACTIVE for attempt in job.attempts)
    assert not world.queue.aside
    if world.published:
        world.check_events(*names)


def check_article(world: World, names: list[str]) -> None:
    check(world, names)
    assert set(world.states(*names).values()) == {"completed"}, world.states(*names)


@cache
def calls_of(scenario: Scenario) -> list[str]:
    """The names of the manager's AWS calls in an untouched run."""
    with a_world(pools=scenario.pools) as world:
        check(world, scenario.run(world))
        return world.faults.calls


@some_chunks
@pytest.mark.parametrize("reads", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["change", "read"])
@pytest.mark.parametrize("scenario", [ARTICLE, pytest.param(CROWD, marks=pytest.mark.slow)], ids=lambda s: s.name)
def test_a_manager_killed_after_any_aws_call_loses_nothing(scenario, reads, chunk):
    for number in kills(calls_of(scenario), reads=reads)[chunk::CHUNKS]:
        with a_world(pools=scenario.pools, faults=Faults(kill_after=number)) as world:
            names = scenario.run(world)
            assert world.killed == 1
            (check_article if scenario is ARTICLE else check)(world, names)


# A call that fails meets the code that a kill after it does, so that the usual run makes one of sixteen fail.
@in_chunks(CHUNKS)
@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        pytest.param(ARTICLE, "ThrottlingException", id="throttled"),
        pytest.param(ARTICLE, "InternalServerError", id="5xx", marks=pytest.mark.slow),
        pytest.param(CROWD, "ThrottlingException", id="crowd-throttled", marks=pytest.mark.slow),
        pytest.param(CROWD, "InternalServerError", id="crowd-5xx", marks=pytest.mark.slow),
    ],
)
def test_any_aws_call_may_fail(scenario, code, chunk):
    for number in range(chunk + 1, len(calls_of(scenario)) + 1, CHUNKS):
        with a_world(pools=scenario.pools, faults=Faults(fail={number: code})) as world:
            names = scenario.run(world)
            (check_article if scenario is ARTICLE else check)(world, names)


@in_chunks(6)
def test_a_preemption_that_was_decided_is_carried_out_whatever_call_the_manager_dies_after(chunk):
    """The victim would run on for hours: only a stop that is asked for again frees its instance."""
    for number in range(chunk + 1, 26, 6):
        with a_world(pools=f"{P5}=1") as world:
            world.submit("victim", training_seconds=40_000)
            world.run(60)
            world.faults.calls.clear()
            world.faults.kill_after = number
            world.submit("urgent", priority=5, training_seconds=30)
            world.run_until_ended("urgent", limit=1000)
            assert world.job("victim").attempts[0].outcome is Outcome.PREEMPTED
            if world.killed == 0:
                break
    assert number > 8


ACTS = {"TransactWriteItems", "PutItem", "CreateTrainingJob", "StopTrainingJob"}


@some_chunks
def test_a_manager_overtaken_by_another_before_or_after_any_act_does_no_harm(chunk):
    calls = calls_of(ARTICLE)
    around = [n for n in range(1, len(calls)) if ACTS & set(calls[n - 1 : n + 1])]
    for number in around[chunk::CHUNKS]:
        with a_world(pools=ARTICLE.pools, faults=Faults(overtake_after=number)) as world:
            names = article(world)
            assert world.overtaken == 1
            check_article(world, names)


@in_chunks(4)
def test_the_fence_keeps_a_slow_manager_from_giving_away_what_another_gave_since(chunk):
    """While the first is between any two calls, a better job arrives and a second manager starts it."""
    for number in itertools.count(chunk + 1, 4):
        with a_world(pools=f"{P5}=1", faults=Faults(overtake_after=number)) as world:
            world.faults.overtake = lambda w=world: (w.submit("high", priority=5), w.second_manager())
            world.submit("low", training_seconds=60)
            world.settle()
            if world.overtaken == 1:
                world.run_until_ended("low", "high")
            assert world.peaks[P5] <= 1
            if world.overtaken == 0:
                break
    assert number > 4


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_manager_overtaken_by_another_after_any_call_does_no_harm(chunk):
    for number in range(chunk + 1, len(calls_of(CROWD)) + 1, CHUNKS):
        with a_world(pools=CROWD.pools, faults=Faults(overtake_after=number)) as world:
            check(world, CROWD.run(world))


TROUBLES = {"duplicated": [0.0, 0.0], "repeated much later": [0.0, 700.0], "dropped": [], "delayed": [400.0]}


@in_chunks(8)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_any_event_may_be_told_wrongly(trouble, chunk):
    world = World(profile=BRISK, pools=ARTICLE.pools)
    ARTICLE.run(world)
    for number in range(chunk + 1, world.events_seen + 1, 8):
        delivery = lambda seen, event, wrong=number: TROUBLES[trouble] if seen == wrong else [0.0]  # noqa: E731
        told = World(profile=BRISK, pools=ARTICLE.pools, events=delivery)
        check_article(told, ARTICLE.run(told))


@pytest.mark.parametrize("trouble", TROUBLES)
def test_all_events_may_be_told_wrongly(trouble):
    world = World(profile=BRISK, pools=ARTICLE.pools, events=lambda seen, event: TROUBLES[trouble])
    check_article(world, ARTICLE.run(world))


@pytest.mark.parametrize("seed", sample(range(10), 2))
def test_events_may_come_in_any_order(seed):
    rng = random.Random(seed)
    world = World(profile=BRISK, pools=CROWD.pools, events=lambda seen, event: [rng.uniform(0, 500)])
    check(world, crowd(world, seed))


@pytest.mark.parametrize("seed", sample(range(4)))
def test_many_troubles_at_once(seed):
    rng = random.Random(seed)
    codes = ("ThrottlingException", "InternalServerError")
    fail = {number: rng.choice(codes) for number in range(1, 400) if rng.random() < 0.08}
    faults = Faults(fail=fail, kill_after=rng.randint(1, 100))
    late = lambda seen, event: rng.choice(([], [0.0], [0.0, 90.0], [rng.uniform(0, 600)]))  # noqa: E731
    with a_world(pools=CROWD.pools, faults=faults, events=late, published="all") as world:
        check(world, crowd(world, seed))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_crowds_with_random_troubles(chunk):
    for seed in itertools.chain(range(100 + chunk, 180, CHUNKS)):
        rng = random.Random(seed)
        fail = {number: "ThrottlingException" for number in range(1, 600) if rng.random() < 0.05}
        faults = Faults(fail=fail, kill_after=rng.randint(1, 200))
        with a_world(pools=CROWD.pools, faults=faults, published="all") as world:
            check(world, crowd(world, seed))
