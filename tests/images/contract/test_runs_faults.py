"""Trouble at DynamoDB while image jobs run: the outcome is the undisturbed one."""

from __future__ import annotations

import pytest
from faults import (
    A_FEW,
    AT_EVERY_CALL,
    Disturbed,
)
from runs_contract import DEAD_BEFORE, LATER, NOW, begin, claim, ended, regions

from image_engines import DynamoImageEngine
from samples import sample
from trainmaster.images.domain.work import MERGE


def a_life(runs):
    """A run with all that can befall its regions, and what each call answered."""
    answers = [
        runs.create("scene", 1, regions(4), concurrency=2),
        ended(runs, 0),
        begin(runs, 1),
        begin(runs, 1, "another"),
    ]
    answers += [runs.beat(claim(1), NOW, tiles_done=2), runs.leave(claim(1), NOW, reason="no", final=False)]
    answers += [begin(runs, 2), begin(runs, 2, "another", at=LATER), runs.finish(claim(2), LATER, features=1)]
    runs.stop("scene", 1)
    answers += [begin(runs, 3), runs.run("scene"), runs.create("scene", 2, regions(4), concurrency=1)]
    answers += [ended(runs, number, attempt=2) for number in (1, 2)]
    answers += [begin(runs, 3, attempt=2), runs.leave(claim(3, attempt=2), NOW, reason="no", final=True)]
    answers += [ended(runs, MERGE, attempt=2), runs.run("scene")]
    runs.forget("scene")
    return [*answers, runs.run("scene"), runs.begin(claim(1), NOW, dead_before=DEAD_BEFORE)]


@pytest.mark.parametrize(("fault", "numbers"), sample(AT_EVERY_CALL, 2))
def test_whatever_each_request_meets_the_outcome_is_the_same(dynoxide, dynoxide_client, fault, numbers):
    expected = a_life(DynamoImageEngine(dynoxide_client).runs())
    client = dynoxide.client()
    engine = DynamoImageEngine(client)
    disturbed = Disturbed(client, fault, set(numbers))
    assert a_life(engine.runs()) == expected
    assert disturbed.met >= len(A_FEW)


def test_memory_lives_the_same_life(memory_engine, dynoxide_client):
    assert a_life(memory_engine.runs()) == a_life(DynamoImageEngine(dynoxide_client).runs())
