"""Image jobs whose manager is killed after any of its calls, or whose calls fail, and whose workers die.

Whatever happens: each job ends once, no region is finished twice, an endpoint is never asked for more than it takes.
"""

from __future__ import annotations

import json
import random
from functools import cache

import pytest

from builders import ADA
from image_runs_world import ImageRunsWorld
from samples import sample
from trainmaster.domain.errors import Unavailable
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.images.domain.work import MERGE
from trainmaster.service.change import cancel
from world import Faults, in_chunks

CHUNKS = 20

pytestmark = pytest.mark.usefixtures("quiet")


def story(world):
    """Three jobs of which two fit at once, and one that takes precedence while they run."""
    for name in ("one", "two", "three"):
        world.enter(name)
        world.run(5)
    world.enter("urgent", 4, priority=5)
    names = ["one", "two", "three", "urgent"]
    world.run_until_ended(*names, limit=4_000)
    return names


def check(world, names):
    """The invariants at the end of every story.

    A manager that dies as a job ends, or meets trouble, leaves rows behind, which expire.
    """
    troubled = world.faults.fail or world.faults.lose or world.killed
    for name in names:
        job = world.job(name)
        assert job.state in ENDED
        assert all(attempt.outcome is not Outcome.ACTIVE for attempt in job.attempts)
        assert sum(change.after in ENDED for change in job.history) == 1
        assert world.runs.run(name) is None or troubled, "its regions are left behind"
    assert all(count == 1 for key, count in world.finished.items() if count), world.finished
    assert world.most <= world.takes
    assert not world.queue.aside


def check_story(world, names):
    check(world, names)
    assert {name: str(world.job(name).state) for name in names} == dict.fromkeys(names, "completed")
    done = {key for key, count in world.finished.items() if count}
    assert done == {(name, n) for name in names for n in (*range(4 if name == "urgent" else 2), MERGE)}


@cache
def calls():
    """Count the manager's calls in an undisturbed run."""
    world = ImageRunsWorld()
    check_story(world, story(world))
    return len(world.faults.calls)


def test_image_jobs_run_side_by_side_up_to_what_their_endpoint_takes():
    world = ImageRunsWorld()
    names = story(world)
    check_story(world, names)
    assert world.most == 8
    assert world.begun > sum(world.finished.values()), "no job was preempted: the story does not test what it should"
    assert not world.aside.letters


def test_image_jobs_have_the_events_of_all_jobs():
    """The manager stores them, so the image stack's own functions put none, and need no bus."""
    world = ImageRunsWorld(published="all")
    names = story(world)
    world.check_events(*names)
    told = [detail for detail in world.bus.details if "jobName" in detail]
    assert {detail["kind"] for detail in told} == {"image"}
    assert {detail["type"] for detail in told} >= {
        "starting",
        "started",
        "preempting",
        "preempted",
        "resumed",
        "ended",
    }
    assert not any("trainingJobName" in detail for detail in told)


def test_no_event_of_an_image_job_is_lost_by_a_manager_that_dies():
    for number in range(3, calls(), 29):
        world = ImageRunsWorld(published="all", faults=Faults(kill_after=number))
        world.check_events(*story(world))


# In the usual run each kind of trouble meets one call of many, another for each kind.
def chunks(first):
    return pytest.mark.parametrize(
        "chunk", [pytest.param(chunk, marks=[] if chunk == first else [pytest.mark.slow]) for chunk in range(CHUNKS)]
    )


@chunks(first=3)
def test_a_manager_killed_after_any_call_loses_nothing(chunk):
    for number in range(chunk + 1, calls() + 1, CHUNKS):
        world = ImageRunsWorld(faults=Faults(kill_after=number))
        names = story(world)
        assert world.killed == 1
        check_story(world, names)


@chunks(first=4)
@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError"])
def test_any_call_of_the_manager_may_fail(code, chunk):
    for number in range(chunk + 1, calls() + 1, CHUNKS):
        world = ImageRunsWorld(faults=Faults(fail={number: code}))
        check_story(world, story(world))


@chunks(first=0)
def test_any_answer_to_the_manager_may_be_lost(chunk):
    for number in range(chunk + 1, calls() + 1, CHUNKS):
        world = ImageRunsWorld(faults=Faults(lose=frozenset({number})))
        check_story(world, story(world))


@chunks(first=1)
def test_a_manager_overtaken_by_another_after_any_call_does_no_harm(chunk):
    for number in range(chunk + 1, calls(), CHUNKS):
        world = ImageRunsWorld(faults=Faults(overtake_after=number))
        names = story(world)
        assert world.overtaken == 1
        check_story(world, names)


def test_other_workers_complete_the_regions_of_dead_workers():
    """W7, W8: a job that lasts is not ended for that, and one whose workers die is tried again."""
    world = ImageRunsWorld(fate=lambda begun: (7, None) if begun in (1, 4, 6) else (None, None))
    check_story(world, story(world))


def test_a_worker_that_was_thought_dead_and_comes_back_finishes_nothing_twice():
    """W3, W7."""
    for late in (90, 130, 190, 400):
        fate = lambda begun, late=late: (7, late) if begun in (1, 4, 9, 14) else (None, None)  # noqa: E731
        world = ImageRunsWorld(fate=fate, seconds=90)
        check_story(world, story(world))


def test_a_region_whose_workers_always_die_fails_its_job_alone():
    """W10: the request is set aside once, as it came, with the reason."""
    world = ImageRunsWorld(takes=4)
    world.fate = lambda begun: (7, None) if _is_of(world, "cursed", 1) else (None, None)
    world.enter("cursed")
    world.run(5)
    world.enter("fine")
    world.run_until_ended("cursed", "fine", limit=4_000)
    check(world, ["cursed", "fine"])
    assert world.job("fine").state is JobState.COMPLETED
    assert world.job("cursed").state is JobState.FAILED
    ((body, reason),) = world.aside.letters
    assert json.loads(body) == {"jobId": "cursed", "ours": "kept"}
    assert reason == "1 of 2 regions failed: 3 workers died at it"
    assert world.finished["cursed", 0] == 1, "what could be done is done"
    assert world.finished["cursed", MERGE] == 1


def _is_of(world, job, number):
    """Return True if the region that was begun last is this one."""
    run = world.runs.run(job)
    record = next((each for each in run.records if each.region.number == number), None) if run else None
    return record is not None and record.worker == f"w{world.begun - 1}"


def broken(**faults):
    """A job of three regions of which one is broken, whose manager meets this."""
    world = ImageRunsWorld(fails=lambda claim: claim.number == 1, faults=Faults(**faults))
    world.enter("broken", 3)
    world.run_until_ended("broken", limit=2_000)
    check_ended_badly(world)
    return world


def troubles(world):
    return world.killed + world.overtaken + len(world.faults.fail) + len(world.faults.lose)


@in_chunks(4)
@pytest.mark.parametrize(
    ("trouble", "step"),
    [
        (lambda number: {"kill_after": number}, 1),
        (lambda number: {"fail": {number: "InternalServerError"}}, 3),
        (lambda number: {"lose": frozenset({number})}, 3),
        (lambda number: {"overtake_after": number}, 3),
    ],
    ids=["killed", "failed", "lost", "overtaken"],
)
def test_a_broken_region_fails_its_job_once_the_others_are_done_and_its_letter_is_never_lost(trouble, step, chunk):
    """W10, whatever the manager meets at any of its calls."""
    world = broken()
    assert len(world.aside.letters) == 1
    count = len(world.faults.calls)
    assert count > 30
    for number in range(1 + chunk * step, count, 4 * step):
        broken(**trouble(number))


def check_ended_badly(world):
    job = world.job("broken")
    assert job.state is JobState.FAILED
    assert job.history[-1].reason == "1 of 3 regions failed: a broken tile"
    assert (job.work.done, job.work.failed) == (2, 1)
    assert world.finished["broken", MERGE] == 1
    # Before the end, so that who dies between the two sends it again.
    assert 1 <= len(world.aside.letters) <= 1 + troubles(world)
    assert len(set(world.aside.letters)) == 1


def test_w9_w19_regions_give_their_capacity_back_one_by_one_and_the_manager_is_woken_for_each():
    """There is no tick in between."""
    world = ImageRunsWorld(takes=4)
    world.enter("long", 2)
    world.run(5)
    world.enter("next", 1)
    world.run(5)
    assert world.job("next").state is JobState.PENDING
    first = world.workers[0]
    world.workers[1].ends_at = world.now().replace(year=2030)
    world.run(20)
    assert first not in world.workers
    assert world.job("long").state is JobState.RUNNING
    assert world.job("next").state is not JobState.PENDING
    assert world.most == 4


def test_an_image_larger_than_its_endpoint_runs_there_alone():
    """The guide's single image exception."""
    world = ImageRunsWorld(takes=4)
    world.enter("small", 1)
    world.run(5)
    world.enter("large", 5)
    world.enter("behind", 1)
    world.run(10)
    assert world.job("large").state is JobState.PENDING
    world.run_until_ended("small", "large", "behind", limit=2_000)
    assert world.job("large").state is JobState.COMPLETED


def large(faults=None, *, count=6, takes=4, **world):
    """An image of six regions of two requests each, at an endpoint that takes four, and one behind it."""
    world = ImageRunsWorld(takes=takes, faults=faults, **world)
    world.enter("large", count)
    world.run(5)
    world.enter("behind", 1)
    world.run_until_ended("large", "behind", limit=6_000)
    return world


def check_large(world, count=6):
    check(world, ["large", "behind"])
    assert world.states("large", "behind") == dict.fromkeys(("large", "behind"), "completed")
    assert {number for job, number in world.finished if job == "large"} == {*range(count), MERGE}


def test_an_image_larger_than_its_endpoint_never_asks_it_for_more_than_it_takes():
    """Thirty regions of four tile workers where eight requests are taken: two regions at a time."""
    world = ImageRunsWorld(takes=8, workers=4)
    world.enter("large", 30)
    world.run_until_ended("large", limit=4_000)
    assert world.job("large").state is JobState.COMPLETED
    assert world.most == 8
    assert world.regions.dispatched == 31, "each region is dispatched once, and the merging"


def test_without_throttling_all_regions_are_dispatched_at_once():
    world = ImageRunsWorld(takes=1_000_000)
    world.enter("large", 30)
    world.run(10)
    assert world.most == 60


def test_a_manager_killed_at_any_call_while_an_image_larger_than_its_endpoint_runs_loses_no_region():
    count = len(large().faults.calls)
    for number in range(1, count, 5):
        world = large(Faults(kill_after=number))
        assert world.killed == 1
        check_large(world)


def scaling_out(faults=None):
    """An image of forty regions, at an endpoint that takes one of them, and ten times as many after five minutes."""
    world = ImageRunsWorld(takes=2, seconds=60, faults=faults)
    world.enter("large", 40)
    world.run(200)
    assert world.most == 2
    world.takes = world.endpoints.takes = 20
    world.run_until_ended("large", limit=4_000)
    return world


def test_an_image_larger_than_its_endpoint_uses_what_this_takes_once_it_has_scaled_out():
    """Else it would go on with two requests to its end, forty minutes after its start."""
    world = scaling_out()
    job = world.job("large")
    assert job.state is JobState.COMPLETED
    assert world.most == 20
    assert (job.ended_at - job.attempt.started_at).total_seconds() < 900
    assert len(job.attempts) == 1, "it goes on"
    assert world.regions.dispatched == 41, "each region is dispatched once, and the merging"


def test_a_job_that_waits_for_an_endpoint_that_scales_out_comes_before_the_one_that_runs_there():
    world = ImageRunsWorld(takes=2, seconds=60)
    world.enter("large", 40)
    world.run(30)
    world.enter("small", 4)
    world.run(30)
    world.takes = world.endpoints.takes = 20
    world.run(400)
    assert world.job("small").state is JobState.RUNNING
    assert world.job("large").units == {"endpoint/ships/blue": 12}


def test_a_manager_killed_at_any_call_while_an_image_gets_more_of_its_endpoint_loses_no_region():
    count = len(scaling_out().faults.calls)
    for number in range(count // 3, count, 23):
        world = scaling_out(Faults(kill_after=number))
        check(world, ["large"])
        assert {number for _, number in world.finished} == {*range(40), MERGE}
        assert world.most == 20


def test_the_tick_dispatches_the_successors_of_workers_that_died():
    for dropped in ({0}, {0, 1}, {2, 3}, {4, 5}, {*range(6)}):
        world = large(drops=lambda claim, dropped=dropped: claim.number in dropped)
        check_large(world)


def test_workers_that_die_at_an_image_larger_than_its_endpoint_keep_their_places():
    check_large(
        large(fate=lambda begun: (7, 150) if begun in (2, 5) else (7, None) if begun in (3, 6) else (None, None))
    )


def test_an_image_larger_than_its_endpoint_that_steps_aside_goes_on_with_what_is_left():
    world = ImageRunsWorld(takes=4, seconds=30)
    world.enter("large", 6)
    world.run(40)
    world.enter("high", 2, priority=9)
    world.run_until_ended("large", "high", limit=4_000)
    check(world, ["large", "high"])
    assert world.job("large").attempt.number == 2
    assert {number for job, number in world.finished if job == "large"} == {*range(6), MERGE}


def test_a_job_is_running_after_a_worker_begins_a_region():
    world = ImageRunsWorld(seconds=40)
    world.enter("one")
    world.settle()
    assert world.job("one").state is JobState.STARTING
    assert world.workers, "no worker is at its regions"
    world.settle()
    assert world.job("one").state is JobState.RUNNING
    assert world.job("one").work.done == 0


def test_a_job_that_steps_aside_goes_on_where_it_was():
    world = ImageRunsWorld(takes=4, seconds=30)
    world.enter("low", 2)
    world.run(10)
    world.workers[0].ends_at = world.now()
    world.run(5)
    world.enter("high", 2, priority=9)
    world.run_until_ended("low", "high", limit=2_000)
    check(world, ["low", "high"])
    low, high = world.job("low"), world.job("high")
    assert low.state is high.state is JobState.COMPLETED
    assert high.attempt.ended_at < low.attempt.ended_at
    assert world.finished["low", 0] == world.finished["low", 1] == 1


@in_chunks(4)
def test_a_job_stopped_by_its_user_gives_its_capacity_back_once_its_workers_have_left_off(chunk):
    for number in range(2 + 3 * chunk, 90, 12):
        world = ImageRunsWorld(takes=4, seconds=400)
        world.enter("unwanted", 2)
        world.run(10)
        world.faults.calls.clear()
        world.faults.kill_after = number
        cancel(world.api_context, ADA, "unwanted")
        world.enter("next", 2)
        world.run(150)
        assert world.job("unwanted").state is JobState.STOPPED
        world.run_until_ended("next", limit=2_000)
        check(world, ["unwanted", "next"])
        if world.killed == 0:
            break
    assert number > 5


def test_without_news_the_tick_finds_out():
    """Messages of progress may be lost: a job ends a minute later for that."""
    world = ImageRunsWorld(tells=False)
    check_story(world, story(world))


def test_endpoints_that_cannot_be_described_keep_what_was_known_of_them():
    world = ImageRunsWorld()
    world.endpoints.trouble = Unavailable("down")
    check_story(world, story(world))
    assert world.endpoints.asked
    assert world.most == 8


@pytest.mark.parametrize("seed", sample(range(20), 5))
def test_many_troubles_at_once(seed):
    rng = random.Random(seed)
    codes = ("ThrottlingException", "InternalServerError")
    fail = {number: rng.choice(codes) for number in range(1, 400) if rng.random() < 0.08}
    lose = frozenset(number for number in range(1, 400) if rng.random() < 0.05)
    fates = [(rng.uniform(0, 30), rng.choice((None, 50, 150, 300))) if rng.random() < 0.15 else (None, None)] * 3
    world = ImageRunsWorld(
        faults=Faults(fail=fail, lose=lose, kill_after=rng.randint(1, 100)),
        fate=lambda begun: fates[begun] if begun < len(fates) else (None, None),
        tells=rng.random() < 0.8,
    )
    check_story(world, story(world))
