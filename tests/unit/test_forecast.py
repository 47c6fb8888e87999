"""The estimated start: the planner run forward over the jobs' time limits."""

from __future__ import annotations

import random
from datetime import timedelta

from builders import NOW, P5, a_job, a_pool, a_preempting_job, a_running_job, at, pools_of
from trainmaster.domain import lifecycle
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.expect import STOP_TAKES
from trainmaster.planner.forecast import forecast
from trainmaster.planner.schedule import schedule

HOUR = timedelta(hours=1)


def starts(*, active=(), waiting=(), cap=2, wanted=None):
    snapshot = Snapshot(pass_number=1, pools=pools_of(a_pool(cap=cap)), active=tuple(active), waiting=tuple(waiting))
    names = frozenset(wanted or (job.name for job in waiting))
    return forecast(snapshot, NOW, random.Random(1), schedule, names)


def test_a_job_that_fits_starts_now():
    assert starts(waiting=[a_job("a")]) == {"a": NOW}


def test_a_job_waits_at_most_until_the_running_one_must_end():
    running = a_running_job("r", max_runtime=HOUR)
    assert starts(active=[running], waiting=[a_job("a")], cap=1) == {"a": NOW + HOUR}


def test_jobs_behind_one_another_add_up():
    running = a_running_job("r", max_runtime=HOUR)
    waiting = [a_job("a", max_runtime=2 * HOUR), a_job("b", entry_time=at(1))]
    assert starts(active=[running], waiting=waiting, cap=1) == {"a": NOW + HOUR, "b": NOW + 3 * HOUR}


def test_preempting_takes_as_long_as_a_stop():
    running = a_running_job("r")
    assert starts(active=[running], waiting=[a_job("a", priority=1)], cap=1) == {"a": NOW + STOP_TAKES}


def test_the_preempted_job_resumes_before_those_that_came_later():
    running = a_running_job("r", entry_time=at(-9))
    waiting = [a_job("a", priority=1, max_runtime=HOUR), a_job("b")]
    assert starts(active=[running], waiting=waiting, cap=1, wanted=["b"])["b"] > NOW + HOUR + timedelta(hours=23)


def test_a_job_that_is_stopping_for_good_does_not_come_back():
    stopping = lifecycle.ask_stop(a_running_job("r", entry_time=at(-9)), NOW, "ada")
    assert starts(active=[stopping], waiting=[a_job("a")], cap=1) == {"a": NOW + STOP_TAKES}


def test_a_stop_that_is_overdue_is_expected_any_minute():
    stuck = a_preempting_job("r", beneficiary="a", now=at(-600))
    assert starts(active=[stuck], waiting=[a_job("a", priority=1)], cap=1)["a"] <= NOW + timedelta(minutes=2)


def test_a_job_that_can_never_fit_has_no_start():
    assert starts(waiting=[a_job("a", units={P5: 9})]) == {}


def test_a_deep_queue_is_looked_at_only_so_far():
    waiting = [a_job(f"j{i:04}", entry_time=at(i)) for i in range(3000)]
    assert "j2999" not in starts(waiting=waiting, cap=1, wanted=["j2999"])
