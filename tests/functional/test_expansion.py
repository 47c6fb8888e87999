"""Pools that the manager makes by itself, from the job that fits nowhere to the pool that is no longer needed.

Over the shipped handler, both stores and the simulated SageMaker on the virtual clock; a manager may die after any of
its calls, or another may overtake it there.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api_world import CountingStore
from builders import P5
from tables import new_table
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.pool_history import PoolAction
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import Throttled, Unavailable, VersionConflict
from trainmaster.domain.policy.settings import Expansion, Share
from trainmaster.domain.reasons.capacity import Infeasible
from trainmaster.service.explain.explain import explain
from trainmaster.service.run_pass import run_pass
from world import BRISK, Faults, World, a_request, in_chunks

G5 = "ml.g5.2xlarge"
G6 = "ml.g6.2xlarge"
IDLE = timedelta(minutes=10)
ON = Expansion(enabled=True, types=(G5,), retire_after=IDLE)
SHORT = Expansion(enabled=True, types=(G5, G6), retire_after=timedelta(seconds=90))


def a_request_by_resources(name: str, instances: int = 1, asked: str = "accelerators=1", **more: Any) -> dict[str, Any]:
    request = a_request(name, **more)
    request["ResourceConfig"] = {"VolumeSizeInGB": 30}
    tags = {"resources": asked, "instances": str(instances)}
    request["Tags"] += [{"Key": f"trainmaster:{key}", "Value": value} for key, value in tags.items()]
    return request


class Queue:
    """A world in which expansion is on."""

    def __init__(self, world: World, expansion: Expansion = ON) -> None:
        self.world = world
        self.store = world.api_context.store
        self.expand(expansion)

    def expand(self, expansion: Expansion) -> None:
        policy = self.store.settings().policy
        self.store.set_settings(
            policy=type(policy)(expansion=expansion, reservation_timeout=policy.reservation_timeout)
        )

    def ask(self, name: str, instances: int = 1, **more: Any) -> None:
        self.world.submit_request(a_request_by_resources(name, instances, **more))

    @property
    def made(self) -> dict[str, int]:
        """Caps of the pools that the manager has made, by name."""
        return {name: pool.cap for name, pool in self.store.settings().pools.items() if pool.made_for}

    def history(self, name: str) -> list[str]:
        return [change.reason for change in self.world.job(name).history]


def a_world(**arguments: Any) -> World:
    return World(profile=BRISK, pools=f"ml.m5.large=2,{P5}=0", **arguments)


@contextmanager
def on_dynamodb(**arguments: Any):
    with new_table() as client:
        yield World(client, profile=BRISK, pools="ml.m5.large=2", **arguments)


@pytest.fixture
def queue():
    return Queue(a_world())


def test_an_infeasible_job_runs_in_a_created_pool_which_is_removed_when_unused(queue):
    queue.ask("job1", 2, training_seconds=300)
    queue.world.run(30)
    assert queue.made == {G5: 2}
    assert queue.world.in_use() == {G5: 2}
    assert queue.history("job1")[1] == f"a pool of 2 x {G5} was created for it"
    queue.world.run_until_ended("job1")
    ended = queue.world.job("job1").ended_at
    assert queue.world.states("job1") == {"job1": "completed"}
    while queue.made:
        assert queue.world.clock.now() < ended + IDLE + timedelta(minutes=3)
        queue.world.run(20)
    assert queue.world.clock.now() >= ended + IDLE
    assert queue.store.settings().pools.keys() == {"ml.m5.large", P5}


def test_nothing_is_made_while_it_is_off_and_turning_it_on_is_enough(queue):
    queue.expand(Expansion())
    queue.ask("job1")
    queue.world.run(600)
    assert (queue.made, queue.world.states("job1")) == ({}, {"job1": "pending"})
    reason = explain(queue.store, queue.world.clock.now(), [queue.world.job("job1")])["job1"].reason
    assert reason == Infeasible("accelerators=1", 1, 0, at_zero=True)
    queue.expand(ON)
    queue.world.run_until_ended("job1")


def test_a_job_that_names_a_type_without_a_pool_gets_one(queue):
    queue.world.submit("typed", kind=G5, count=2, training_seconds=30)
    queue.world.run_until_ended("typed")
    assert (queue.made, queue.world.peaks[G5]) == ({G5: 2}, 2)
    assert f"a pool of 2 x {G5} was created for it" in queue.history("typed")


def test_a_job_beyond_the_guard_rails_is_told_which(queue):
    queue.ask("job1", 9)
    queue.world.run(120)
    reason = explain(queue.store, queue.world.clock.now(), [queue.world.job("job1")])["job1"].reason
    rail = f"9 x {G5} would exceed the maximum instances of a type, 8 (expansion.maxPerType)"
    assert (queue.made, reason) == ({}, Infeasible("accelerators=1", 9, 0, rail, at_zero=True))


def test_a_pool_that_jobs_wait_for_grows_within_the_guard_rails(queue):
    queue.expand(Expansion(enabled=True, types=(G5,), max_instances=3, max_per_type=3))
    for number in range(6):
        queue.ask(f"job{number}", training_seconds=600)
        queue.world.run(5)
    queue.world.run(70)
    assert (queue.made, queue.world.in_use()) == ({G5: 3}, {G5: 3})
    queue.world.run_until_ended(*(f"job{number}" for number in range(6)))
    assert queue.world.peaks[G5] == 3


def test_a_pool_whose_job_met_no_capacity_is_not_made_twice():
    queue = Queue(a_world(limits={G5: 0}))
    queue.ask("job1", training_seconds=60)
    queue.world.run(1200, step=20)
    assert queue.made == {G5: 1}
    assert queue.history("job1").count(f"a pool of 1 x {G5} was created for it") == 1


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("gone"), VersionConflict("another writer")])
def test_pools_that_cannot_be_changed_now_hold_up_nothing_else(queue, error):
    queue.ask("job1")
    queue.world.submit("other", kind="ml.m5.large")
    store = CountingStore(queue.store)
    store.failing["set_settings"] = error
    report = run_pass(replace(queue.world.application().manager_context, store=store))
    assert (report.created_pools, report.conflicts, report.started) == ([], 1, ["other"])
    assert run_pass(queue.world.application().manager_context).created_pools == [G5]


def test_a_pass_that_was_overtaken_starts_nothing_though_its_pool_may_be_there(queue):
    queue.ask("job1")
    manager_context = queue.world.application().manager_context

    class Overtaken(CountingStore):
        def set_settings(self, **given: Any) -> Any:
            self._store.begin_pass()
            return self._store.set_settings(**given)

    report = run_pass(replace(manager_context, store=Overtaken(queue.store)))
    assert (report.fenced, report.started, report.created_pools, queue.made) == (True, [], [G5], {G5: 1})
    assert run_pass(manager_context).started == ["job1"]


def test_a_pass_tells_what_it_has_made_and_retired(queue):
    queue.ask("job1", training_seconds=5)
    report = run_pass(queue.world.application().manager_context)
    assert (report.created_pools, report.started) == ([G5], ["job1"])
    queue.world.run_until_ended("job1")
    queue.world.simulator.advance((IDLE + timedelta(minutes=1)).total_seconds())
    report = run_pass(queue.world.application().manager_context)
    assert (report.created_pools, report.removed_pools) == ([], [G5])


def test_a_pool_that_a_share_has_come_to_name_while_a_pass_decides_stays(queue):
    queue.ask("job1", training_seconds=5)
    queue.world.run_until_ended("job1")
    queue.world.simulator.advance((IDLE + timedelta(minutes=1)).total_seconds())
    manager_context, store = queue.world.application().manager_context, queue.store

    class Overtaken(CountingStore):
        def begin_pass(self) -> Any:
            snapshot, policy = self._store.begin_pass(), store.settings().policy
            shares = {"vision": Share(name="vision", nominal={G5: 1})}
            store.set_settings(policy=replace(policy, shares=shares))
            return snapshot

    report = run_pass(replace(manager_context, store=Overtaken(store)))
    assert (report.removed_pools, report.conflicts, queue.made) == ([], 1, {G5: 1})
    assert run_pass(manager_context).removed_pools == []


def test_the_history_records_change_beneficiary_cost_and_reason(queue):
    queue.expand(Expansion(enabled=True, types=(G5, G6), max_instances=4, max_per_type=4, retire_after=IDLE))
    queue.ask("job1", 3, training_seconds=60)
    queue.ask("job2", 1, training_seconds=3000)
    queue.world.run_until_ended("job1")
    queue.world.submit("other", kind=G5, count=3, training_seconds=60)
    queue.world.run(60)
    made, other, given = queue.store.settings(history=True).history
    price = SHIPPED[G6].price
    assert (made.action, made.pool, made.instance_type, made.before, made.after) == (PoolAction.EXPAND, G6, G6, 0, 4)
    assert (made.jobs, made.job_count, made.made_for) == (("job1", "job2"), 2, "3 x (accelerators=1)")
    assert made.dollars_per_hour == pytest.approx(4 * price)
    assert (given.action, given.pool, given.before, given.after, given.jobs) == (
        PoolAction.SHRINK,
        G6,
        4,
        1,
        ("other",),
    )
    assert given.dollars_per_hour == pytest.approx(-3 * price)
    assert (other.action, other.pool, other.after) == (PoolAction.EXPAND, G5, 3)
    assert made.at < given.at == other.at
    assert "guardrail" in given.why


def test_a_concurrent_change_of_pools_wins_and_no_job_starts_in_an_uncreated_pool():
    """Another writer changes the pools after the manager has read them; the next pass makes the pool among theirs."""
    number, overtaken, seen = 0, True, set()
    while overtaken:
        number += 1
        with on_dynamodb(faults=Faults(overtake_after=number)) as world:
            queue = Queue(world)
            theirs = [Pool("ml.m5.large", 3), Pool(P5, 0)]

            def others(world: World = world, theirs: list[Pool] = theirs) -> None:
                mine = [pool for pool in world.api_context.store.settings().pools.values() if pool.made_for]
                world.api_context.store.set_settings(pools=[*theirs, *mine])
                world.overtaken += 1

            world.faults.overtake = others
            queue.ask("job1", training_seconds=30)
            world.settle()
            seen.add((bool(queue.made), str(world.job("job1").state)))
            overtaken = world.overtaken == 1
            world.run_until_ended("job1")
            if overtaken:
                assert queue.store.settings().pools["ml.m5.large"].cap == 3
    assert number > 5
    assert (False, "pending") in seen, "no change came before the pool was made"


@in_chunks(4)
def test_a_manager_killed_after_any_call_loses_nothing_and_makes_one_pool(quiet, chunk):
    for number in itertools.count(chunk + 1, 4):
        with on_dynamodb(faults=Faults(kill_after=number)) as world:
            queue = Queue(world, SHORT)
            story(queue)
            if not world.killed:
                break
    assert number > 8


@pytest.mark.slow
@in_chunks(4)
@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError"])
def test_any_call_may_fail_and_one_pool_is_made(quiet, chunk, code):
    for number in itertools.count(chunk + 1, 4):
        with on_dynamodb(faults=Faults(fail={number: code})) as world:
            story(Queue(world, SHORT))
            if len(world.faults.calls) < number:
                break
    assert number > 8


@pytest.mark.slow
@in_chunks(4)
def test_two_managers_never_make_two_pools_for_one_demand(quiet, chunk):
    for number in itertools.count(chunk + 1, 4):
        with on_dynamodb(faults=Faults(overtake_after=number)) as world:
            queue = Queue(world, SHORT)
            story(queue)
            if not world.overtaken:
                break
    assert number > 8


def story(queue: Queue) -> None:
    """One job that nothing can hold; at the end it has run once, in one pool, which is gone again."""
    version = queue.store.settings().version
    queue.ask("job1", 2, training_seconds=5)
    for _ in range(90):
        queue.world.run(20, step=20)
        if queue.world.states("job1") == {"job1": "completed"} and not queue.made:
            break
    assert queue.made == {}
    assert queue.store.settings().version == version + 2, "a pool was made once, and removed once"
    assert queue.history("job1").count(f"a pool of 2 x {G6} was created for it") == 1
    noted = queue.store.settings(history=True).history
    assert [(each.action, each.before, each.after) for each in noted] == [("expand", 0, 2), ("retire", 2, 0)]
    assert queue.world.states("job1") == {"job1": "completed"}
    assert len(queue.world.opened) == 1
    assert not queue.world.doubles


@pytest.mark.parametrize("engine", ["memory", "dynamodb"])
def test_a_deployment_with_other_pools_puts_made_ones_aside_and_the_next_pass_makes_them_again(engine):
    with on_dynamodb() as deployed:
        world = a_world() if engine == "memory" else deployed
        queue = Queue(world)
        queue.ask("job1", training_seconds=600)
        world.run(60)
        assert queue.made == {G5: 1}
        world.pools = "ml.m5.large=5"
        world.api_context.store.__dict__.update(world._store().__dict__)
        assert world.api_context.store.settings().pools == {"ml.m5.large": Pool("ml.m5.large", 5)}
        queue.ask("job2", training_seconds=60)
        world.run(60)
        pools = world.api_context.store.settings().pools
        assert pools["ml.m5.large"].cap == 5
        assert queue.made == {G5: 2}, "what runs there counts"
        world.run_until_ended("job1", "job2")
