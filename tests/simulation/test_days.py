"""Fifty simulated days in every run of the tests, a hundred in `make test-all`; `make simulate` plays any number."""

import pytest

from simulation.play import play
from simulation.story import draw

DAYS = 100
USUAL = 50
"""The days after these are slow."""
CHUNK = 5


CHUNKS = [pytest.param(day, marks=[pytest.mark.slow] if day >= USUAL else []) for day in range(0, DAYS, CHUNK)]


@pytest.mark.parametrize("first", CHUNKS)
def test_days(first):
    found = {seed: [str(each) for each in play(draw(seed)).findings] for seed in range(first, first + CHUNK)}
    assert not any(found.values()), {seed: findings for seed, findings in found.items() if findings}
