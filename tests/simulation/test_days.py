"""Twenty simulated days in every run of the tests, a hundred in `make test-all`; `make simulate` plays any number."""

import pytest

from samples import sample
from simulation.play import play
from simulation.story import draw

DAYS = 100
USUAL = 20
"""The days after these are slow."""
CHUNK = 5


@pytest.mark.parametrize("first", sample(range(0, DAYS, CHUNK), USUAL // CHUNK))
def test_days(first):
    found = {seed: [str(each) for each in play(draw(seed)).findings] for seed in range(first, first + CHUNK)}
    assert not any(found.values()), {seed: findings for seed, findings in found.items() if findings}
