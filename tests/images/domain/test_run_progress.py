"""Progress of a run of regions, and the regions that are dispatched again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from image_builders import an_image_work
from trainmaster.domain.jobs.observation import Status
from trainmaster.images.domain.leases import initial_records
from trainmaster.images.domain.progress import dispatchable, exhausted, observed, silent
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import MERGE, RegionState, Run, RunProgress, run_of, run_parts

WORK = an_image_work()
DEAD = timedelta(seconds=120)
PENDING, RUNNING, DONE, FAILED = RegionState


def a_run(*states, merging=PENDING, stopped=False, attempt=1, concurrency=None):
    """A run whose regions, of nine tiles, and one of two, are so; those that run were heard of at `NOW`."""
    regions = [Region(number=n, window=Window(0, 0, 9, 9), tiles=2 if n == 0 else 9) for n in range(len(states))]
    records = [
        replace(record, state=state, tries=int(state is not PENDING), beat_at=b.NOW if state is RUNNING else None)
        for record, state in zip(initial_records(regions), (*states, merging), strict=True)
    ]
    return Run(
        job="scene",
        attempt=attempt,
        stopped=stopped,
        records=tuple(records),
        line=tuple(range(len(states))),
        concurrency=concurrency,
    )


def changed(run, number, **fields):
    records = [replace(each, **fields) if each.region.number == number else each for each in run.records]
    return replace(run, records=tuple(records))


def seen(run, after=0.0):
    return observed(run, WORK, b.at(after) - DEAD)


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (a_run(PENDING, PENDING), Status.IN_PROGRESS),
        (a_run(DONE, DONE), Status.IN_PROGRESS),
        (a_run(DONE, DONE, merging=RUNNING), Status.IN_PROGRESS),
        (a_run(DONE, FAILED), Status.IN_PROGRESS),
        (a_run(DONE, DONE, merging=DONE), Status.COMPLETED),
        (a_run(DONE, FAILED, merging=DONE), Status.FAILED),
        (a_run(DONE, DONE, merging=FAILED), Status.FAILED),
        (a_run(DONE, RUNNING, stopped=True), Status.STOPPING),
        (a_run(DONE, PENDING, stopped=True), Status.STOPPED),
        (a_run(DONE, DONE, merging=RUNNING, stopped=True), Status.STOPPING),
        (a_run(DONE, DONE, merging=DONE, stopped=True), Status.COMPLETED),
    ],
)
def test_a_run_ends_with_its_merge_or_after_its_stopped_workers(run, status):
    assert seen(run).status is status


def test_a_dead_worker_does_not_keep_a_stopped_run():
    assert seen(a_run(RUNNING, stopped=True), after=119).status is Status.STOPPING
    assert seen(a_run(RUNNING, stopped=True), after=120).status is Status.STOPPED


def test_a_run_is_at_work_from_its_first_region_on():
    assert not seen(a_run(PENDING, PENDING)).at_work
    assert seen(a_run(RUNNING, PENDING)).at_work
    assert seen(changed(a_run(PENDING, PENDING), 1, tries=1)).at_work


def test_an_attempt_is_running_only_after_a_worker_begins_under_it():
    run = replace(a_run(DONE, PENDING, PENDING), attempt=2, line=(1, 2))
    assert not seen(run).at_work
    assert seen(changed(run, 2, state=RUNNING, tries=1, beat_at=b.NOW)).at_work
    assert seen(changed(run, 2, beat_at=b.NOW)).at_work, "it was given back, and its try does not count"
    assert seen(changed(replace(run, line=()), MERGE, tries=1)).at_work


def test_the_remaining_load_is_that_of_open_regions_limited_by_their_tiles():
    run = changed(a_run(RUNNING, PENDING, DONE, FAILED), 2, tiles_done=9)
    assert seen(run).progress == RunProgress(done=1, failed=1, left=2 + 4, tiles_done=9)


def test_a_failure_tells_how_much_of_it_and_why():
    run = changed(a_run(DONE, FAILED, FAILED, merging=DONE), 1, reason="a broken tile")
    assert seen(run).failure_reason == "2 of 3 regions failed: a broken tile"
    assert seen(run).failure_class is None, "its regions have been tried again already"
    merging = changed(a_run(DONE, merging=FAILED), MERGE, reason="no bucket")
    assert seen(merging).failure_reason == "the regions' results could not be merged: no bucket"


def test_unclaimed_regions_are_dispatched_and_the_merging_last():
    assert dispatchable(a_run(PENDING, RUNNING, DONE, PENDING)) == (0, 3)
    assert dispatchable(a_run(DONE, RUNNING)) == ()
    assert dispatchable(a_run(DONE, FAILED)) == (MERGE,)
    assert dispatchable(a_run(DONE, DONE, merging=DONE)) == ()


def test_of_a_run_with_a_window_only_those_whose_turn_it_is_are_dispatched():
    assert dispatchable(a_run(PENDING, PENDING, PENDING, PENDING, concurrency=2)) == (0, 1)
    assert dispatchable(a_run(RUNNING, PENDING, PENDING, PENDING, concurrency=2)) == (1,)
    assert dispatchable(a_run(RUNNING, FAILED, PENDING, PENDING, concurrency=2)) == (2,)
    assert dispatchable(a_run(DONE, DONE, RUNNING, RUNNING, PENDING, concurrency=2)) == ()
    assert dispatchable(a_run(DONE, FAILED, concurrency=1)) == (MERGE,)
    later = replace(a_run(DONE, PENDING, DONE, PENDING, PENDING, concurrency=2), line=(1, 3, 4))
    assert dispatchable(later) == (1, 3)


@pytest.mark.parametrize("concurrency", [1, 2, 3, 5])
def test_there_are_never_more_abreast_than_the_run_says_and_none_is_left_out(concurrency):
    run, order = a_run(*[PENDING] * 9, concurrency=concurrency), []
    while MERGE not in (ready := dispatchable(run)):
        assert len(ready) == min(concurrency, 9 - len(order))
        last = ready[-1]
        order.append(last)
        run = changed(run, last, state=DONE)
    assert sorted(order) == list(range(9))


def again(run, minutes):
    return silent(run, b.at(60 * minutes), b.NOW, DEAD, 3)


def test_silent_regions_are_dispatched_again_at_growing_intervals():
    run = a_run(RUNNING, PENDING)
    assert [minute for minute in range(40) if again(run, minute) == (0, 1)] == [2, 4, 8, 16, 32]
    assert [minute for minute in range(40) if again(a_run(DONE), minute)] == [2, 4, 8, 16, 32]


def test_unclaimed_regions_stay_queued_while_workers_are_active():
    run = changed(a_run(RUNNING, PENDING, RUNNING), 2, beat_at=b.at(200))
    assert again(run, 4) == (0,)


def test_with_a_window_a_region_whose_message_was_never_sent_is_missed_though_others_are_at_work():
    """Its worker's predecessor died between its own end and the message."""
    run = a_run(DONE, RUNNING, PENDING, PENDING, concurrency=2)
    run = changed(run, 0, beat_at=b.at(300))
    silences = [minute for minute in range(24) if again(changed(run, 1, beat_at=b.at(60 * minute)), minute)]
    assert silences == [5 + 2, 5 + 4, 5 + 8, 5 + 16]
    assert again(changed(run, 1, beat_at=b.at(420)), 7) == (2,)
    assert again(a_run(RUNNING, PENDING, PENDING, concurrency=2), 2) == (0, 1), "of those first in line since the start"


def test_paused_regions_are_not_silent():
    run = changed(a_run(PENDING), 0, beat_at=b.at(0), pauses=6)
    assert [minute for minute in range(40) if again(run, minute)] == [15 + 2, 15 + 4, 15 + 8, 15 + 16]


def test_a_region_that_kills_its_workers_is_given_up():
    run = changed(a_run(RUNNING, PENDING), 0, tries=3)
    assert again(run, 2) == (1,)
    assert exhausted(run, b.NOW, 3) == (0,)
    assert exhausted(run, b.at(-1), 3) == ()
    assert exhausted(changed(run, 0, tries=2), b.NOW, 3) == ()


@pytest.mark.parametrize("job", ["scene", "s" * 63, "scene-7"])
@pytest.mark.parametrize("attempt", [1, 2, 117])
def test_a_runs_name_tells_its_job_and_attempt(job, attempt):
    assert run_parts(run_of(job, attempt)) == (job, attempt)
