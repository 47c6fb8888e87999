"""Records and charges of an elastic job: each size once, the cost of a resize, run times at the least size."""

from __future__ import annotations

import pytest

import builders as b
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.records import Records, booked
from trainmaster.domain.shares.charging import books, charged_until, ended_by, pause_of


def running(hook=Hook.RESTART, **fields):
    return b.a_running_job(elastic=Elastic(min_instances=1, max_instances=4, hook=hook), **fields)


def grown(job, size=3, seconds=100):
    return resizing.resize(job, size, Cause.GROW, b.at(seconds), until=b.at(9_000))


def told(job, seconds, **fields):
    return lifecycle.observe(job, b.an_observation(job, **fields), b.at(seconds))


def completed(job, seconds):
    return told(job, seconds, status=Status.COMPLETED)


def learned(*changes):
    records = Records()
    for before, after in changes:
        records = booked(records, before, after, Policy(), b.pools_of())
    return records


def restarted(asked, stopped, at_work, size=3, job=None):
    """A resize by a restart, change by change."""
    job = job or running()
    stopping = grown(job, size, asked)
    resumed = lifecycle.mark_launched(told(stopping, stopped, status=Status.STOPPED))
    done = told(resumed, at_work, secondary="Training", started_at=b.at(at_work))
    return [(job, stopping), (stopping, resumed), (resumed, done)]


def test_a_start_a_launch_and_a_note_charge_nothing():
    starting = b.a_starting_job()
    job = b.a_running_job()
    for before, after in ((b.a_job(), starting), (starting, lifecycle.mark_launched(starting))):
        assert not books(before, after)
    assert not books(job, lifecycle.request_stop(job, b.at(5), "ada"))


def test_a_size_is_charged_until_it_changes_and_an_attempt_until_its_end():
    (_, stopping), (_, resumed), _ = changes = restarted(100, 160, 300)
    assert [charged_until(*change) for change in changes] == [b.at(100), b.at(160), b.at(300)]
    assert ended_by(stopping, resumed) == resumed.past[-1]
    done = changes[-1][1]
    assert charged_until(done, completed(done, 900)) == b.at(900)


def test_a_restart_costs_from_the_decision_until_it_works_again():
    assert learned(*restarted(100, 160, 300)).history.pause(running()) == pytest.approx(200)


def test_resize_costs_are_smoothed_by_kind_of_hook():
    history = History().paused(running(), 100).paused(running(), 200)
    assert history.pause(running()) == pytest.approx(120)
    assert history.pause(running(Hook.MEMBERS)) is None
    assert history.pause(b.a_job()) is None
    assert history.paused(b.a_job(), 5) == history
    assert history.after(b.an_ended_job()).pauses == history.pauses


def test_a_growth_that_is_given_up_teaches_nothing_of_what_one_costs():
    (job, stopping), (_, resumed), _ = restarted(100, 160, 300)
    back = told(resumed, 500, status=Status.FAILED, failure_reason="CapacityError: none")
    again = told(lifecycle.mark_launched(back), 600, secondary="Training")
    assert learned((job, stopping), (stopping, resumed), (resumed, back), (back, again)).history.pauses == {}


def test_members_on_their_way_cost_nothing_and_those_that_leave_cost_the_time_that_it_takes():
    growing = grown(running(Hook.MEMBERS), 2)
    (member,) = growing.attempt.members
    bigger = resizing.mark_member_started(growing, member.training_job_name, b.at(500), b.at(500))
    assert pause_of(growing, bigger) is None
    shrinking = resizing.resize(bigger, 1, Cause.SHRINK, b.at(1_000), until=b.at(2_000))
    left = resizing.mark_member_left(shrinking, member.training_job_name, b.at(1_007))
    ended = resizing.remove_member(left, member.training_job_name, b.at(1_100), "has ended", lost=False)
    assert pause_of(left, ended).total_seconds() == 7


def test_a_custom_resize_costs_until_the_answer():
    asked = grown(running(Hook.CUSTOM))
    assert pause_of(asked, resizing.complete_resize(asked, b.at(130), 3)).total_seconds() == 30


def test_a_job_that_was_resized_teaches_how_long_it_would_have_run_at_its_least_size():
    job = running(Hook.CUSTOM, container_image="image")
    bigger = resizing.complete_resize(grown(job, 4, 600), b.at(600), 4)
    ended = completed(bigger, 1_200)
    history = learned((job, bigger), (bigger, ended)).history
    assert history.run_time(job, 0.0, 0.5) == pytest.approx(600 + 4 * 600, rel=0.25)


def test_the_start_of_an_attempt_that_was_resized_is_learned_as_any():
    job = lifecycle.mark_launched(
        lifecycle.start(b.a_job(elastic=Elastic(min_instances=1, max_instances=4)), {b.P5: 1}, (), b.NOW)
    )
    job = told(job, 240, secondary="Training", started_at=b.at(240))
    (_, stopping), (_, resumed), _ = restarted(300, 360, 500, job=job)
    assert learned((job, stopping)).history.startup(job) == 0
    assert learned((job, stopping), (stopping, resumed)).history.startup(job) == pytest.approx(240)
