"""A node is suspended with its workers, as a host that swaps or migrates, and goes on after the others have lost it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from agent_processes import Play
from agents import eventually

BEAT = 1.0
DELAY = 1.0
"""Seconds that a busy machine may need on top."""


@pytest.fixture
def play(client, table, tmp_path):
    played = Play(client, table, tmp_path, keep_alive_interval=BEAT, keep_alive_max_attempt=3, poll_interval=BEAT)
    yield played
    played.close()


def test_a_node_that_was_suspended_stops_its_workers_within_a_beat(play):
    play.check(3)
    worker = play.worlds()[2]["pid"]
    (frozen,) = [output for output in play.outputs if f'"pid": {worker}' in output.read_text()]
    agent = play.processes[play.outputs.index(frozen)]
    os.killpg(worker, signal.SIGSTOP)
    os.kill(agent.pid, signal.SIGSTOP)
    play.check(2)
    resumed = time.monotonic()
    os.killpg(worker, signal.SIGCONT)
    os.kill(agent.pid, signal.SIGCONT)
    eventually(lambda: not Path(f"/proc/{worker}").exists())
    assert time.monotonic() - resumed < BEAT + DELAY
    play.check(3)
