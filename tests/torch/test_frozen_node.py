"""A node is suspended with its workers, as a host that swaps or migrates, and goes on after the others have lost it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from agent_processes import Play
from agents import eventually

BEAT = 1.0
DELAY = 1.0
"""Seconds that a busy machine may need on top."""
SETTINGS = {"keep_alive_interval": BEAT, "keep_alive_max_attempt": 3, "poll_interval": BEAT}
SAVER = (sys.executable, str(Path(__file__).with_name("saver.py")))


@pytest.fixture
def play(client, table, tmp_path):
    """Return a function that starts three agents with workers of this command."""
    plays = []

    def start(*worker):
        plays.append(Play(client, table, tmp_path / "agents", worker=worker, **SETTINGS))
        return plays[-1]

    yield start
    for each in plays:
        each.close()


class Node:
    """An agent with its worker, which can be suspended.

    Args:
        play: it takes part in this.
        rank: in the newest world.
    """

    def __init__(self, play, rank):
        self.worker = play.worlds()[rank]["pid"]
        (output,) = [output for output in play.outputs if f'"pid": {self.worker}' in output.read_text()]
        self.agent = play.processes[play.outputs.index(output)].pid

    def suspend(self):
        os.killpg(self.worker, signal.SIGSTOP)
        os.kill(self.agent, signal.SIGSTOP)

    def has_stopped_its_worker(self):
        return not Path(f"/proc/{self.worker}").exists()


def test_a_node_that_was_suspended_stops_its_workers_within_a_beat(play):
    group = play("sleep", "1000")
    group.check(3)
    node = Node(group, 2)
    node.suspend()
    group.check(2)
    resumed = time.monotonic()
    os.killpg(node.worker, signal.SIGCONT)
    os.kill(node.agent, signal.SIGCONT)
    eventually(node.has_stopped_its_worker)
    assert time.monotonic() - resumed < BEAT + DELAY
    group.check(3)


def test_workers_that_go_on_before_their_agent_publish_no_checkpoint(play, tmp_path):
    """Only the fence keeps them from it: their agent is still suspended, and knows of no newer world."""
    group, saves = play(*SAVER, str(tmp_path / "saves")), tmp_path / "saves"
    group.check(3)
    node = Node(group, 0)
    report = Path(f"{saves}-{node.worker}")
    eventually(report.exists)
    node.suspend()
    group.check(2)
    round_ = tries(report)[-1]["round"]
    eventually(lambda: published(saves)[-1] > round_)
    before, tried = published(saves).count(round_), len(tries(report))
    os.killpg(node.worker, signal.SIGCONT)
    eventually(lambda: len(tries(report)) > tried + 20)
    # One may have been between its check of the fence and its publication. It sorts before those of the newer world.
    assert all(each["fenced"] for each in tries(report)[tried + 1 :])
    assert published(saves).count(round_) <= before + 1
    assert published(saves)[-1] > round_
    os.kill(node.agent, signal.SIGCONT)
    eventually(node.has_stopped_its_worker)
    group.check(3)


def tries(report):
    """Return the tries to save that a worker has reported."""
    return [json.loads(line) for line in report.read_text().rpartition("\n")[0].splitlines()]


def published(saves):
    """Return the rounds of all checkpoints, in the order in which a job would resume from them."""
    return [int(path.name.split("-")[1][1:]) for path in sorted(saves.glob("a*"))]
