"""Holds by people, times and parents: the conditions of their release, and what is handed down."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, a_cancelled_job, a_job, a_preempted_job, a_running_job, an_ended_job, at
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, WAITING, Job, JobState, ParentRule
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.reasons.rules import Held, NotBefore, WaitsForJobs

ENDS = {
    JobState.COMPLETED: an_ended_job("parent"),
    JobState.FAILED: an_ended_job("parent", status=Status.FAILED),
    JobState.STOPPED: an_ended_job("parent", status=Status.STOPPED),
    JobState.CANCELLED: a_cancelled_job("parent"),
}


def waiting_for(*parents: str, **fields) -> Job:
    return lifecycle.hold_if_needed(a_job(after=parents, **fields), NOW)


class TestPuttingOff:
    def test_a_job_that_nothing_holds_is_left_alone(self):
        job = a_job(not_before=at(-1))
        assert lifecycle.hold_if_needed(job, NOW) is job

    @pytest.mark.parametrize("fields", [{"not_before": at(1)}, {"after": ("parent",)}])
    def test_a_job_is_stored_as_held(self, fields):
        job = lifecycle.hold_if_needed(a_job(**fields), NOW)
        assert (job.state, job.version, [line.after for line in job.history]) == (JobState.HELD, 1, [JobState.HELD])


class TestLettingGo:
    def test_only_when_the_time_has_come(self):
        job = lifecycle.hold_if_needed(a_job(not_before=at(60)), NOW)
        assert lifecycle.enqueue_if_due(job, at(59)) is None
        entered = lifecycle.enqueue_if_due(job, at(75))
        assert (entered.state, entered.entry_time, entered.version) == (JobState.PENDING, at(60), 2)
        assert lifecycle.enqueue_if_due(entered, at(90)) is None

    def test_never_what_a_person_holds_or_what_has_parents(self):
        held = lifecycle.hold(lifecycle.hold_if_needed(a_job(not_before=at(60)), NOW), NOW, "ada")
        assert lifecycle.enqueue_if_due(held, at(99)) is None
        assert lifecycle.enqueue_if_due(waiting_for("parent", not_before=at(60)), at(99)) is None

    def test_a_job_that_has_run_keeps_its_entry_time(self):
        job = lifecycle.hold(a_preempted_job(not_before=at(-50), entry_time=at(-99)), NOW, "ada")
        released = lifecycle.release(job, at(10), "ada")
        assert (released.state, released.entry_time) == (JobState.PREEMPTED, at(-99))


class TestParents:
    @pytest.mark.parametrize("rule", list(ParentRule))
    @pytest.mark.parametrize("end", list(ENDS))
    def test_every_end_under_every_rule(self, rule, end):
        after = lifecycle.apply_parent_end(waiting_for("parent", if_parent_fails=rule), ENDS[end], at(30))
        if end is JobState.COMPLETED or rule is ParentRule.RUN:
            assert (after.state, after.after, after.entry_time) == (JobState.PENDING, (), at(30))
        else:
            assert after.state is (JobState.FAILED if rule is ParentRule.FAIL else JobState.CANCELLED)
            assert after.failure.startswith("runs after parent, which ")
            assert (after.ended_at, after.entry_time) == (at(30), NOW)

    @pytest.mark.parametrize("state", ["waiting", "running"])
    def test_a_parent_that_has_not_ended_changes_nothing(self, state):
        parent = a_job("parent") if state == "waiting" else a_running_job("parent")
        assert lifecycle.apply_parent_end(waiting_for("parent"), parent, NOW) is None

    def test_a_parent_that_is_none_changes_nothing(self):
        assert lifecycle.apply_parent_end(waiting_for("other"), ENDS[JobState.FAILED], NOW) is None

    def test_told_twice_is_told_once(self):
        once = lifecycle.apply_parent_end(waiting_for("parent", "other"), ENDS[JobState.COMPLETED], NOW)
        assert once.after == ("other",)
        assert lifecycle.apply_parent_end(once, ENDS[JobState.COMPLETED], NOW) is None

    def test_a_person_s_hold_stays_when_the_last_one_completes(self):
        held = lifecycle.hold(waiting_for("parent"), NOW, "ada")
        freed = lifecycle.apply_parent_end(held, ENDS[JobState.COMPLETED], at(30))
        assert (freed.state, freed.after, freed.held_by) == (JobState.HELD, (), "ada")
        assert lifecycle.release(freed, at(60), "ada").entry_time == at(30)

    @given(st.permutations(range(4)), st.lists(st.sampled_from(list(ENDS)), min_size=4, max_size=4), st.data())
    def test_the_order_of_the_ends_does_not_matter(self, order, ends, data):
        rule = data.draw(st.sampled_from(list(ParentRule)))
        names = tuple(f"p{number}" for number in range(4))
        parents = [replace(ENDS[end], name=name) for name, end in zip(names, ends, strict=True)]
        job = waiting_for(*names, if_parent_fails=rule)
        for number in order:
            job = lifecycle.apply_parent_end(job, parents[number], NOW) or job
        bad = rule is not ParentRule.RUN and set(ends) != {JobState.COMPLETED}
        assert (job.state in ENDED, job.state in WAITING) == (bad, not bad)


class TestPeople:
    def test_a_hold_on_top_and_its_release(self):
        job = lifecycle.hold(waiting_for("parent"), NOW, "ada")
        assert (job.state, job.held_by) == (JobState.HELD, "ada")
        with pytest.raises(IllegalTransition):
            lifecycle.hold(job, NOW, "bob")
        released = lifecycle.release(job, NOW, "ada")
        assert (released.state, released.held_by, released.after) == (JobState.HELD, None, ("parent",))

    def test_a_job_without_a_hold_cannot_be_released(self):
        with pytest.raises(IllegalTransition, match="Job job1 has no hold to release: it waits for job parent to end"):
            lifecycle.release(waiting_for("parent"), NOW, "ada")
        with pytest.raises(IllegalTransition, match="it starts no earlier than"):
            lifecycle.release(lifecycle.hold_if_needed(a_job(not_before=at(60)), NOW), NOW, "ada")

    def test_a_time_that_has_come_since_lets_a_person_release(self):
        job = lifecycle.hold_if_needed(a_job(not_before=at(60)), NOW)
        assert lifecycle.release(job, at(61), "ada").state is JobState.PENDING

    def test_every_change_is_told(self):
        job = lifecycle.hold(waiting_for("parent"), at(1), "ada")
        job = lifecycle.release(job, at(2), "ada")
        job = lifecycle.apply_parent_end(job, ENDS[JobState.COMPLETED], at(3))
        assert [line.reason for line in job.history[1:]] == [
            "held by ada",
            "released by ada",
            "parent, which it runs after, completed",
        ]
        assert job.version == 4


@pytest.mark.parametrize(
    ("job", "reason", "words"),
    [
        (a_job(), None, None),
        (waiting_for("a", "b", not_before=at(60)), WaitsForJobs(("a", "b")), "waits for jobs a, b to end"),
        (
            lifecycle.hold_if_needed(a_job(not_before=at(60)), NOW),
            NotBefore(at(60)),
            "starts no earlier than 2026-11-21T12:01:00Z, as requested",
        ),
        (lifecycle.hold(waiting_for("a"), NOW, "ada"), Held("ada"), "held by ada until it is released"),
    ],
)
def test_why_a_job_is_held(job, reason, words):
    assert lifecycle.held_reason(job) == reason
    assert (None if reason is None else reason.message()) == words
