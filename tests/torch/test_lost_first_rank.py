"""The host of the first rank is lost while ranks are assigned: torch's agents on the other hosts work on."""

from __future__ import annotations

import os
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from agent_processes import CALLS, Loss, Play
from tests.contract.engines import make_table

LOSSES = [Loss(at=at, signal_number=each) for at in range(CALLS) for each in (signal.SIGKILL, signal.SIGSTOP)]
"""A host can end with its connections, or fall silent."""
RUNS = 1_000
AT_ONCE = 4


@pytest.fixture
def play(client, tmp_path):
    """Return a function that plays one loss."""

    def one(number, loss):
        table = f"lost-{os.getpid()}-{uuid.uuid4()}"
        make_table(client, table)
        played = Play(client, table, tmp_path / str(number), loss)
        try:
            played.check(2)
        finally:
            played.close()

    return one


@pytest.mark.parametrize("loss", LOSSES[::3], ids=str)
def test_no_agent_dies_when_the_first_rank_is_lost_while_ranks_are_assigned(play, loss):
    play(0, loss)


@pytest.mark.slow
def test_no_agent_dies_in_a_thousand_losses(play):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(play, number, LOSSES[number % len(LOSSES)]) for number in range(RUNS)]
        failed = {number: run.exception() for number, run in enumerate(runs) if run.exception() is not None}
    assert not failed
