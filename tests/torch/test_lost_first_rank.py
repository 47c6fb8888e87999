"""The host of the first rank is lost while ranks are assigned: torch's agents on the other hosts work on."""

from __future__ import annotations

import pytest
from losses import LOSSES, play, play_all

PLAYS, AT_ONCE = 100, 4


def test_no_agent_dies_when_first_ranks_are_lost_while_ranks_are_assigned(client, tmp_path):
    assert play(client, tmp_path, LOSSES[::3]) == len(LOSSES[::3])


@pytest.mark.slow
def test_no_agent_dies_in_a_thousand_losses(client, tmp_path):
    played = play_all(lambda number, losses: play(client, tmp_path / str(number), losses), PLAYS, AT_ONCE)
    assert sum(each.result() for each in played) == PLAYS * len(LOSSES)
