"""Replays of a draft over the console's server: one child process at a time, which ends with the console."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from console_server import Running, serving

from fake_api import FakeApi
from trainmaster.client.replay.process import COMMAND, ReplayProcess
from trainmaster.console.app import Options

READS_ON = "import sys; sys.stdin.read(); print('{\"progress\": 0.5}', flush=True); sys.stdin.close(); "
SLEEPS = (sys.executable, "-c", READS_ON + "import time; time.sleep(600)")
ENDS = (sys.executable, "-c", READS_ON)
DRAFT = {"order": "fifo"}


class Child(ReplayProcess):
    """A replay's process, the number of which a test can ask for."""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid


@contextmanager
def replaying(world: FakeApi, command=SLEEPS, options: Options | None = None) -> Iterator[tuple[Running, list[Child]]]:
    """A console with a browser that has signed in, and the children that it makes."""
    children: list[Child] = []

    def child() -> Child:
        children.append(Child(command))
        return children[-1]

    with serving(world, options, replay_process=child) as running:
        running.sign_in()
        yield running, children


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1_500):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it has not happened within 15 seconds")


def status(running: Running) -> dict:
    answer = running.ask("GET /replay")
    assert answer.status == 200
    return answer.json


def start(running: Running, draft=DRAFT) -> None:
    answer = running.change("POST /replay", {"draft": draft})
    assert (answer.status, answer.json["state"]) == (202, "reading")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def half_done(running: Running) -> bool:
    return status(running)["progress"] == 0.5


def test_a_draft_is_replayed_in_a_child_process_with_what_the_api_shows(world):
    with replaying(world, COMMAND) as (running, _):
        assert status(running)["state"] == "none"
        start(running)
        until(lambda: status(running)["state"] not in ("reading", "replaying"))
        found = status(running)
        assert (found["state"], found["error"], found["draft"]) == ("done", None, DRAFT)
        assert found["report"]["jobs"] == 2
        assert {group["name"] for group in found["report"]["draft"]["shares"]} == {"default"}


def test_a_wrong_draft_is_refused_by_its_field(world):
    with replaying(world, COMMAND) as (running, _):
        start(running, {"order": "lifo"})
        until(lambda: status(running)["state"] == "failed")
        assert status(running)["error"]["field"] == "order"
        start(running)  # and another one can be tried


def test_an_error_of_the_api_is_shown_as_it_is(world):
    with replaying(world) as (running, children):
        world.outage = [403]
        start(running)
        until(lambda: status(running)["state"] == "failed")
        assert status(running)["error"]["message"] == "outage."
        assert children[0].pid is None


def test_a_child_that_ends_without_a_result_is_a_failure(world):
    with replaying(world, ENDS) as (running, _):
        start(running)
        until(lambda: status(running)["state"] == "failed")
        assert status(running)["error"]["message"] == "The replay has ended without a result."


def test_a_second_replay_is_refused_while_one_runs(world):
    with replaying(world) as (running, children):
        start(running)
        until(lambda: half_done(running))
        again = running.change("POST /replay", {"draft": DRAFT})
        assert again.status == 409
        assert again.json["error"]["message"] == "A replay runs already. Wait for its end, or cancel it."
        assert len(children) == 1


def test_the_child_is_gone_after_a_cancellation_and_after_the_console(world):
    with replaying(world) as (running, children):
        start(running)
        until(lambda: half_done(running))
        running.change("DELETE /replay")
        assert not is_alive(children[0].pid)
        start(running)
        until(lambda: half_done(running))
    assert not is_alive(children[1].pid)


def test_a_replay_that_is_cancelled_while_it_reads_starts_no_child(world):
    with replaying(world) as (running, children):
        with world.changed:  # the API does not answer
            start(running)
            assert running.change("DELETE /replay").json["state"] == "none"
        world.await_calls(1)
        time.sleep(0.2)
        assert status(running)["state"] == "none"
        assert children[0].pid is None


def test_a_console_that_changes_nothing_may_replay(world):
    with replaying(world, options=Options(read_only=True)) as (running, _):
        start(running)


@pytest.mark.parametrize("body", [None, {}, {"draft": None}, {"draft": "{}"}, {"draft": [1]}])
def test_a_replay_needs_a_draft(world, body):
    with replaying(world) as (running, children):
        assert running.change("POST /replay", body).status == 400
        assert running.change("PUT /replay", body).status == 405
        assert not children
