"""A fault of the queue's own, met at one job: all others start, run and end as if it were not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import ADA, G5, P5
from tables import new_table
from trainmaster.bootstrap import Application
from trainmaster.domain.errors import Fenced
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.times import VISIBLE_AFTER
from trainmaster.handlers.manager import consume, metrics
from trainmaster.service.change import cancel
from trainmaster.service.dependencies import release_dependents
from trainmaster.service.faults import isolate_fault
from trainmaster.service.run_pass import run_pass
from world import BRISK, Context, Killed, World, a_request

SECRET = "hunter2"
STEPS = ("create", "stop", "describe")


class Faulty:
    """A launcher with a fault in it that only some jobs meet, in one of the steps."""

    def __init__(self, launcher, names, step, error=KeyError):
        self._launcher, self._names, self._step, self._error = launcher, names, step, error

    def __getattr__(self, step):
        act = getattr(self._launcher, step)
        return self._wrapped(act) if step == self._step else act

    def _wrapped(self, act):
        def met(about, *more, **rest):
            if getattr(about, "name", about) in self._names:
                raise self._error(SECRET)
            return act(about, *more, **rest)

        return met


class FaultyWorld(World):
    """A world whose manager has that fault."""

    has_faults = True

    def meets(self, names, step, error=KeyError):
        self.fault = (names, step, error)

    def application(self) -> Application:
        application = super().application()
        application.__dict__["launcher"] = Faulty(application.launcher, *self.fault)
        return application


@contextmanager
def a_world(engine, **settings) -> Iterator[FaultyWorld]:
    if engine == "memory":
        yield FaultyWorld(profile=BRISK, **settings)
        return
    with new_table() as client:
        yield FaultyWorld(client, profile=BRISK, **settings)


@pytest.mark.parametrize("engine", ["memory", "dynamodb"])
@pytest.mark.parametrize("step", STEPS)
def test_all_other_jobs_start_and_end(engine, step):
    with a_world(engine, pools=f"{P5}=2,{G5}=2") as world:
        world.meets({"bad"}, step)
        world.submit("bad", training_seconds=20)
        for name in ("one", "two", "three"):
            world.submit(name, kind=G5, training_seconds=20)
        world.run(20)
        cancel(world.api_context, ADA, "bad")
        world.run_until_ended("one", "two", "three", limit=600)
        assert {world.job(name).state for name in ("one", "two", "three")} == {JobState.COMPLETED}


@pytest.mark.parametrize("engine", ["memory", "dynamodb"])
def test_so_where_what_was_decided_for_one_cannot_be_committed(engine):
    with a_world(engine, pools=f"{P5}=2,{G5}=2") as world:
        world.meets(set(), "create")
        for name in ("bad", "one", "two"):
            world.submit(name, training_seconds=20)
        manager_context = world.application().manager_context
        report = run_pass(replace(manager_context, store=FaultyStore(manager_context.store, "bad")))
        assert (report.faults, sorted(report.started)) == (["bad"], ["one"])


@pytest.mark.parametrize("engine", ["memory", "dynamodb"])
def test_a_job_that_a_fault_keeps_out_of_the_queue_is_noted_and_the_others_enter(engine):
    """A job that is due, and one whose parent has ended: both stay held, and the report names them."""
    with a_world(engine, pools=f"{P5}=2,{G5}=2") as world:
        world.meets(set(), "create")
        due = (world.now() + timedelta(seconds=30)).isoformat()
        for name in ("late-bad", "late"):
            world.submit_request(tagged(name, "not-before", due))
        manager_context = world.application().manager_context
        world.simulator.advance(60)
        report = run_pass(replace(manager_context, store=FaultyStore(manager_context.store, "late-bad")), tick=True)
        assert (report.faults, world.job("late-bad").state) == (["late-bad"], JobState.HELD)
        assert report.started == ["late"]

        parent = world.job("late")
        for name in ("child-bad", "child"):
            world.submit_request(tagged(name, "after", "late"))
        noted = []
        store = FaultyStore(manager_context.store, "child-bad")
        release_dependents(store, replace(parent, state=JobState.COMPLETED), world.now(), noted)
        assert (noted, world.job("child").state) == (["child-bad"], JobState.PENDING)


def tagged(name, option, value):
    request = a_request(name, training_seconds=20)
    return request | {"Tags": [*request["Tags"], {"Key": f"trainmaster:{option}", "Value": value}]}


class FaultyStore:
    """A store that cannot write one of the jobs."""

    def __init__(self, store, name):
        self._store, self._name = store, name

    def __getattr__(self, name):
        return getattr(self._store, name)

    def transition(self, changes, **rest):
        if any(after.name == self._name for _, after in changes):
            raise KeyError(SECRET)
        return self._store.transition(changes, **rest)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    bad=st.sets(st.integers(0, 5), max_size=3),
    step=st.sampled_from(STEPS),
    error=st.sampled_from([KeyError, ValueError, AttributeError, RecursionError]),
    preempts=st.booleans(),
)
def test_any_fault_met_by_any_job(bad, step, error, preempts):
    world = FaultyWorld(pools=f"{P5}=6,{G5}=1", profile=BRISK, policy=Policy(reservation_timeout=timedelta(minutes=2)))
    names = [f"j{index}" for index in range(6)]
    world.meets({names[index] for index in bad}, step, error)
    for name in names:
        world.submit(name, training_seconds=20)
    if preempts:
        world.submit("low", kind=G5, training_seconds=30)
        world.run(20)
        world.submit("high", kind=G5, priority=9, training_seconds=20)
    good = [name for index, name in enumerate(names) if index not in bad] + ["high"] * preempts
    world.run_until_ended(*good, limit=900)
    assert {world.job(name).state for name in good} <= {JobState.COMPLETED}


def test_a_job_that_it_keeps_from_being_started_gives_back_what_it_held_and_starts_once_that_is_mended():
    world = FaultyWorld(pools=f"{P5}=1", profile=BRISK)
    world.meets({"bad"}, "create")
    world.submit("bad", training_seconds=20)
    world.settle()
    world.submit("next", training_seconds=20)
    world.run(VISIBLE_AFTER.total_seconds() - 60)
    assert world.states("bad", "next") == {"bad": "starting", "next": "pending"}
    world.run_until_ended("next", limit=900)
    assert world.states("bad", "next") == {"bad": "pending", "next": "completed"}
    said = world.job("bad").attempt
    assert "an unexpected error prevents its start" in said.reason
    assert "KeyError" in said.reason
    assert SECRET not in said.reason
    assert not said.found_no_capacity, "AWS was never asked for instances"
    world.meets(set(), "create")
    world.run_until_ended("bad", limit=3000)
    assert world.states("bad") == {"bad": "completed"}


def test_a_release_that_can_start_nothing_ends_nothing():
    world = FaultyWorld(pools=f"{P5}=2", profile=BRISK)
    names = [f"job{index}" for index in range(6)]
    world.meets(set(names), "create", TypeError)
    for name in names:
        world.submit(name, training_seconds=20)
    world.run(4_000)
    assert not {world.job(name).state for name in names} & ENDED
    world.meets(set(), "create")
    world.run_until_ended(*names, limit=6_000)
    assert {world.job(name).state for name in names} == {JobState.COMPLETED}


def test_one_that_was_created_in_spite_of_it_is_not_given_up():
    world = FaultyWorld(pools=f"{P5}=1", profile=BRISK)
    world.meets({"bad"}, "create")
    world.submit("bad", training_seconds=5000)
    world.settle()
    world.meets(set(), "create")
    application = world.application()
    job = world.job("bad")
    application.launcher.create(job, job.attempt, application.store.request_of("bad"))
    world.meets({"bad"}, "create")
    world.run(VISIBLE_AFTER.total_seconds() + 300)
    assert world.job("bad").state not in ENDED


def test_a_pass_logs_the_job_and_not_the_error_text(caplog):
    world = FaultyWorld(profile=BRISK)
    world.meets({"bad"}, "create")
    world.submit("bad")
    with caplog.at_level("INFO"):
        report = run_pass(world.application().manager_context)
    assert report.faults == ["bad"]
    (line,) = [each for each in caplog.records if "an unexpected error" in each.message]
    assert (line.job, line.error_type) == ("bad", "KeyError")
    assert any("met" in place for place in line.where)
    assert SECRET not in caplog.text


def test_an_event_that_meets_one_is_set_aside_and_those_behind_it_are_heard():
    world = FaultyWorld(profile=BRISK)
    world.meets(set(), "create")
    world.submit("job1", training_seconds=5000)
    world.settle()
    application = world.application()

    class Deaf:
        def __getattr__(self, name):
            return getattr(application, name)

        def observation_of(self, message):
            raise KeyError(SECRET)

    event = {"detail-type": "SageMaker Training Job State Change", "detail": {}}
    bodies = [event, {"kind": "wake", "follows": 0}]
    records = [{"messageId": f"m{n}", "body": json.dumps(body)} for n, body in enumerate(bodies)]
    world.queue.aside.clear()
    answer = consume(Deaf(), {"Records": records}, Context())
    metrics.clear_metrics()
    assert answer == {"batchItemFailures": []}
    ((body, why),) = world.queue.aside
    assert (json.loads(body), "KeyError" in why, SECRET in why) == (event, True, False)


@pytest.mark.parametrize("error", [Fenced("later"), Killed(), KeyboardInterrupt()])
def test_exceptions_that_end_the_process_pass_through(error):
    with pytest.raises(type(error)), isolate_fault("job1"):
        raise error
