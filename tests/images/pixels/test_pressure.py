"""Reports of a worker to the queue that a model refuses too many of its requests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from imaging_stage import Known, Messages, Ticking

from trainmaster.domain.errors import RequestRefused, Throttled, Unavailable
from trainmaster.images.local.memory_runs import MemoryRuns
from trainmaster.images.pixels.work.pressure import OverloadMonitor
from trainmaster.images.pixels.work.request_stats import RequestStats
from trainmaster.images.pixels.work.task import Queue

TASK = SimpleNamespace(endpoint="ships", variant="blue")


class Scene:
    def __init__(self):
        self.known, self.stats, self.clock = Known(), RequestStats(), Ticking(step=0)
        queue = Queue(
            runs=MemoryRuns(), regions=Messages(), endpoints=self.known, tell=lambda run, number: None, clock=self.clock
        )
        self.watch = OverloadMonitor(queue, TASK, self.stats)

    def ask(self, answered, *errors):
        for error in (*[None] * answered, *errors):
            try:
                with self.stats.count_request():
                    if error is not None:
                        raise error
            except (Throttled, Unavailable, RequestRefused):
                pass
        self.watch.look()

    def factor(self):
        endpoint = self.known.by_key.get("ships")
        return 1.0 if endpoint is None else endpoint.pressure["blue"].factor


@pytest.fixture
def scene():
    return Scene()


@pytest.mark.parametrize("error", [Throttled("slow down"), Unavailable("out of memory")])
def test_w17_more_than_a_tenth_refused_or_failed_halves_the_target(scene, error):
    scene.ask(9, error)
    assert scene.factor() == 1.0
    scene.ask(0, error)
    assert scene.factor() == 0.5


def test_a_few_refusals_among_many_requests_lower_nothing(scene):
    scene.ask(27, *[Throttled("slow down")] * 3)
    assert scene.factor() == 1.0


def test_tiles_that_a_model_rejects_as_bad_lower_nothing(scene):
    scene.ask(0, *[RequestRefused("no picture")] * 30)
    assert scene.factor() == 1.0


def test_it_is_told_again_after_half_a_minute_where_it_goes_on(scene):
    for _ in range(5):
        scene.ask(5, *[Throttled("slow down")] * 5)
    assert scene.factor() == 0.5
    scene.clock.sleep(31)
    scene.ask(5, *[Throttled("slow down")] * 5)
    assert scene.factor() < 0.5


def test_old_answers_hide_no_throttling(scene):
    scene.ask(500)
    scene.ask(5, *[Throttled("slow down")] * 5)
    assert scene.factor() == 0.5
