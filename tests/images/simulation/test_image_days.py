"""Five simulated days of image jobs beside training jobs in every run of the tests, twenty in `make test-all`."""

import pytest
from image_days import draw_images, play

from samples import sample

DAYS = 20
CHUNK = 5


@pytest.mark.parametrize("first", sample(range(0, DAYS, CHUNK)))
def test_days_with_image_jobs(first):
    found = {seed: [str(each) for each in play(draw_images(seed)).findings] for seed in range(first, first + CHUNK)}
    assert not any(found.values()), {seed: findings for seed, findings in found.items() if findings}
