"""Events reach the bus at least once and tell nothing that was not committed, whatever happens to the manager."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import ADA, P5
from samples import sample
from tables import new_table
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import Unavailable
from trainmaster.domain.policy.settings import Budget, Share
from trainmaster.ports.store import Pause
from trainmaster.service.change import cancel, change_settings
from world import BRISK, Faults, World, a_request, fault_at, in_chunks, kills
from world import VERDICTS as STORED

CHUNKS = 60
VERDICTS = {"infeasible", "feasible"}


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


def pools_change(world: World) -> list[str]:
    """No pool can hold a job, then one can: once while another job takes the room, once for it to start at once."""

    def cap(count: int) -> None:
        change_settings(world.api_context, ADA, lambda stored: ([Pool(P5, count)], None), None)

    cap(2)
    world.submit("first", training_seconds=450, priority=5)
    world.submit("large", count=2, training_seconds=20)
    world.run(30, step=10)
    for count in (1, 2, 1):
        cap(count)
        # Longer than a failed pass is repeated after: what changes back before a pass sees it is told by none.
        world.run(130, step=10)
    world.run_until_ended("first")
    cap(2)
    world.run_until_ended("large")
    return ["first", "large"]


def budget_is_spent(world: World) -> list[str]:
    """A share spends its budget with one job, which still runs as the next period begins."""
    budget = Budget(gpu_hours=0.8, period=timedelta(hours=1))
    policy = replace(world.policy, shares={"default": Share(name="default", budget=budget)})
    change_settings(world.api_context, ADA, lambda stored: (None, policy), None)
    world.submit("long", training_seconds=4200)
    world.run(4300, step=30)
    world.run_until_ended("long")
    return ["long"]


STORIES = {"jobs": story, "pools": pools_change, "budget": budget_is_spent}


@cache
def calls(name: str = "jobs") -> list[str]:
    with a_world() as world:
        world.check_events(*STORIES[name](world))
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


@in_chunks(CHUNKS)
@pytest.mark.parametrize("name", sample(STORIES, 2))
def test_no_event_is_lost_by_a_manager_killed_after_any_change(name, chunk):
    for number in kills(calls(name), reads=False)[chunk::CHUNKS]:
        with a_world(faults=Faults(kill_after=number)) as world:
            world.check_events(*STORIES[name](world))
            assert world.killed == 1
            budgets = {(each["periodEnd"], each["threshold"]) for each in world.bus.details if each["type"] == "budget"}
            assert len(budgets) == (4 if name == "budget" else 0)


@in_chunks(CHUNKS)
@pytest.mark.parametrize("trouble", ["ThrottlingException", "InternalServerError", "lost answer"])
def test_no_event_is_lost_by_a_call_that_fails_or_whose_answer_is_lost(trouble, chunk):
    ours = [number for number, name in enumerate(calls(), 1) if name in {"PutEvents", "DeleteItem", "PutItem"}]
    for number in ours[chunk::CHUNKS]:
        with a_world(faults=fault_at(number, trouble)) as world:
            world.check_events(*story(world))


@in_chunks(CHUNKS)
@pytest.mark.parametrize("trouble", ["InternalServerError", "lost answer"])
def test_no_verdict_is_lost_or_told_twice_if_its_commit_fails_or_its_answer_is_lost(trouble, chunk):
    writes = {"TransactWriteItems", "PutItem"}
    for number in [number for number, name in enumerate(calls("pools"), 1) if name in writes][chunk::CHUNKS]:
        with a_world(faults=fault_at(number, trouble)) as world:
            world.check_events(*pools_change(world))
            told = [detail["type"] for detail in once(world.bus.details) if detail["jobName"] == "large"]
            assert [kind for kind in told if kind in VERDICTS] == ["infeasible", "feasible"] * 2


def once(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events of jobs in the order of their changes, each once."""
    of_jobs = [detail for detail in details if "jobName" in detail]
    return list({(each["at"], each["jobName"], each["sequence"]): each for each in of_jobs}.values())


def test_the_events_of_a_job_that_no_pool_can_hold():
    with a_world() as world:
        pools_change(world)
        world.check_events("first", "large")
        large = [detail for detail in world.bus.details if detail.get("jobName") == "large"]
    assert [detail["type"] for detail in large] == [
        "submitted",
        "infeasible",
        "feasible",
        "infeasible",
        "feasible",
        "starting",
        "started",
        "ended",
    ]
    infeasible = large[1]
    assert (infeasible["from"], infeasible["to"]) == ("pending", "pending")
    assert infeasible["reason"]["message"] == f"can never fit: needs 2 x {P5}, the pool's cap is 1"


def test_a_budget_is_told_of_while_its_job_runs():
    with a_world() as world:
        world.check_events(*budget_is_spent(world))
        told = [each for each in world.bus.details if each["type"] == "budget"]
        ended = next(each["at"] for each in world.bus.details if each["type"] == "ended")
    assert [each["threshold"] for each in told] == [80, 100] * 2
    assert [each["periodEnd"][11:16] for each in told] == ["13:00", "13:00", "14:00", "14:00"]
    assert all(each["at"] < ended for each in told)
    used = [each["used"]["gpuHours"] for each in told[:2]]
    assert 0.64 <= used[0] < 0.64 + 8 / 60 + 0.02, "within a minute of eight accelerators"
    assert 0.8 <= used[1] < 0.8 + 8 / 60 + 0.02


def test_verdicts_are_stored_only_where_they_are_published():
    told = []
    for published in ("ended", "ended,feasible"):
        world = World(profile=BRISK, pools=f"{P5}=1", published=published)
        pools_change(world)
        told.append([line.reason.startswith(STORED) for line in world.job("large").history].count(True))
    assert told == [0, 4]


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


def notified(world):
    return [(each["MessageAttributes"]["job"]["StringValue"], each["Subject"]) for each in world.topic.messages]


def two_jobs(world):
    for name, tags in (("told", {"notify": "preempted+end"}), ("quiet", {})):
        request = a_request(name, training_seconds=60)
        request["Tags"] += [{"Key": f"trainmaster:{key}", "Value": value} for key, value in tags.items()]
        world.submit_request(request)
        world.run(20, step=10)
    world.submit("urgent", priority=5, training_seconds=20)
    world.run_until_ended("told", "quiet", "urgent")


def test_people_are_notified_of_the_changes_that_a_job_names_alone():
    world = World(profile=BRISK, pools=f"{P5}=1", notifies=True)
    two_jobs(world)
    assert notified(world) == [
        ("told", "told was preempted (queue sagemaker-queue)"),
        ("told", "told completed (queue sagemaker-queue)"),
    ]
    assert world.bus.details == []


def test_a_topic_that_fails_delays_no_event_and_repeats_none():
    """Each recipient has its own part of an entry: what one has accepted is not delivered to it again."""
    world = World(profile=BRISK, pools=f"{P5}=1", published="ended", notifies=True)
    broken, publish = True, world.topic.publish

    def failing(**message):
        if broken:
            raise Unavailable("the topic is gone")
        publish(**message)

    world.topic.publish = failing
    two_jobs(world)
    world.run(300, step=60)
    assert sorted(each["jobName"] for each in world.bus.details) == ["quiet", "told", "urgent"]
    assert [entry.to for row in world.api_context.store.outbox(limit=9) for entry in row.entries] == [("topic",)] * 2
    broken = False
    world.run(120, step=60)
    assert len(notified(world)) == 2
    assert len(world.bus.details) == 3
    assert not world.api_context.store.outbox(limit=1)


def test_events_are_delivered_while_the_manager_is_paused():
    world = World(profile=BRISK, pools=f"{P5}=1", published="submitted")
    world.api_context.store.set_pause(Pause("a test", "ada", world.now()))
    world.submit("job1")
    world.run(120, step=60)
    assert [each["type"] for each in world.bus.details] == ["submitted"]


def test_an_entry_to_a_recipient_of_a_newer_release_stays():
    world = World(profile=BRISK, published="submitted")
    store = world.api_context.store
    world.submit("job1")
    (row,) = store.outbox(limit=1)
    store.settle_outbox(row, [replace(row.entries[0], to=("bus", "callback"))])
    world.run(60, step=60)
    (row,) = store.outbox(limit=2)
    assert row.entries[0].to == ("callback",)
    assert len(world.bus.details) == 1


def test_a_damaged_row_holds_up_no_other():
    with new_table() as client:
        world = World(client, profile=BRISK, pools=f"{P5}=1", published="ended")
        item = {"pk": {"S": "OUTBOX"}, "sk": {"S": "0000"}, "entries": {"S": "[[1]]"}}
        client.put_item(TableName="sagemaker-queue", Item=item)
        world.submit("job1", training_seconds=20)
        world.run_until_ended("job1")
        assert [each["jobName"] for each in world.bus.details] == ["job1"]
