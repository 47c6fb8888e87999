"""Jobs that wait for a time, for other jobs or for a person, through the shipped manager on a virtual clock."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api_world import CountingStore
from builders import ADA, P5, a_job, an_ended_job
from samples import sample
from tables import new_table
from trainmaster.domain.errors import IllegalTransition, InvalidRequest
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import FailureClass, Policy, Retry
from trainmaster.domain.reasons.rules import NotBefore, WaitsForJobs
from trainmaster.local.simulator import Profile
from trainmaster.service import dependencies
from trainmaster.service.change import cancel, change
from trainmaster.service.submit import plan
from trainmaster.service.submit import submit as submit_to
from world import EPOCH, Faults, Killed, World, a_request, in_chunks, kills

BRISK = Profile(
    requesting_seconds=1, starting_seconds=5, downloading_seconds=2, uploading_seconds=2, stopping_seconds=5
)


@pytest.fixture(params=sample(["memory", "dynamodb"]))
def world(request):
    if request.param == "memory":
        yield World(profile=BRISK)
        return
    with new_table() as client:
        yield World(client, profile=BRISK)


def asking(name: str, /, priority: int = 0, count: int = 1, seconds: int = 60, **options: str) -> dict[str, Any]:
    """A request with options; `outcome` is the simulator's."""
    outcome = options.pop("outcome", "completed")
    request = a_request(name, priority=priority, count=count, training_seconds=seconds, outcome=outcome)
    tags = [{"Key": f"trainmaster:{key.replace('_', '-')}", "Value": text} for key, text in options.items()]
    return {**request, "Tags": [*request["Tags"], *tags]}


def submit_request(world: World, name: str, /, **asked: Any) -> Job:
    return world.submit_request(asking(name, **asked))


def in_(seconds: float) -> str:
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def lines(job: Job) -> list[str]:
    return [line.reason for line in job.history]


class TestNotBefore:
    def test_it_is_held_until_then_and_starts_within_a_tick(self, world):
        assert submit_request(world, "later", not_before=in_(300)).state is JobState.HELD
        world.run(299)
        assert world.job("later").state is JobState.HELD
        assert not world.opened
        world.run(61)
        assert world.job("later").state is JobState.RUNNING
        world.run_until_ended("later")

    def test_it_enters_the_queue_then_and_not_when_it_was_submitted(self, world):
        submit_request(world, "busy", count=2, seconds=600)
        submit_request(world, "later", not_before=in_(300), count=2)
        world.run(250)
        submit_request(world, "meanwhile", count=2)
        world.run_until_ended("busy", "later", "meanwhile")
        assert world.opened == ["busy", "meanwhile", "later"]
        assert world.job("later").entry_time == EPOCH + timedelta(seconds=300)

    def test_a_time_that_has_passed_holds_nothing(self, world):
        assert submit_request(world, "job1", not_before=in_(-60)).state is JobState.PENDING

    def test_plan_before_submission_of_a_job_with_a_start_time(self, world):
        said, *_ = plan(world.api_context, ADA, world.admission, asking("job1", not_before=in_(300)))
        assert (said.position, said.starts, said.reason) == (None, False, NotBefore(EPOCH + timedelta(seconds=300)))

    def test_the_same_request_again_gets_the_same_answer(self, world):
        request = asking("job1", not_before=in_(300))
        assert submit_to(world.api_context, ADA, world.admission, request).new
        again = submit_to(world.api_context, ADA, world.admission, request)
        assert (again.new, again.job.state) == (False, JobState.HELD)
        world.run_until_ended("job1")
        assert submit_to(world.api_context, ADA, world.admission, request).job.state is JobState.COMPLETED

    def test_releasing_a_job_without_a_users_hold_is_rejected(self, world):
        submit_request(world, "job1", not_before=in_(300))
        with pytest.raises(
            IllegalTransition, match="Job job1 has no hold to release: it starts no earlier than 2026-11-21T12:05:00Z"
        ):
            change(world.api_context, ADA, "job1", hold=False)

    def test_a_hold_by_a_person_stays_when_the_time_has_come(self, world):
        submit_request(world, "job1", not_before=in_(300))
        change(world.api_context, ADA, "job1", hold=True)
        world.run(400)
        assert world.job("job1").state is JobState.HELD
        assert change(world.api_context, ADA, "job1", hold=False).state is JobState.PENDING
        world.run_until_ended("job1")

    def test_a_person_lets_go_before_the_time_has_come(self, world):
        submit_request(world, "job1", not_before=in_(300))
        change(world.api_context, ADA, "job1", hold=True)
        job = change(world.api_context, ADA, "job1", hold=False)
        assert (job.state, job.held_by) == (JobState.HELD, None)
        assert not world.opened
        world.run_until_ended("job1")

    def test_its_priority_can_be_changed_and_it_can_be_cancelled(self, world):
        submit_request(world, "job1", not_before=in_(300))
        assert change(world.api_context, ADA, "job1", priority=7).priority == 7
        assert cancel(world.api_context, ADA, "job1").state is JobState.CANCELLED
        world.run(400)
        assert not world.opened


class TestAfter:
    def test_a_chain_runs_in_its_order(self, world):
        submit_request(world, "prepare")
        submit_request(world, "train", after="prepare", priority=5)
        submit_request(world, "evaluate", after="train", priority=9)
        world.run_until_ended("prepare", "train", "evaluate")
        assert world.opened == ["prepare", "train", "evaluate"]
        assert "train, which it runs after, completed" in lines(world.job("evaluate"))

    def test_it_waits_for_all_of_several(self, world):
        submit_request(world, "short", seconds=30)
        submit_request(world, "long", seconds=300)
        submit_request(world, "both", after="short+long")
        world.run(120)
        both = world.job("both")
        assert (both.state, both.after) == (JobState.HELD, ("long",))
        world.run_until_ended("both")
        assert world.job("both").entry_time >= EPOCH + timedelta(seconds=300)

    def test_a_parent_that_completed_before_is_no_parent_any_more(self, world):
        submit_request(world, "before", seconds=30)
        world.run_until_ended("before")
        assert submit_request(world, "job1", after="before").state is JobState.PENDING

    def test_a_parent_that_does_not_exist_is_refused_and_nothing_is_stored(self, world):
        with pytest.raises(InvalidRequest, match="no job ghost") as refused:
            submit_request(world, "job1", after="ghost")
        assert refused.value.field == "Tags[1].Value"
        assert world.api_context.store.find("job1") is None

    @pytest.mark.parametrize(
        ("rule", "state"),
        [("cancel", JobState.CANCELLED), ("fail", JobState.FAILED), ("run", JobState.COMPLETED)],
    )
    def test_a_failed_parent_cancels_its_dependents(self, world, rule, state):
        submit_request(world, "parent", outcome="failed")
        submit_request(world, "child", after="parent", after_failure=rule)
        world.run_until_ended("child")
        child = world.job("child")
        assert child.state is state
        assert child.failure == (None if rule == "run" else "runs after parent, which failed")

    def test_ends_are_handed_down(self, world):
        """Each by its own rule: the third would run whatever becomes of the second."""
        submit_request(world, "a", outcome="failed")
        submit_request(world, "b", after="a", after_failure="fail")
        submit_request(world, "c", after="b")
        submit_request(world, "d", after="c", after_failure="run")
        world.run_until_ended("a", "b", "c", "d")
        assert world.states("a", "b", "c", "d") == {"a": "failed", "b": "failed", "c": "cancelled", "d": "completed"}
        assert world.job("c").failure == "runs after b, which failed"

    def test_a_parent_that_a_person_cancels(self, world):
        submit_request(world, "busy", count=2, seconds=600)
        world.run(30)
        submit_request(world, "parent")
        submit_request(world, "child", after="parent")
        submit_request(world, "grandchild", after="child")
        cancel(world.api_context, ADA, "parent")
        assert world.states("child", "grandchild") == {"child": "cancelled", "grandchild": "cancelled"}
        assert world.job("child").failure == "runs after parent, which was cancelled"

    def test_a_running_parent_that_a_person_stops(self, world):
        submit_request(world, "parent", seconds=6000)
        submit_request(world, "child", after="parent")
        world.run(60)
        cancel(world.api_context, ADA, "parent")
        world.run_until_ended("parent", "child")
        assert world.job("child").failure == "runs after parent, which was stopped"

    def test_a_parent_that_failed_long_ago(self, world):
        submit_request(world, "parent", outcome="failed")
        world.run_until_ended("parent")
        said, advice, *_ = plan(world.api_context, ADA, world.admission, asking("child", after="parent"))
        assert (said.reason, advice[-1]) == (
            WaitsForJobs(("parent",)),
            "This job runs after parent, which is failed, so it does not run.",
        )
        assert submit_request(world, "child", after="parent").state is JobState.CANCELLED
        assert submit_request(world, "other", after="parent", after_failure="run").state is JobState.PENDING

    def test_a_preempted_parent_has_not_ended(self, world):
        submit_request(world, "parent", count=2, seconds=300)
        submit_request(world, "child", after="parent")
        world.run(60)
        submit_request(world, "urgent", priority=5, count=2, seconds=60)
        world.run_until_ended("urgent")
        assert world.job("child").state is JobState.HELD
        world.run_until_ended("parent", "child")
        assert world.job("child").state is JobState.COMPLETED

    def test_parents_and_a_time_hold_it_together(self, world):
        submit_request(world, "parent", seconds=60)
        submit_request(world, "child", after="parent", not_before=in_(600))
        world.run(300)
        assert (world.job("child").state, world.job("child").after) == (JobState.HELD, ())
        world.run(400)
        assert world.job("child").state is not JobState.HELD
        assert world.job("child").entry_time == EPOCH + timedelta(seconds=600)

    def test_a_hold_by_a_person_stays_when_the_parents_have_completed(self, world):
        submit_request(world, "parent")
        submit_request(world, "child", after="parent")
        change(world.api_context, ADA, "child", hold=True)
        world.run_until_ended("parent")
        world.run(700)
        child = world.job("child")
        assert (child.state, child.after, child.held_by) == (JobState.HELD, (), ADA.arn)
        change(world.api_context, ADA, "child", hold=False)
        world.run_until_ended("child")

    def test_a_hold_by_a_person_does_not_keep_it_from_ending_with_its_parent(self, world):
        submit_request(world, "parent", outcome="failed")
        submit_request(world, "child", after="parent")
        change(world.api_context, ADA, "child", hold=True)
        world.run_until_ended("parent", "child")
        assert world.job("child").held_by is None

    def test_a_parent_that_ends_while_its_child_is_being_stored(self, world):
        """The parent's end finds no child yet; the child's submission finds the parent's end."""
        submit_request(world, "parent", seconds=30)
        store = world.api_context.store
        late = Interrupted(store, "submit", lambda: world.run_until_ended("parent"))
        stored = submit_to(
            replace(world.api_context, store=late), ADA, world.admission, asking("child", after="parent")
        ).job
        assert (stored.state, stored.after) == (JobState.PENDING, ())


class Interrupted:
    """A store before whose first call of one verb something else happens."""

    def __init__(self, store, verb, happens):
        self._store, self._verb, self._happens = store, verb, happens

    def __getattr__(self, name):
        verb = getattr(self._store, name)
        if name != self._verb:
            return verb
        self._verb = ""

        def interrupted(*arguments, **named):
            self._happens()
            return verb(*arguments, **named)

        return interrupted


class TestMany:
    def test_all_children_of_one_parent_are_told_at_once(self):
        world = World(profile=BRISK)
        submit_request(world, "parent")
        names = [f"child-{number:03d}" for number in range(250)]
        for name in names:
            submit_request(world, name, after="parent")
        world.run_until_ended("parent")
        assert not {"held"} & set(world.states(*names).values())

    def test_all_whose_time_has_come_enter_with_one_tick(self):
        world = World(profile=BRISK)
        names = [f"job-{number:03d}" for number in range(250)]
        for name in names:
            submit_request(world, name, not_before=in_(100))
        world.run(125)
        assert not {"held"} & set(world.states(*names).values())

    def test_a_sweep_asks_only_for_parents_of_which_nothing_is_known(self):
        world = World(profile=BRISK)
        submit_request(world, "running", seconds=9000, count=2)
        world.run(60)
        submit_request(world, "waiting")
        for number, parent in enumerate(("running", "waiting", "child-0")):
            submit_request(world, f"child-{number}", after=parent)
        counting = CountingStore(world.api_context.store)
        assert not dependencies.sweep(counting, counting.read_snapshot(), world.now())
        assert counting.calls["find"] == 0

    def test_a_sweep_takes_many_parents_in_turns(self):
        """A thousand pipelines behind one another, none of them notified yet: five sweeps release all."""
        world = World(profile=BRISK)
        store = world.api_context.store
        for number in range(1000):
            parent = replace(an_ended_job(f"p-{number:03d}", status=Status.FAILED), entry_time=EPOCH)
            child = lifecycle.hold_if_needed(a_job(f"c-{number:03d}", after=(parent.name,)), EPOCH)
            store.submit(parent, {})
            store.submit(child, {})
        told = []
        for number in range(5):
            counting = CountingStore(store)
            now = EPOCH + timedelta(minutes=10 * number)
            assert dependencies.sweep(counting, store.read_snapshot(), now)
            told.append(counting.calls["find"])
        assert max(told) <= dependencies.MAX_PARENTS
        assert not store.list_jobs(Filter(states=frozenset({JobState.HELD})), limit=10).jobs


@pytest.mark.parametrize("seed", sample(range(12), 4))
def test_any_web_of_jobs_ends_as_its_rules_say_whatever_becomes_of_events(seed):
    rng = random.Random(seed)
    late = lambda seen, event: rng.choice(([], [0.0], [0.0, 90.0], [rng.uniform(0, 400)]))  # noqa: E731
    world = World(profile=BRISK, pools=f"{P5}=4", events=late)
    expected: dict[str, str] = {}
    for number in range(16):
        name, parents = f"j{number}", rng.sample(sorted(expected), min(rng.randint(0, 3), number))
        outcome = rng.choice(("completed", "completed", "failed"))
        rule = rng.choice(("cancel", "fail", "run"))
        asked = {"after": "+".join(parents), "after_failure": rule} if parents else {}
        submit_request(world, name, outcome=outcome, seconds=rng.randint(5, 60), **asked)
        stays = all(expected[parent] == "completed" for parent in parents) or rule == "run"
        expected[name] = outcome if stays else {"cancel": "cancelled", "fail": "failed"}[rule]
        world.run(rng.choice((0, 0, 40)), step=20)
    world.run_until_ended(*expected)
    assert world.states(*expected) == expected


class TestRetries:
    def test_a_failing_job_is_tried_as_often_as_it_asks_for(self, world):
        submit_request(world, "job1", outcome="failed", retry_algorithm="2")
        world.run_until_ended("job1")
        job = world.job("job1")
        assert job.state is JobState.FAILED
        assert world.opened == ["job1", "job1-qstamp-2", "job1-qstamp-3"]
        assert job.failure.startswith("AlgorithmError: ExecuteUserScriptError, exit code: 1 (tried 3 times, ")
        waits = [b.created_at - a.ended_at for a, b in zip(job.attempts, job.attempts[1:], strict=False)]
        assert timedelta(seconds=60) <= waits[0] < timedelta(seconds=125)
        assert timedelta(seconds=120) <= waits[1] < timedelta(seconds=185)

    def test_a_fault_of_sagemaker_is_tried_again_by_itself(self, world):
        world.simulator.set_profile("job1", internal_errors=1)
        world.submit_request(a_request("job1"))
        world.run_until_ended("job1")
        assert (world.job("job1").state, len(world.opened)) == (JobState.COMPLETED, 2)

    def test_a_fault_that_stays_ends_the_job(self, world):
        world.simulator.set_profile("job1*", internal_errors=1)
        world.submit_request(a_request("job1"))
        world.run_until_ended("job1")
        job = world.job("job1")
        assert (job.state, len(job.attempts)) == (JobState.FAILED, 4)
        assert "InternalServerError" in job.failure

    def test_the_queue_s_own_rules_hold_for_reports_and_for_passes(self, world):
        quick = Retry(max_retries=1, first_delay=timedelta(seconds=5), max_delay=timedelta(seconds=5))
        policy = Policy(retries={FailureClass.ALGORITHM: quick, FailureClass.CAPACITY: quick})
        world.api_context.store.set_settings(policy=policy)
        world.simulator.quotas.set_limit(P5, 0)
        submit_request(world, "nowhere")
        world.run_until_ended("nowhere", limit=4_500)
        assert "tried 2 times" in world.job("nowhere").failure
        world.simulator.quotas.set_limit(P5, 2)
        submit_request(world, "broken", outcome="failed")
        world.run_until_ended("broken", limit=4_500)
        assert [name for name in world.opened if name.startswith("broken")] == ["broken", "broken-qstamp-2"]

    def test_a_child_waits_for_the_last_try(self, world):
        submit_request(world, "parent", outcome="failed", retry_algorithm="1")
        submit_request(world, "child", after="parent")
        world.run(90)
        assert (len(world.job("parent").failures), world.job("child").state) == (1, JobState.HELD)
        world.run_until_ended("parent", "child")
        assert world.job("child").state is JobState.CANCELLED

    def test_missing_capacity_ends_a_job_that_asks_for_it(self):
        world = World(profile=BRISK, limits={P5: 0})
        submit_request(world, "job1", retry_capacity="2")
        world.run_until_ended("job1")
        assert "ResourceLimitExceeded" in world.job("job1").failure
        assert "tried 3 times" in world.job("job1").failure
        assert not world.opened


def short(world: World) -> list[str]:
    """An end and a failure that are handed down, and a time."""
    submit_request(world, "a", seconds=5, outcome="failed")
    submit_request(world, "b", after="a", after_failure="fail")
    submit_request(world, "c", after="b")
    submit_request(world, "d", after="a+c", after_failure="run", seconds=5)
    submit_request(world, "t", not_before=in_(50), seconds=5)
    world.run_until_ended("a", "b", "c", "d", "t", limit=2000)
    return ["a", "b", "c", "d", "t"]


SHORT = {"a": {"failed"}, "b": {"failed"}, "c": {"cancelled"}, "d": {"completed"}, "t": {"completed"}}


def long(world: World) -> list[str]:
    """A chain, a fan-in, a failure handed down, a person's stop, a new try, two times."""
    submit_request(world, "a", seconds=40)
    submit_request(world, "b", after="a", seconds=20, outcome="failed", retry_algorithm="1")
    submit_request(world, "c", after="b", after_failure="fail")
    submit_request(world, "d", after="a+c", after_failure="run", seconds=20)
    submit_request(world, "t", not_before=in_(90), seconds=20)
    submit_request(world, "e", after="t")
    submit_request(world, "f", after="e+d", after_failure="run", seconds=20)
    world.run(150, step=10)
    with suppress(IllegalTransition):
        cancel(world.api_context, ADA, "e")
    world.run_until_ended("a", "b", "c", "d", "e", "f", "t", limit=4000)
    return ["a", "b", "c", "d", "e", "f", "t"]


LONG = {
    "a": {"completed"},
    "b": {"failed"},
    "c": {"failed"},
    "d": {"completed"},
    "t": {"completed"},
    "e": {"cancelled", "stopped", "completed"},
    "f": {"completed"},
}
STORIES: dict[str, tuple[Callable[[World], list[str]], dict[str, set[str]]]] = {
    "short": (short, SHORT),
    "long": (long, LONG),
}


def told(story: str, **faults: Any) -> World:
    """The world after a story under these faults; every child was told, and nothing else went wrong."""
    play, expected = STORIES[story]
    with new_table() as client:
        world = World(client, profile=BRISK, faults=Faults(**faults))
        names = play(world)
        for name, state in world.states(*names).items():
            assert state in expected[name], (name, lines(world.job(name)))
    assert world.peaks[P5] <= 2
    assert not world.doubles
    assert not world.in_use()
    assert not world.queue.aside
    return world


@functools.cache
def calls_of(story: str) -> list[str]:
    """The manager's AWS calls in an untouched run."""
    return told(story).faults.calls


CHUNKS = 12
both = pytest.mark.parametrize("story", ["short", pytest.param("long", marks=pytest.mark.slow)])
in_parts = in_chunks(CHUNKS)


@both
@pytest.mark.parametrize("reads", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["change", "read"])
@in_parts
@pytest.mark.usefixtures("quiet")
def test_a_manager_killed_after_any_call_tells_every_child_in_the_end(story, reads, chunk):
    for number in kills(calls_of(story), reads=reads)[chunk::CHUNKS]:
        assert told(story, kill_after=number).killed == 1


@both
@in_parts
@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_any_call_may_fail(story, chunk):
    for number in range(chunk + 1, len(calls_of(story)) + 1, CHUNKS):
        told(story, fail={number: "ThrottlingException"})


@both
@in_parts
@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_a_manager_overtaken_after_any_call_does_no_harm(story, chunk):
    for number in range(chunk + 1, len(calls_of(story)) + 1, CHUNKS):
        told(story, overtake_after=number)


@pytest.mark.parametrize("verb", ["list_jobs", "transition"])
def test_a_person_whose_cancelling_dies_before_the_children_are_told(verb):
    """The sweep finds them: nothing but the parent's own row tells of its end."""
    world = World(profile=BRISK)
    submit_request(world, "busy", count=2, seconds=3000)
    world.run(30)
    submit_request(world, "parent")
    submit_request(world, "child", after="parent")
    submit_request(world, "grandchild", after="child")
    api_context = replace(
        world.api_context, store=Dying(world.api_context.store, verb, after=0 if verb == "list_jobs" else 1)
    )
    with pytest.raises(Killed):
        cancel(api_context, ADA, "parent")
    assert world.states("parent", "child") == {"parent": "cancelled", "child": "held"}
    world.run(600)
    assert world.states("child", "grandchild") == {"child": "cancelled", "grandchild": "cancelled"}


class Dying:
    """A store in whose process the lights go out at some call of a verb."""

    def __init__(self, store, verb, after):
        self._store, self._verb, self._left = store, verb, after

    def __getattr__(self, name):
        if name == self._verb:
            self._left -= 1
            if self._left < 0:
                raise Killed
        return getattr(self._store, name)
