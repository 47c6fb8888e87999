"""The example queue on a virtual clock: each job is accepted, and all that the console shows happens within minutes."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from api_world import CONTEXT, read, rest_event
from builders import ADA
from trainmaster.domain.policy.document import policy_of
from trainmaster.handlers.api.app import build_app
from trainmaster.local.example_queue.examples import POOLS, PROFILE, SETTINGS, TRAINING
from trainmaster.local.example_queue.player import Player
from trainmaster.local.simulator import Profile
from world import World

STEP, MINUTES = 20, 10
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


class Queue:
    """A queue in this process, to which the player submits through the API."""

    def __init__(self):
        pools = ",".join(f"{name}={cap}" for name, cap in POOLS.items())
        self.world = World(pools=pools, policy=policy_of(SETTINGS), profile=Profile(**PROFILE))
        self._app = build_app(self.world.application())

    def ask(self, method, path, body=None, query=None):
        found = read(self._app.resolve(rest_event(method, path, body, query, caller=ADA.name), CONTEXT))
        assert found.status < 300, found.body
        return found.body

    def submit(self, submission):
        self.ask("POST", submission.path, submission.body)
        if submission.hold:
            self.ask("PATCH", f"/jobs/{submission.name}", {"hold": True})

    def jobs(self, **query):
        return self.ask("GET", "/jobs", query={"limit": "100", **query})["jobs"]

    def unfinished(self):
        states = "pending,held,starting,running,preempting,preempted,resizing"
        return [job["jobName"] for job in self.jobs(state=states)]


def playing(queue):
    return Player(TRAINING, unfinished=queue.unfinished, submit=queue.submit, rng=random.Random(1), now=queue.world.now)


def test_every_job_is_accepted_and_fills_its_place():
    queue = Queue()
    playing(queue).fill()
    queue.world.run(40, step=20)
    states = {job["jobName"]: job["jobState"] for job in queue.jobs()}
    assert len(states) == sum(each.alive for each in TRAINING)
    assert (states["nightly-1"], states["paused-by-hand-1"], states["urgent-fix-1"]) == ("held", "held", "running")
    assert [job["jobName"] for job in queue.jobs(state="infeasible")] == ["too-large-1"]


@pytest.fixture(scope="module")
def played():
    """The jobs after some minutes of play, and all that was seen of them: states by the beginning of their names."""
    queue = Queue()
    player = playing(queue)
    player.fill()
    seen, most = {}, 0
    for _ in range(MINUTES * 60 // STEP):
        queue.world.run(STEP, step=STEP)
        player.step()
        jobs = queue.jobs()
        most = max(most, len(queue.unfinished()))
        for job in jobs:
            seen.setdefault(job["jobName"].rpartition("-")[0], set()).add(job["jobState"])
    return queue, seen, most


@pytest.mark.slow
def test_every_state_of_a_job_can_be_seen(played):
    _, seen, _ = played
    assert set(seen) == {each.stem for each in TRAINING}
    assert {"pending", "starting", "running", "preempted", "held", "completed", "failed"} <= set.union(*seen.values())
    assert "preempted" in seen["vit-sweep"]
    assert "failed" in seen["depth"]
    assert seen["paused-by-hand"] == seen["nightly"] == {"held"}


@pytest.mark.slow
def test_an_elastic_job_grows_and_shrinks(played):
    queue, _, _ = played
    attempts = [
        attempt for job in queue.jobs() if job["jobName"].startswith("eval-elastic") for attempt in job["attempts"]
    ]
    assert len({sum(attempt["units"].values()) for attempt in attempts}) > 1


@pytest.mark.slow
def test_jobs_of_a_sort_arrive_while_others_end_and_their_number_is_bounded(played):
    queue, _, most = played
    assert most <= sum(each.alive for each in TRAINING)
    assert len(queue.jobs(state="completed")) > 20
    assert len(queue.unfinished()) > sum(each.alive for each in TRAINING) / 2
    assert queue.ask("GET", "/queue")["jobs"]


@pytest.mark.slow
def test_the_teams_have_jobs_in_both_pools(played):
    queue, _, _ = played
    used = {(job["share"], pool) for job in queue.jobs() for each in job["attempts"] for pool in each["units"]}
    assert {share for share, _ in used} == set(SETTINGS["shares"])
    assert {pool for _, pool in used} == set(POOLS)


class Sort:
    """Jobs with empty requests."""

    team, path, hold = "team", "/add-job", False

    def __init__(self, stem="a", alive=1, pause=0.0):
        self.stem, self.alive, self.pause = stem, alive, pause

    def body(self, number, rng, now):
        return {}


def test_a_sort_rests_between_two_submissions():
    times, submitted = iter([NOW] * 2 + [NOW + timedelta(seconds=9)] + [NOW + timedelta(seconds=10)] * 3), []
    player = Player(
        [Sort(pause=10)],
        unfinished=list,
        submit=lambda each: submitted.append(each.name),
        rng=random.Random(0),
        now=lambda: next(times),
    )
    player.fill()
    player.step()
    assert submitted == ["a-1"]
    player.step()
    assert submitted == ["a-1", "a-2"]


def test_a_queue_that_does_not_answer_is_told_and_asked_again():
    told, submitted = threading.Event(), threading.Event()

    def unfinished():
        if not told.is_set():
            raise httpx.ConnectError("no route")
        return []

    problems_ = []
    player = Player(
        [Sort()],
        unfinished=unfinished,
        submit=lambda _: submitted.set(),
        rng=random.Random(0),
        now=lambda: NOW,
    )
    with player.playing(lambda text: (problems_.append(text), told.set()), seconds=0.01):
        assert submitted.wait(10)
    assert problems_ == ["A job of the example queue was not submitted: no route"]
