"""Concurrent regions of an image that is larger than its endpoint."""

from __future__ import annotations

import pytest

from image_builders import an_image_work
from trainmaster.images.domain.capacity import UNLIMITED
from trainmaster.images.domain.concurrency import concurrency_of, effective_concurrency, requests_of, rest
from trainmaster.images.domain.leases import MAX_PAUSES, pause
from trainmaster.images.domain.work import MERGE, Rest


@pytest.mark.parametrize(
    ("load", "held", "concurrency", "requests"),
    [
        (120, 8, 2, 4),
        (120, 11, 2, 4),
        (120, 3, 1, 3),
        (120, 1, 1, 1),
        (33, 33, None, 4),
        (2, 2, None, 2),
        (40_000, UNLIMITED, None, 4),
    ],
)
def test_as_many_regions_are_at_work_as_the_job_holds_requests_for(load, held, concurrency, requests):
    work = an_image_work(load)
    assert concurrency_of(work, held) == concurrency
    assert requests_of(work, held) == requests
    assert (concurrency or 1) * requests <= held


def test_the_concurrency_is_not_written_if_it_limits_no_region():
    assert [effective_concurrency(concurrency, (4, 5, 6)) for concurrency in (None, 2, 3, 4)] == [None, 2, None, None]


def test_an_end_calls_what_ends_beside_it_call_too():
    line = (2, 3, 5, 7, 11, 13)
    assert rest(line, 2, 6, 5) == Rest(left=5, next=(5,))
    assert rest(line, 2, 6, 4) == rest(line, 2, 6, 4) == Rest(left=4, next=(5, 7))
    assert rest(line, 2, 3, 1) == Rest(left=1, next=(13,))
    assert rest(line, 2, 2, 1) == Rest(left=1)
    assert rest(line, 2, 2, 0) == Rest(left=0, next=(MERGE,))
    assert rest(line, None, 6, 5) == Rest(left=5)


def test_pauses_grow_and_add_up_to_six_hours():
    pauses = [pause(number).total_seconds() for number in range(MAX_PAUSES + 1)]
    assert pauses[:8] == [0, 30, 60, 120, 240, 480, 900, 900]
    assert 6 <= sum(pauses) / 3600 < 6.1
    assert pause(10_000).total_seconds() == 900
