"""A manager that is killed after any call of a resize, whose call fails or whose answer is lost, or that is overtaken.

For each way to resize a job: it grows, another job has its instances taken back, and it grows again; the story is
played untouched, to count the calls, then once for every call and every kind of trouble. At the end nothing may be
lost, created twice or over a cap, and no member may have been torn out of a group that works on.

In memory every verb of the store and of the rendezvous counts as one call, beside SageMaker's; `slow` plays the same
over DynamoDB, call by call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from builders import ADA, P5
from elastic_world import BY_DECREE, EAGER, ElasticWorld
from samples import sample
from tables import new_table
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.domain.policy.settings import FailureClass, Policy
from trainmaster.domain.requests.elastic.size_change import SizeBounds
from trainmaster.service.change import cancel, change
from world import BRISK, in_chunks

CAP = 4
HOOKS = ("restart", "members", "custom")
CHUNKS = 4
SAMPLE = 112
"""The usual run tries one call of so many."""


pytestmark = pytest.mark.usefixtures("quiet")


@contextmanager
def a_world(*, durable: bool = False, **arguments: Any) -> Iterator[ElasticWorld]:
    if not durable:
        yield _reporting(ElasticWorld(profile=BRISK, pools=f"{P5}={CAP}", published="all", **arguments))
        return
    with new_table() as client:
        yield _reporting(ElasticWorld(client, profile=BRISK, pools=f"{P5}={CAP}", **arguments))


def _reporting(world: ElasticWorld) -> ElasticWorld:
    """Return the world, in which nodes report their speed; that is then among the calls that fail."""
    world.reports = True
    return world


def settled(world: ElasticWorld, size: int) -> bool:
    """Return True if the elastic job runs with this size, or has ended."""
    job = world.job("elastic")
    return job.state in ENDED or (job.state is JobState.RUNNING and world.size("elastic") == size)


def decreed_sizes(world: ElasticWorld, hook: str, **trouble: Any) -> list[str]:
    """It grows from 1 to 4, shrinks to 2 so that another fits, and grows to 3; trouble comes after the start."""
    world.elastic("elastic", hook, max_instances=4, training_seconds=500)
    world.run_until(lambda: settled(world, 1))
    world.faults.calls.clear()
    vars(world.faults).update(trouble)
    world.decreed["elastic"] = 4
    world.run_until(lambda: settled(world, 4))
    world.decreed["elastic"] = 2
    world.submit("other", count=2, priority=-1, training_seconds=60)
    world.run_until(lambda: settled(world, 2))
    world.run_until_ended("other")
    world.decreed["elastic"] = 3
    world.run_until(lambda: settled(world, 3))
    world.run_until_ended("elastic")
    return ["elastic", "other"]


def giving_way(world: ElasticWorld, hook: str, **trouble: Any) -> list[str]:
    """The planner's own: it has all there is, and gives half of it to a better job; then it has all again."""
    world.elastic("elastic", hook, max_instances=4, training_seconds=500)
    world.run_until(lambda: settled(world, 4))
    world.faults.calls.clear()
    vars(world.faults).update(trouble)
    world.submit("urgent", count=2, priority=5, training_seconds=60)
    world.run_until_ended("urgent")
    world.run_until(lambda: settled(world, 4))
    world.run_until_ended("elastic")
    return ["elastic", "urgent"]


def set_bounds(world: ElasticWorld, minimum: int, maximum: int) -> None:
    change(world.api_context, ADA, "elastic", bounds=SizeBounds(minimum, maximum))


def changing_bounds(world: ElasticWorld, hook: str, **trouble: Any) -> list[str]:
    """Its maximum falls below its size; its minimum rises above that, first while it shrinks and then while it runs."""
    world.elastic("elastic", hook, max_instances=4, training_seconds=900)
    world.run_until(lambda: settled(world, 4))
    world.faults.calls.clear()
    vars(world.faults).update(trouble)
    set_bounds(world, 1, 2)
    world.run(5)
    set_bounds(world, 3, 3)
    world.run_until(lambda: settled(world, 3))
    set_bounds(world, 1, 1)
    world.run_until(lambda: settled(world, 1))
    set_bounds(world, 2, 2)
    world.run_until(lambda: settled(world, 2))
    world.run_until_ended("elastic")
    return ["elastic"]


def losing_its_base(world: ElasticWorld, hook: str, **trouble: Any) -> list[str]:
    """SageMaker loses its base, then the member that took its place; each time another member comes."""
    world.elastic("elastic", hook, max_instances=3, training_seconds=500)
    world.run_until(lambda: settled(world, 3) and len(working(world)) == 3)
    world.faults.calls.clear()
    vars(world.faults).update(trouble)
    for lost in ("elastic", "elastic-qstamp-1-m1"):
        world.simulator.fail(lost)
        world.run_until(lambda lost=lost: settled(world, 3) and len({*working(world)} - {lost}) == 3)
    world.run_until_ended("elastic")
    return ["elastic"]


def working(world: ElasticWorld) -> list[str]:
    return [name for name in world.names("elastic") if world.training_jobs[name]["SecondaryStatus"] == "Training"]


def check_lost(world: ElasticWorld, names: list[str]) -> None:
    """Whatever comes upon the manager, it is one attempt, and both losses are replaced once."""
    check(world, names)
    job = world.job("elastic")
    assert ([each.number for each in job.attempts], job.failures) == ([1], {FailureClass.SERVICE: 2})
    assert len(world.training_jobs) == 5, "a replacement was created twice"


def check(world: ElasticWorld, names: list[str]) -> None:
    """The invariants at the end of every story."""
    assert world.peaks[P5] <= CAP, f"{world.peaks[P5]} instances at once"
    assert not world.doubles, f"two attempts at once: {world.doubles}"
    assert not world.torn, f"stopped while they took part: {world.torn}"
    assert not world.in_use(), "training jobs run on after the queue is empty"
    assert world.states(*names) == dict.fromkeys(names, "completed")
    attempts = {a.training_job_name: a for name in names for a in world.job(name).attempts}
    bases = {re.sub(r"-m[0-9]+$", "", name) if "-qstamp-" in name else name for name in world.training_jobs}
    assert bases - {"elastic-qstamp-1"} == {n for n, a in attempts.items() if a.launched}, "an attempt that no job has"
    for name in names:
        assert all(each.outcome is not Outcome.ACTIVE for each in world.job(name).attempts)
    assert world.job("elastic").preemptions == 0
    assert not world.queue.aside
    if world.published:
        world.check_events(*names)


def check_decreed(world: ElasticWorld, names: list[str]) -> None:
    """Whatever comes upon the manager, the job gets the sizes that it was to get."""
    check(world, names)
    sizes = [line.reason for line in world.job("elastic").history if line.reason.startswith("runs with")]
    assert sizes == [f"runs with {size} instances" for size in (4, 2, 3)]


@dataclass(frozen=True, eq=False)
class Scenario:
    """A run under given settings, and the check of its end."""

    run: Callable[..., list[str]]
    policy: Policy
    check: Callable[[ElasticWorld, list[str]], None]


SCENARIOS = {
    "decreed": Scenario(decreed_sizes, BY_DECREE, check_decreed),
    "giving way": Scenario(giving_way, EAGER, check),
}


LOSS = Scenario(losing_its_base, EAGER, check_lost)
BOUNDS = Scenario(changing_bounds, EAGER, check)


@cache
def calls_of(told: Scenario, hook: str, *, durable: bool = False) -> int:
    """Count the manager's calls in an undisturbed run, from the first resize on."""
    with a_world(durable=durable, policy=told.policy) as world:
        told.check(world, told.run(world, hook))
        return len(world.faults.calls)


TROUBLES = {
    "killed": lambda number: {"kill_after": number},
    "throttled": lambda number: {"fail": {number: "ThrottlingException"}},
    "failing": lambda number: {"fail": {number: "InternalServerError"}},
    "unheard": lambda number: {"lose": frozenset({number})},
    "overtaken": lambda number: {"overtake_after": number},
}


def run_all(told: Scenario, hook: str, trouble: str, first: int, every: int, *, durable: bool = False) -> None:
    """The story with this trouble at the first call, and at every so-manieth after it."""
    for number in range(first, calls_of(told, hook, durable=durable) + 1, every):
        with a_world(durable=durable, policy=told.policy) as world:
            told.check(world, told.run(world, hook, **TROUBLES[trouble](number)))


@pytest.mark.parametrize("trouble", sample(TROUBLES, 2))
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("told", SCENARIOS)
def test_any_call_of_a_resize_may_be_the_managers_last_or_go_wrong(told, hook, trouble):
    run_all(SCENARIOS[told], hook, trouble, 1 + 3 * [*TROUBLES].index(trouble), SAMPLE)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_any_call_after_the_loss_of_a_base_may_be_the_managers_last_or_go_wrong(trouble):
    run_all(LOSS, "members", trouble, 1 + 3 * [*TROUBLES].index(trouble), SAMPLE)


@in_chunks(4)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_slow_manager_leaves_nothing_running_of_a_job_that_was_stopped_meanwhile(hook, chunk):
    """While it is between two calls, the job's user stops it and another manager carries that out."""
    for number in range(1 + chunk, 14, 4):
        with a_world(policy=BY_DECREE) as world:
            world.elastic("elastic", hook, max_instances=4, training_seconds=4000)
            world.run_until(lambda w=world: settled(w, 1))
            world.faults.calls.clear()
            world.faults.overtake_after = number
            world.faults.overtake = lambda w=world: (cancel(w.api_context, ADA, "elastic"), w.second_manager())
            world.decreed["elastic"] = 4
            world.run_until_ended("elastic")
            world.run(300)
            assert (world.overtaken, world.job("elastic").state, world.in_use()) == (1, JobState.STOPPED, {})


@pytest.mark.parametrize(("hook", "trouble"), [("restart", "killed"), ("members", "overtaken"), ("custom", "unheard")])
def test_any_call_after_a_change_of_bounds_may_be_the_managers_last_or_go_wrong(hook, trouble):
    run_all(BOUNDS, hook, trouble, 1 + 3 * [*TROUBLES].index(trouble), 4 * SAMPLE)


@pytest.mark.parametrize("hook", HOOKS)
def test_bounds_that_change_between_two_calls_of_a_manager_hold_in_the_end(hook):
    for number in (1, 4, 9):
        with a_world(policy=EAGER) as world:
            world.elastic("elastic", hook, max_instances=4, training_seconds=500)
            world.run_until(lambda w=world: settled(w, 4))
            world.faults.calls.clear()
            world.faults.overtake_after = number
            world.faults.overtake = lambda w=world: (set_bounds(w, 2, 3), w.second_manager())
            set_bounds(world, 1, 2)
            world.run_until(lambda w=world: w.overtaken == 1 and settled(w, 3))
            world.run_until_ended("elastic")
            check(world, ["elastic"])


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("told", SCENARIOS)
def test_every_call_of_a_resize_may_be_the_managers_last_or_go_wrong(told, hook, trouble, chunk):
    run_all(SCENARIOS[told], hook, trouble, 1 + chunk, CHUNKS)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("trouble", TROUBLES)
def test_every_call_after_the_loss_of_a_base_may_be_the_managers_last_or_go_wrong(trouble, chunk):
    run_all(LOSS, "members", trouble, 1 + chunk, CHUNKS)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("hook", HOOKS)
def test_every_call_after_a_change_of_bounds_may_be_the_managers_last_or_go_wrong(hook, trouble, chunk):
    run_all(BOUNDS, hook, trouble, 1 + chunk, CHUNKS)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("told", SCENARIOS)
def test_so_may_calls_of_dynamodb(told, hook, trouble):
    run_all(SCENARIOS[told], hook, trouble, 1 + 3 * [*TROUBLES].index(trouble), SAMPLE // 2, durable=True)
