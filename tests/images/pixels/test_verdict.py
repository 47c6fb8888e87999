"""Outcome of a region that is not done: a later retry, or failure for good."""

from __future__ import annotations

import pytest

from trainmaster.domain.errors import InvalidRequest, Throttled
from trainmaster.images.domain.leases import MAX_PAUSES, pause
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import RegionRecord
from trainmaster.images.pixels.work.region_outcome import TimeUp, verdict

REGION = Region(number=0, window=Window(0, 0, 8, 8), tiles=1)
SLOW, DISK = Throttled("slow down"), OSError("a disk")


def after(why, *, progress=False, **record):
    """Return whether it has failed for good, its pauses in a row, and the seconds until it is tried again."""
    found = verdict(RegionRecord(region=REGION, **record), why, attempts=3, progress=progress)
    return found.final, found.pauses, found.delay


@pytest.mark.parametrize("progress", [False, True])
def test_after_trouble_it_is_tried_so_often_and_later_each_time(progress):
    found = [after(DISK, tries=tries, progress=progress) for tries in (1, 2, 3)]
    assert found == [(False, 0, 5.0), (False, 0, 10.0), (True, 0, 0.0)]


def test_permanent_errors_of_the_request_are_not_retried():
    assert after(InvalidRequest("no such image"), tries=1) == (True, 0, 0.0)


def test_short_time_spends_a_try_only_where_nothing_was_done_in_it():
    assert after(TimeUp(), tries=1) == (False, 0, 0.0)
    assert after(TimeUp(), tries=3) == (True, 0, 0.0)
    assert after(TimeUp(), tries=9, progress=True) == (False, 0, 0.0)


def test_throttled_workers_pause_without_spending_a_retry_up_to_a_limit():
    assert after(SLOW, tries=9, pauses=1) == (False, 2, pause(2).total_seconds())
    assert after(SLOW, tries=9, pauses=7, progress=True) == (False, 1, pause(1).total_seconds())
    assert after(SLOW, tries=1, pauses=MAX_PAUSES) == (True, 0, 0.0)
