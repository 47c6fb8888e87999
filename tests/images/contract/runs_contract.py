"""Contract of every implementation of `images.ports.Runs`.

A subclass gives `runs`. Two workers are `one` and `another`; time is what the tests say it is.
"""

from __future__ import annotations

import random
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import MERGE, Claim, RegionState, Rest

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
DEAD_BEFORE = NOW - timedelta(seconds=120)
LATER = NOW + timedelta(seconds=300)


def regions(count=3, tiles=4):
    return [Region(number=n, window=Window(n * 100, 0, 100, 80), tiles=tiles) for n in range(count)]


def claim(number, worker="one", attempt=1, job="scene"):
    return Claim(job=job, attempt=attempt, number=number, worker=worker)


def begin(runs, *args, at=NOW, **kwargs):
    return runs.begin(claim(*args, **kwargs), at, dead_before=at - timedelta(seconds=120))


def done(runs, number, *, at=NOW, features=1, **kwargs):
    """Finish a region; return the number of regions left."""
    return ended(runs, number, at=at, features=features, **kwargs).left


def ended(runs, number, *, at=NOW, features=1, **kwargs):
    """Finish a region; return the rest of the work."""
    assert begin(runs, number, at=at, **kwargs) is not None
    return runs.finish(claim(number, **kwargs), at, features=features)


def states(run):
    return [record.state for record in run.records]


def record(runs, number):
    return next(each for each in runs.run("scene").records if each.region.number == number)


class RunsContract:
    many = 700
    """Regions of a large image."""

    def test_there_is_no_run_of_which_no_regions_were_laid_out(self, runs):
        assert runs.run("scene") is None
        assert begin(runs, 0) is None
        assert not runs.beat(claim(0), NOW, tiles_done=1)
        assert runs.finish(claim(0), NOW, features=1) is None
        assert runs.leave(claim(0), NOW, reason="", final=False) is None
        runs.stop("scene", 1)
        runs.forget("scene")
        assert runs.run("scene") is None

    def test_regions_are_laid_out_in_order_and_the_merging_is_the_last(self, runs):
        run = runs.create("scene", 1, regions(3))
        assert run == runs.run("scene")
        assert (run.job, run.attempt, run.stopped) == ("scene", 1, False)
        assert [each.region for each in run.records[:-1]] == regions(3)
        assert run.records[-1].region.number == MERGE
        assert set(states(run)) == {RegionState.PENDING}

    def test_thousands_of_regions_are_laid_out_and_read(self, runs):
        many = regions(self.many)
        runs.create("scene", 1, many)
        assert [each.region for each in runs.run("scene").records[:-1]] == many
        assert done(runs, self.many - 1) == self.many - 1
        runs.forget("scene")
        assert runs.run("scene") is None

    def test_laying_out_again_changes_nothing(self, runs):
        runs.create("scene", 1, regions(3))
        done(runs, 1)
        begin(runs, 2)
        before = runs.run("scene")
        assert runs.create("scene", 1, regions(3)) == before
        assert runs.run("scene") == before

    def test_a_stop_stays_when_the_same_attempt_is_laid_out_again(self, runs):
        runs.create("scene", 1, regions())
        runs.stop("scene", 1)
        assert runs.create("scene", 1, regions()).stopped

    def test_another_attempt_keeps_completed_regions_and_restarts_the_others(self, runs):
        runs.create("scene", 1, regions(4))
        done(runs, 0, features=7)
        begin(runs, 1)
        runs.leave(claim(1), NOW, reason="broken tile", final=True)
        begin(runs, 2)
        runs.stop("scene", 1)
        run = runs.create("scene", 2, regions(4))
        assert run == runs.run("scene")
        assert (run.attempt, run.stopped) == (2, False)
        assert states(run) == [RegionState.DONE, *[RegionState.PENDING] * 4]
        assert run.records[0].features == 7
        assert {(each.tries, each.worker, each.reason) for each in run.records[1:]} == {(0, "", "")}

    def test_an_attempt_that_has_been_followed_by_another_changes_nothing_any_more(self, runs):
        runs.create("scene", 1, regions())
        begin(runs, 0)
        run = runs.create("scene", 2, regions())
        assert not runs.beat(claim(0), NOW, tiles_done=1)
        assert runs.finish(claim(0), NOW, features=1) is None
        assert runs.leave(claim(0), NOW, reason="late", final=True) is None
        assert begin(runs, 1) is None
        runs.stop("scene", 1)
        assert runs.create("scene", 1, regions()) == run == runs.run("scene")

    def test_a_worker_takes_an_unclaimed_region(self, runs):
        runs.create("scene", 1, regions())
        taken = begin(runs, 1)
        assert taken == record(runs, 1)
        assert taken.region == regions()[1]
        assert (taken.state, taken.tries, taken.worker, taken.beat_at) == (RegionState.RUNNING, 1, "one", NOW)

    def test_a_message_that_comes_twice_gives_the_region_to_one_only(self, runs):
        """W3: a second delivery starts nothing a second time."""
        runs.create("scene", 1, regions())
        begin(runs, 0)
        assert begin(runs, 0) is None
        assert begin(runs, 0, "another") is None
        assert record(runs, 0).worker == "one"

    def test_there_is_no_region_beyond_the_last(self, runs):
        runs.create("scene", 1, regions(3))
        assert begin(runs, 3) is None

    def test_completed_or_failed_regions_are_not_taken_again(self, runs):
        runs.create("scene", 1, regions())
        done(runs, 0)
        begin(runs, 1)
        runs.leave(claim(1), NOW, reason="no", final=True)
        assert begin(runs, 0, "another", at=LATER) is None
        assert begin(runs, 1, "another", at=LATER) is None

    def test_a_worker_that_is_silent_loses_its_region(self, runs):
        runs.create("scene", 1, regions())
        begin(runs, 0)
        taken = begin(runs, 0, "another", at=LATER)
        assert (taken.worker, taken.tries) == ("another", 2)

    def test_a_worker_that_beats_keeps_its_region(self, runs):
        runs.create("scene", 1, regions())
        begin(runs, 0)
        assert runs.beat(claim(0), LATER, tiles_done=2)
        assert begin(runs, 0, "another", at=LATER) is None
        kept = record(runs, 0)
        assert (kept.worker, kept.beat_at, kept.tiles_done) == ("one", LATER, 2)

    def test_a_worker_thought_dead_that_finishes_late_finishes_nothing(self, runs):
        runs.create("scene", 1, regions())
        begin(runs, 0)
        begin(runs, 0, "another", at=LATER)
        assert not runs.beat(claim(0), LATER, tiles_done=3)
        assert runs.finish(claim(0), LATER, features=5) is None
        assert runs.leave(claim(0), LATER, reason="late", final=True) is None
        assert record(runs, 0).state is RegionState.RUNNING
        assert runs.finish(claim(0, "another"), LATER, features=6).left == 2
        assert record(runs, 0).features == 6

    def test_finishing_a_region_returns_the_number_left(self, runs):
        runs.create("scene", 1, regions(2))
        assert done(runs, 0, at=LATER, features=3) == 1
        assert done(runs, 1) == 0
        ended = record(runs, 0)
        assert (ended.state, ended.features, ended.tiles_done) == (RegionState.DONE, 3, 4)
        assert (ended.worker, ended.beat_at, ended.tries) == ("", LATER, 1)

    def test_a_region_finished_twice_counts_once(self, runs):
        runs.create("scene", 1, regions(3))
        assert done(runs, 0) == 2
        assert runs.finish(claim(0), NOW, features=1) is None
        assert done(runs, 1) == 1

    def test_a_region_given_back_is_there_for_others_with_its_reason(self, runs):
        runs.create("scene", 1, regions(2))
        begin(runs, 0)
        runs.beat(claim(0), NOW, tiles_done=3)
        assert runs.leave(claim(0), NOW, reason="endpoint gone", final=False) == Rest(left=2)
        back = record(runs, 0)
        assert (back.state, back.worker, back.tries, back.reason) == (RegionState.PENDING, "", 1, "endpoint gone")
        assert back.tiles_done == 3
        assert begin(runs, 0, "another").tries == 2

    def test_all_regions_are_in_line_and_none_is_kept_back_where_they_may_all_be_at_work(self, runs):
        for number, concurrency in enumerate((None, 3, 9)):
            job = f"scene-{number}"
            run = runs.create(job, 1, regions(3), concurrency=concurrency)
            assert (run.line, run.concurrency) == ((0, 1, 2), None)
            assert runs.run(job) == run
            assert ended(runs, 1, job=job) == Rest(left=2)

    def test_of_regions_that_are_kept_back_each_end_calls_the_next(self, runs):
        run = runs.create("scene", 1, regions(5), concurrency=2)
        assert run == runs.run("scene")
        assert (run.line, run.concurrency) == ((0, 1, 2, 3, 4), 2)
        assert ended(runs, 1) == Rest(left=4, next=(2,))
        begin(runs, 0)
        assert runs.leave(claim(0), NOW, reason="no", final=True) == Rest(left=3, next=(3,))
        assert ended(runs, 3) == Rest(left=2, next=(4,))
        assert ended(runs, 2) == Rest(left=1)
        assert ended(runs, 4) == Rest(left=0, next=(MERGE,))
        assert ended(runs, MERGE) == Rest(left=0)

    def test_a_region_given_back_keeps_its_place(self, runs):
        runs.create("scene", 1, regions(4), concurrency=1)
        begin(runs, 0)
        assert runs.leave(claim(0), NOW, reason="no", final=False) == Rest(left=4)
        assert ended(runs, 0) == Rest(left=3, next=(1,))

    def test_a_run_that_is_narrowed_calls_no_more_until_as_few_are_at_work_and_widened_it_calls_as_before(self, runs):
        began = runs.create("scene", 1, regions(12), concurrency=4)
        runs.narrow("scene", 1, 2)
        assert runs.run("scene") == replace(began, narrowed=2)
        assert [ended(runs, number).next for number in range(4)] == [(2,), (3,), (4,), (5,)]
        runs.narrow("scene", 1, None)
        assert runs.run("scene").narrowed is None
        assert ended(runs, 4) == Rest(left=7, next=(8,))

    def test_a_run_that_is_widened_calls_more_from_its_next_end_on(self, runs):
        began = runs.create("scene", 1, regions(12), concurrency=1)
        runs.widen("scene", 1, 4)
        assert runs.run("scene") == replace(began, concurrency=4)
        assert [ended(runs, number).next for number in range(4)] == [(4,), (5,), (6,), (7,)]
        runs.narrow("scene", 1, 2)
        assert ended(runs, 4).next == (6,)
        runs.widen("scene", 2, 9)
        assert (runs.run("scene").concurrency, runs.run("scene").narrowed) == (4, 2)

    def test_another_attempt_is_not_as_narrow_and_a_late_word_about_the_one_before_changes_nothing(self, runs):
        runs.create("scene", 1, regions(9), concurrency=4)
        runs.narrow("scene", 1, 1)
        run = runs.create("scene", 2, regions(9), concurrency=3)
        runs.narrow("scene", 1, 1)
        assert run == runs.run("scene")
        assert (run.concurrency, run.narrowed) == (3, None)
        runs.forget("scene")
        runs.narrow("scene", 2, 1)
        assert runs.run("scene") is None

    def test_in_another_attempt_the_regions_that_are_left_stand_in_line_and_another_number_goes_abreast(self, runs):
        runs.create("scene", 1, regions(9), concurrency=4)
        for number in (0, 2, 3):
            done(runs, number)
        run = runs.create("scene", 2, regions(9), concurrency=2)
        assert run == runs.run("scene") == runs.create("scene", 2, regions(9), concurrency=5)
        assert (run.line, run.concurrency) == ((1, 4, 5, 6, 7, 8), 2)
        assert ended(runs, 4, attempt=2) == Rest(left=5, next=(5,))
        assert ended(runs, 1, attempt=2) == Rest(left=4, next=(6,))
        everything = runs.create("scene", 3, regions(9))
        assert (everything.line, everything.concurrency) == ((5, 6, 7, 8), None)

    def test_of_many_workers_that_end_at_once_none_leaves_a_region_uncalled(self, runs):
        """Two ends may name the same next region, so its message comes twice; no region is left out."""
        count, concurrency = 14, 4
        called = deque(runs.create("scene", 1, regions(count), concurrency=concurrency).line[:concurrency])

        def work(worker):
            with suppress(IndexError):
                while True:
                    number = called.popleft()
                    if begin(runs, number, worker) is not None:
                        called.extend(runs.finish(claim(number, worker), NOW, features=1).next)

        # A worker that finds nothing to do ends, so some are started again.
        while called:
            _at_once([lambda worker=f"w{n}": work(worker) for n in range(concurrency)])
        assert states(runs.run("scene")) == [RegionState.DONE] * (count + 1)

    def test_running_out_of_time_is_no_try(self, runs):
        runs.create("scene", 1, regions(2))
        for _ in range(4):
            begin(runs, 0)
            runs.leave(claim(0), NOW, reason="", final=False)
        assert record(runs, 0).tries == 0

    def test_being_told_to_slow_down_is_no_try_and_the_region_rests(self, runs):
        runs.create("scene", 1, regions(2))
        at = NOW
        for pauses, seconds in enumerate((30, 60, 120, 240, 480, 900, 900), start=1):
            assert begin(runs, 0, at=at).pauses == pauses - 1
            runs.leave(claim(0), at, reason="busy", final=False, pauses=pauses)
            back = record(runs, 0)
            assert (back.state, back.tries, back.pauses, back.reason) == (RegionState.PENDING, 0, pauses, "busy")
            # A message that comes twice cuts no pause short; one that comes a moment early by another clock is heard.
            assert begin(runs, 0, at=at + timedelta(seconds=seconds - 6)) is None
            at += timedelta(seconds=seconds - 1)
        assert done(runs, 0, at=at) == 1
        assert (record(runs, 0).tries, record(runs, 0).pauses) == (1, 0)

    def test_another_attempt_does_not_wait_for_a_pause(self, runs):
        runs.create("scene", 1, regions(2))
        begin(runs, 0)
        runs.leave(claim(0), NOW, reason="busy", final=False, pauses=20)
        runs.create("scene", 2, regions(2))
        assert begin(runs, 0, attempt=2).pauses == 0

    def test_a_region_that_fails_for_good_is_not_left_over(self, runs):
        runs.create("scene", 1, regions(2))
        begin(runs, 0)
        assert runs.leave(claim(0), NOW, reason="x" * 5_000, final=True) == Rest(left=1)
        assert record(runs, 0).state is RegionState.FAILED
        assert record(runs, 0).reason == "x" * 1024

    def test_the_merging_waits_for_all_regions(self, runs):
        runs.create("scene", 1, regions(2))
        done(runs, 0)
        begin(runs, 1)
        assert begin(runs, MERGE) is None
        runs.leave(claim(1), NOW, reason="no", final=True)
        assert begin(runs, MERGE).region.number == MERGE
        assert runs.finish(claim(MERGE), NOW, features=9) == Rest(left=0)
        assert record(runs, MERGE).features == 9

    def test_merging_waits_for_the_regions_that_the_attempt_restarts(self, runs):
        runs.create("scene", 1, regions(2))
        done(runs, 0)
        begin(runs, 1)
        runs.leave(claim(1), NOW, reason="no", final=True)
        runs.create("scene", 2, regions(2))
        assert begin(runs, MERGE, attempt=2) is None
        assert done(runs, 1, attempt=2) == 0
        assert begin(runs, MERGE, attempt=2) is not None

    def test_workers_neither_begin_nor_continue_a_stopped_run(self, runs):
        runs.create("scene", 1, regions(3))
        begin(runs, 0)
        runs.stop("scene", 1)
        runs.stop("scene", 1)
        assert runs.run("scene").stopped
        assert begin(runs, 1) is None
        assert not runs.beat(claim(0), NOW, tiles_done=2)
        assert record(runs, 0).state is RegionState.RUNNING

    def test_a_region_that_finishes_after_the_stop_still_counts(self, runs):
        runs.create("scene", 1, regions(3))
        begin(runs, 0)
        begin(runs, 1)
        runs.stop("scene", 1)
        assert runs.finish(claim(0), NOW, features=1).left == 2
        assert runs.leave(claim(1), NOW, reason="", final=False) == Rest(left=2)
        assert states(runs.run("scene")) == [RegionState.DONE, *[RegionState.PENDING] * 3]

    def test_a_late_call_does_not_create_forgotten_regions(self, runs):
        runs.create("scene", 1, regions(3))
        begin(runs, 0)
        runs.forget("scene")
        runs.forget("scene")
        assert runs.run("scene") is None
        assert runs.finish(claim(0), NOW, features=1) is None
        assert begin(runs, 1) is None
        for attempt in (1, 2):
            assert runs.create("scene", attempt, regions(3)).records == ()
        assert runs.run("scene") is None
        assert begin(runs, 1) is None

    def test_jobs_have_nothing_to_do_with_each_other(self, runs):
        runs.create("scene", 1, regions(2))
        runs.create("scene2", 4, regions(3))
        done(runs, 0, job="scene2", attempt=4)
        runs.stop("scene2", 4)
        runs.forget("scene2")
        assert states(runs.run("scene")) == [RegionState.PENDING] * 3

    def test_of_many_workers_one_begins_a_region_and_each_region_is_finished_once(self, runs):
        count, workers = 6, 5
        runs.create("scene", 1, regions(count))
        begun, left = [], []

        def work(worker):
            # Each in an order of its own, so that they meet in the middle.
            for number in random.Random(worker).sample(range(count), count):
                if begin(runs, number, worker) is not None:
                    begun.append(number)
                    left.append(runs.finish(claim(number, worker), NOW, features=1))

        _at_once([lambda worker=f"w{n}": work(worker) for n in range(workers)])
        assert sorted(begun) == list(range(count))
        assert None not in left
        assert any(rest.next == (MERGE,) for rest in left), "the last one knows that it is"

    def test_laid_out_by_two_at_once_it_is_laid_out_once(self, runs):
        many = regions(103)
        _at_once([lambda: runs.create("scene", 1, many)] * 3)
        run = runs.run("scene")
        assert [each.region for each in run.records[:-1]] == many
        assert done(runs, 0) == 102

    def test_a_worker_that_races_with_a_stop_is_seen_or_does_not_begin(self, runs):
        """Otherwise a stopped run's capacity would be given away while a worker goes on."""
        for number in range(6):
            job, took, seen = f"scene-{number}", [], []
            runs.create(job, 1, regions(1))

            def stop(job=job, seen=seen):
                runs.stop(job, 1)
                seen.append(runs.run(job).records[0].state)

            _at_once([lambda job=job, took=took: took.append(begin(runs, 0, job=job)), stop])
            assert took == [None] or seen == [RegionState.RUNNING]

    def test_a_record_is_read_as_it_was_written(self, runs):
        awkward = [replace(regions(1)[0], window=Window(2**31, 7, 10_240, 1), tiles=10_000)]
        runs.create("scène/1#x", 1, awkward)
        taken = begin(runs, 0, "w#1 é", job="scène/1#x", at=NOW + timedelta(microseconds=3))
        assert runs.run("scène/1#x").records[0] == taken
        assert taken.beat_at == NOW + timedelta(microseconds=3)
        assert taken.region == awkward[0]


def _at_once(tasks):
    """All in threads of their own; raises what any of them met."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        for ended in [pool.submit(task) for task in tasks]:
            ended.result()
