"""A hundred simulated days in every run of the tests; `make simulate` plays as many as one likes."""

import pytest

from simulation.play import play
from simulation.story import draw

DAYS = 100
CHUNK = 5


@pytest.mark.parametrize("first", range(0, DAYS, CHUNK))
def test_days(first):
    found = {seed: [str(each) for each in play(draw(seed)).findings] for seed in range(first, first + CHUNK)}
    assert not any(found.values()), {seed: findings for seed, findings in found.items() if findings}
