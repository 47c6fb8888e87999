"""Lifecycle of an image job: the name of its run, the units it gives back, the request of a later attempt."""

from __future__ import annotations

from dataclasses import replace

import builders as b
from image_builders import a_report, a_running_image, a_started_image, an_image_job, an_image_work, must
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import MAX_KINDS, MAX_OTHER_KINDS, History
from trainmaster.domain.jobs.work import OTHER_KINDS
from trainmaster.domain.policy.settings import FailureClass, Policy
from trainmaster.domain.records import Records, booked
from trainmaster.domain.shares.charging import books
from trainmaster.images.domain.endpoint import pool_name
from trainmaster.planner.preemption.preempt import lost_work

POOL = pool_name("ships", "blue")


def test_an_attempt_of_an_image_job_is_a_run_and_its_name_is_no_training_jobs():
    first = a_started_image("image1")
    assert first.attempt.training_job_name == "image:image1"
    stopped = lifecycle.preempt(first, "other", b.at(5))
    back = must(lifecycle.observe(stopped, a_report(stopped, status=Status.STOPPED, left=8), b.at(9)))
    again = lifecycle.start(back, {POOL: 8}, (), b.at(20))
    assert again.attempt.training_job_name == "image:image1-qstamp-2"


def test_w9_finished_regions_give_their_requests_back_at_once():
    job = a_running_image(load=16)
    half = must(lifecycle.observe(job, a_report(job, done=2, left=8, tiles_done=162), b.at(60)))
    assert half.units == {POOL: 8}
    assert (half.work.done, half.work.left) == (2, 8)
    merging = must(lifecycle.observe(half, a_report(job, done=4, left=0), b.at(90)))
    assert merging.units == {POOL: 0}
    assert merging.state is JobState.RUNNING


def test_w9_an_image_that_is_larger_than_its_endpoint_holds_all_of_it_until_less_is_left():
    job = a_running_image(load=32, units=8)
    some = must(lifecycle.observe(job, a_report(job, done=3, left=20), b.at(60)))
    assert some.units == {POOL: 8}
    assert must(lifecycle.observe(some, a_report(job, done=7, left=4), b.at(90))).units == {POOL: 4}


def test_of_two_equal_image_jobs_the_one_that_has_just_finished_a_region_is_the_cheaper_victim():
    """Nothing of a done region is lost: it is a checkpoint."""
    early, late = (a_running_image(name, load=32, units=8, checkpointed=True) for name in ("early", "late"))
    early = must(lifecycle.observe(early, a_report(early, done=1, left=28), b.at(100)))
    late = must(lifecycle.observe(late, a_report(late, done=1, left=28), b.at(590)))
    assert early.units == late.units
    assert [lost_work(job, 0.0, b.at(600)) for job in (early, late)] == [500.0, 10.0]


def test_a_report_that_tells_of_no_region_more_is_no_checkpoint():
    job = a_running_image(load=32, units=8)
    some = must(lifecycle.observe(job, a_report(job, done=1, left=28), b.at(100)))
    failed = must(lifecycle.observe(some, a_report(job, done=1, failed=1, left=24), b.at(200)))
    assert failed.attempt.saved_at == b.at(100)


def test_a_report_that_comes_late_or_twice_takes_nothing_back():
    job = a_running_image(load=16)
    later = must(lifecycle.observe(job, a_report(job, done=3, left=4), b.at(60)))
    assert lifecycle.observe(later, a_report(job, done=1, left=12), b.at(61)) is None
    assert lifecycle.observe(later, a_report(job, done=3, left=4), b.at(62)) is None


def test_the_history_tells_the_first_failure_and_the_last_region_but_not_each():
    job = a_running_image(load=64)
    before = len(job.history)
    for done in range(1, 10):
        job = must(lifecycle.observe(job, a_report(job, done=done, left=64 - 4 * done), b.at(done)))
    assert len(job.history) == before
    job = must(lifecycle.observe(job, a_report(job, done=10, failed=1, left=20), b.at(20)))
    job = must(lifecycle.observe(job, a_report(job, done=11, failed=2, left=12), b.at(21)))
    job = must(lifecycle.observe(job, a_report(job, done=14, failed=2, left=0), b.at(22)))
    assert [line.reason for line in job.history[before:]] == [
        "1 of 16 regions failed so far",
        "14 of 16 regions done, 2 failed; the results are being merged",
    ]


def test_w9_the_attempt_after_a_preemption_asks_only_for_the_regions_that_are_left():
    job = a_running_image(load=16)
    job = must(lifecycle.observe(job, a_report(job, done=2, failed=1, left=4), b.at(60)))
    stopping = lifecycle.preempt(job, "other", b.at(70))
    back = must(lifecycle.observe(stopping, a_report(job, status=Status.STOPPED, done=2, failed=1, left=4), b.at(80)))
    assert back.state is JobState.PREEMPTED
    assert back.past == ()
    assert back.attempt.outcome is Outcome.PREEMPTED
    # The failed region is tried again, so it counts as what a region may make at most.
    assert back.demand.alternatives == ({POOL: 8},)
    again = lifecycle.start(back, {POOL: 8}, (), b.at(90))
    assert (again.work.done, again.work.failed) == (2, 0)


def test_a_job_that_has_only_the_merging_left_asks_for_one_request():
    job = a_running_image(load=8)
    job = must(lifecycle.observe(job, a_report(job, done=2, left=0), b.at(60)))
    returned = lifecycle.retry_or_fail(job, FailureClass.SERVICE, b.at(61), "it was lost")
    assert returned.state is JobState.PENDING
    assert returned.demand.alternatives == ({POOL: 1},)


def test_the_end_tells_of_regions_too():
    job = a_running_image(load=8)
    ended = must(lifecycle.observe(job, a_report(job, status=Status.COMPLETED, done=2, left=0), b.at(60)))
    assert ended.state is JobState.COMPLETED
    assert (ended.work.done, ended.work.left) == (2, 0)


def test_w7_a_run_that_goes_on_for_long_stays_running():
    job = a_running_image(load=8)
    later = lifecycle.observe(job, a_report(job, left=8, tiles_done=12), b.at(86_000))
    assert later is None


def test_its_lane_is_by_what_is_left_whatever_its_endpoint_takes():
    job = an_image_job(load=24)
    cut = replace(job, demand=b.a_demand({POOL: 2}))
    assert cut.lane == job.lane == f"default/{POOL}~4"
    assert an_image_job(work=an_image_work(24, left=4)).lane == f"default/{POOL}~2"


def test_regions_are_not_booked_and_the_end_is_not_charged():
    job = a_running_image(load=16)
    half = must(lifecycle.observe(job, a_report(job, done=2, left=8), b.at(60)))
    assert not books(job, half)
    ended = must(lifecycle.observe(half, a_report(job, status=Status.COMPLETED, done=4, left=0), b.at(600)))
    assert books(half, ended)
    found = booked(Records(), half, ended, b.a_metered_policy("default"), {})
    assert found.usage.accounts == {}
    assert found.history.startups == {}
    assert all(kind.startswith(OTHER_KINDS) for kind in found.history.kinds)


def test_image_jobs_teach_nothing_about_training_jobs_and_push_none_of_them_out():
    history = History()
    for number in range(MAX_KINDS + 10):
        ended = b.an_ended_job(f"job{number}", now=b.at(-100), units={f"ml.x{number}.large": 1})
        history = history.after(replace(ended, attempt=replace(ended.attempt, ended_at=b.at(0))))
    before = [kind for kind in history.kinds if not kind.startswith(OTHER_KINDS)]
    for number in range(60):
        job = a_running_image(f"image{number}", endpoint=f"e{number}", now=b.at(-30))
        history = history.after(must(lifecycle.observe(job, a_report(job, status=Status.COMPLETED, done=2), b.at(0))))
    assert [kind for kind in history.kinds if not kind.startswith(OTHER_KINDS)] == before
    assert len(history.kinds) == len(before) + MAX_OTHER_KINDS
    assert history.run_time(an_image_job(endpoint="new"), 0.0, 0.5) <= 43
    assert set(an_image_job().run_time_classes).isdisjoint(b.a_job().run_time_classes)


def test_a_budget_that_is_spent_by_training_jobs_is_not_used_by_image_jobs():
    job = a_running_image(load=400)
    ended = must(lifecycle.observe(job, b.an_observation(job, status=Status.COMPLETED), b.at(86_400)))
    records = booked(Records(), job, ended, b.a_metered_policy("default"), {})
    assert records.usage.faded("default", b.at(86_400), Policy().usage_half_life) == 0
