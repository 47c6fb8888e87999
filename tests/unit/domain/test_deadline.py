"""Deadlines: the latest start, who goes before its equals and for how long, and what is said of it."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, P5, a_job, a_preempting_job, a_running_job, an_ended_job, an_observation, at
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.deadline import Prospect, can_be_met, latest_start, outlook, urgency, urgent_from
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import History

HOUR = 3600
NOTHING = History()


def due(hours: float, *, limit: float = 1, build: Any = a_job, **fields: Any) -> Job:
    """A job to be done so many hours after its entry, with so many hours as its time limit."""
    return build(deadline=at(hours * HOUR), max_runtime=timedelta(hours=limit), **fields)


def knowing(*hours: float, **fields: Any) -> History:
    """Return the history after jobs have run so many hours each."""
    history = NOTHING
    for number, each in enumerate(hours):
        job = a_running_job(f"past{number}", **fields)
        ended = lifecycle.observe(job, an_observation(job, status=Status.COMPLETED), at(each * HOUR))
        history = history.after(ended)
    return history


def resumed(hours: float, **fields: Any) -> Job:
    """A job that waits again after having worked so long."""
    job = due(20, limit=4, build=a_preempting_job, **fields)
    return lifecycle.observe(job, an_observation(job, status=Status.STOPPED), at(hours * HOUR))


class TestLatestStart:
    def test_a_job_without_a_deadline_has_none(self):
        job = a_job()
        assert (latest_start(job, NOTHING), urgent_from(job, NOTHING), outlook(job, NOTHING, NOW)) == (None, None, None)
        assert urgency(job, NOTHING, NOW) is None
        assert can_be_met(job, NOTHING, at(1e9))

    def test_without_any_past_the_whole_limit_is_reckoned_with(self):
        assert latest_start(due(10), NOTHING) == at(9 * HOUR)

    def test_with_a_past_nine_of_ten_of_its_like(self):
        history = knowing(*[0.1] * 30)
        assert at(9.8 * HOUR) < latest_start(due(10), history) < at(9.95 * HOUR)

    def test_a_past_of_longer_jobs_goes_no_further_than_the_limit(self):
        assert latest_start(due(10), knowing(*[5] * 30)) == at(9 * HOUR)

    def test_starting_takes_its_time(self):
        assert latest_start(due(10), History(startups={P5: 600.0})) == at(9 * HOUR - 600)

    def test_saved_work_counts_and_lost_work_does_not(self):
        assert latest_start(resumed(3, checkpointed=True), NOTHING) == at(19 * HOUR)
        assert latest_start(resumed(3), NOTHING) == at(16 * HOUR)

    def test_a_job_that_has_worked_longer_than_its_limit_may_do_so_again(self):
        assert latest_start(resumed(5, checkpointed=True), NOTHING) == at(16 * HOUR)


class TestUrgency:
    def test_only_in_the_last_quarter_before_the_latest_start(self):
        job = due(9)
        assert urgent_from(job, NOTHING) == at(6 * HOUR)
        assert urgency(job, NOTHING, at(6 * HOUR - 1)) is None
        assert urgency(job, NOTHING, at(6 * HOUR)) == at(8 * HOUR)

    def test_a_deadline_with_less_wait_than_run_time_changes_no_order(self):
        assert urgent_from(due(2), NOTHING) is not None
        short = due(1.99)
        assert urgent_from(short, NOTHING) is None
        assert urgency(short, NOTHING, at(0.9 * HOUR)) is None

    def test_the_time_to_wait_counts_from_the_entry_into_the_queue(self):
        """A job announced early, to be run late, has not waited with its equals."""
        held = lifecycle.hold_if_needed(due(10, not_before=at(9 * HOUR)), NOW)
        entered = lifecycle.enqueue_if_due(held, at(9 * HOUR))
        assert urgent_from(entered, NOTHING) is None

    def test_a_lost_deadline_changes_no_order(self):
        job, history = due(9), knowing(*[0.9] * 30)
        assert urgency(job, history, at(8.05 * HOUR)) is not None
        assert urgency(job, history, at(8.5 * HOUR)) is None

    def test_without_a_past_it_is_lost_when_it_has_passed(self):
        job = due(9)
        assert can_be_met(job, NOTHING, at(9 * HOUR))
        assert not can_be_met(job, NOTHING, at(9 * HOUR + 1))

    @given(
        st.floats(0.01, 400),
        st.floats(0.01, 100),
        st.floats(0, 500),
        st.lists(st.floats(0.01, 50), max_size=8),
    )
    def test_a_job_passes_its_equals_only_after_three_quarters_of_its_limit(self, hours, limit, now, past):
        job, history = due(hours, limit=limit), knowing(*past)
        if urgency(job, history, at(now * HOUR)) is not None:
            assert now >= 0.75 * limit - 1e-6
            assert now <= hours

    @given(st.lists(st.floats(0.01, 50), max_size=8), st.floats(0.01, 100), st.floats(0, 100))
    def test_urgency_comes_once_and_goes_once(self, past, hours, limit):
        job, history = due(hours, limit=limit), knowing(*past)
        told = [urgency(job, history, at(hours * HOUR * part / 40)) is not None for part in range(50)]
        assert sum(1 for before, after in pairwise(told) if before != after) <= 2


class TestOutlook:
    @pytest.mark.parametrize(
        ("hours", "prospect", "said"),
        [
            (0, Prospect.IN_TIME, "it goes ahead of jobs of equal priority from 2026-11-21T18:0"),
            (7, Prospect.URGENT, "; it goes ahead of jobs of equal priority"),
            (8.11, Prospect.LATE, "only if it is faster than most similar jobs"),
            (8.5, Prospect.LOST, "can no longer be done by 2026-11-21T21:00:00Z"),
        ],
    )
    def test_a_waiting_job(self, hours, prospect, said):
        found = outlook(due(9), knowing(*[0.9] * 30), at(hours * HOUR))
        assert found.prospect is prospect
        assert said in found.message()

    def test_a_deadline_without_effect_says_so(self):
        found = outlook(due(1.5), NOTHING, NOW)
        assert (found.prospect, found.urgent_from) == (Prospect.IN_TIME, None)
        assert "it left less time to wait than it may run" in found.message()

    @pytest.mark.parametrize(("hours", "prospect"), [(1, Prospect.IN_TIME), (7, Prospect.LATE), (9.1, Prospect.LOST)])
    def test_a_running_job(self, hours, prospect):
        job = due(9, limit=4, build=a_running_job, now=at(6 * HOUR))
        if prospect is Prospect.IN_TIME:
            job = due(9, limit=4, build=a_running_job)
        assert outlook(job, NOTHING, at(hours * HOUR)).prospect is prospect

    def test_an_ended_job_has_none(self):
        assert outlook(due(9, build=an_ended_job), NOTHING, NOW) is None
