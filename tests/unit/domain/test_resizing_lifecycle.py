"""Steps of a resize in each of the three ways, and its outcome if something comes between."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.capacity.warm_pools import left_by
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.observation import Status, Warm
from trainmaster.domain.policy.settings import FailureClass

UNTIL = b.at(1_000)


def running(hook=Hook.RESTART, size=1, sizes=(1, 2, 3, 4), **fields):
    """An elastic job at work with this size, all of its members too."""
    elastic = Elastic(min_instances=sizes[0], max_instances=sizes[-1], values=sizes, hook=hook)
    job = b.a_job(elastic=elastic, demand=Demand(({b.P5: sizes[0]},)), **fields)
    job = lifecycle.mark_launched(lifecycle.start(job, {b.P5: size}, (), b.NOW))
    job = told(job, Status.IN_PROGRESS, 0, secondary="Training", started_at=b.NOW)
    for member in job.attempt.members:
        job = at_work(job, member.training_job_name, 0)
    return job


def resize(job, size, cause=None, seconds=100, **fields):
    cause = cause or (Cause.GROW if size > job.attempt.size else Cause.SHRINK)
    return resizing.resize(job, size, cause, b.at(seconds), until=fields.pop("until", UNTIL), **fields)


def told(job, status, seconds, **fields):
    """The job after a report about its own training job, which has to change something."""
    after = lifecycle.observe(job, b.an_observation(job, status=status, **fields), b.at(seconds))
    assert after is not None
    return after


def member_told(job, name, status, seconds, **fields):
    seen = b.an_observation(status=status, training_job_name=name, **fields)
    return lifecycle.observe(job, seen, b.at(seconds))


def at_work(job, name, seconds):
    after = member_told(job, name, Status.IN_PROGRESS, seconds, secondary="Training", started_at=b.at(seconds))
    assert after is not None
    return after


def names(job):
    return [member.training_job_name for member in job.attempt.members]


def test_an_attempt_whose_name_is_taken_leaves_its_members_to_the_next_one():
    elastic = Elastic(min_instances=1, max_instances=4, values=(1, 2, 3, 4), hook=Hook.MEMBERS)
    started = lifecycle.start(b.a_job(elastic=elastic, demand=Demand(({b.P5: 1},))), {b.P5: 3}, (), b.NOW)
    again = lifecycle.take_next_number(started, b.at(5), "another's")
    assert (again.units, again.attempt.joined) == (started.units, 2)
    assert names(again) == [f"{again.name}-qstamp-2-m1", f"{again.name}-qstamp-2-m2"]
    assert {member.created_at for member in again.attempt.members} == {b.at(5)}
    assert again.past[0].members == ()


@pytest.mark.parametrize("size", [1, 4])
def test_a_resize_goes_on_with_the_attempt_after_one_whose_name_is_taken(size):
    job = resize(running(size=2), size)
    job = told(lifecycle.mark_stop_sent(job), Status.STOPPED, 200)
    again = lifecycle.take_next_number(job, b.at(210), "another's")
    assert (again.state, again.units, again.attempt.number) == (JobState.RESIZING, {b.P5: size}, 3)
    done = told(lifecycle.mark_launched(again), Status.IN_PROGRESS, 300, secondary="Training", started_at=b.at(300))
    assert (done.state, done.units) == (JobState.RUNNING, {b.P5: size})


def lines(job):
    return [line.reason for line in job.history]


class TestAnyResize:
    @pytest.mark.parametrize("hook", Hook)
    @pytest.mark.parametrize("size", [0, 2, 6])
    def test_a_size_that_the_job_may_not_have_is_refused(self, hook, size):
        with pytest.raises(IllegalTransition):
            resize(running(hook, sizes=(1, 3, 5)), size)

    @pytest.mark.parametrize("hook", Hook)
    def test_the_size_that_it_has_is_none_to_go_to(self, hook):
        with pytest.raises(IllegalTransition):
            resize(running(hook), 1)

    @pytest.mark.parametrize("hook", Hook)
    def test_a_job_that_stops_is_not_resized(self, hook):
        with pytest.raises(IllegalTransition):
            resize(lifecycle.request_stop(running(hook), b.at(5), "ada"), 3)

    def test_a_job_whose_own_training_job_has_ended_is_not_resized(self):
        ended = told(running(Hook.MEMBERS, 2), Status.COMPLETED, 50)
        with pytest.raises(IllegalTransition):
            resize(ended, 3)

    def test_a_job_that_is_not_elastic_is_not_resized(self):
        with pytest.raises(IllegalTransition):
            resize(b.a_running_job(), 2)

    def test_nothing_is_resized_twice_at_once(self):
        with pytest.raises(IllegalTransition):
            resize(resize(running(), 3), 2)

    def test_there_is_nothing_to_give_up_where_nothing_is_under_way(self):
        with pytest.raises(IllegalTransition):
            resizing.abandon_resize(running(), b.at(5), "no room")

    @pytest.mark.parametrize(
        ("cause", "words"),
        [
            (Cause.GROW, "resizes, 1 -> 3 instances: capacity is idle"),
            (Cause.REPLACE, "resizes, 1 -> 3 instances: replaces a lost member"),
            (Cause.SHRINK, "resizes, 1 -> 3 instances: frees capacity for job9"),
            (Cause.SLOWER, "resizes, 1 -> 3 instances: it runs faster with fewer"),
        ],
    )
    def test_the_history_says_why(self, cause, words):
        freed_for = "job9" if cause is Cause.SHRINK else None
        line = resize(running(), 3, cause, freed_for=freed_for).history[-1]
        assert (line.before, line.after, line.reason) == (JobState.RUNNING, JobState.RESIZING, words)

    @pytest.mark.parametrize("hook", Hook)
    def test_growth_counts_at_once_and_a_shrink_only_when_done(self, hook):
        job = running(hook, 3)
        assert resize(job, 4).units == {b.P5: 4}
        shrunk = resize(job, 1, freed_for="job9")
        assert shrunk.units == {b.P5: 3}
        assert shrunk.freeing == {b.P5: 2}
        assert not shrunk.stopping


class TestRestart:
    def test_a_growth_stops_the_job_and_goes_on_with_more(self):
        stopping = resize(running(), 3)
        assert stopping.stop_asked
        assert not stopping.stopping
        resumed = told(lifecycle.mark_stop_sent(stopping), Status.STOPPED, 160)
        fresh, ended = resumed.attempt, resumed.past[-1]
        assert (fresh.number, fresh.units, fresh.launched, fresh.stop_asked_at) == (2, {b.P5: 3}, False, None)
        assert fresh.training_job_name == "job1-qstamp-2"
        assert (ended.outcome, ended.units, ended.resizing) == (Outcome.RESIZED, {b.P5: 1}, None)
        assert resumed.state is JobState.RESIZING
        done = told(lifecycle.mark_launched(resumed), Status.IN_PROGRESS, 300, secondary="Training")
        assert (done.state, done.attempt.resizing, done.attempt.resizes) == (JobState.RUNNING, None, 1)
        assert done.attempt.sized_at == b.at(300)
        assert lines(done)[-2:] == ["continues with 3 instances", "runs with 3 instances"]

    def test_a_shrink_gives_its_instances_back_once_the_job_has_stopped(self):
        resumed = told(resize(running(size=3), 1, freed_for="job9"), Status.STOPPED, 160)
        assert resumed.units == {b.P5: 1}
        assert resumed.past[-1].units == {b.P5: 3}

    @pytest.mark.parametrize(
        ("status", "state"),
        [(Status.COMPLETED, JobState.COMPLETED), (Status.FAILED, JobState.FAILED)],
    )
    def test_a_job_that_ends_by_itself_while_it_is_stopped_has_ended(self, status, state):
        ended = told(resize(running(), 3), status, 150)
        assert ended.state is state
        assert (ended.attempt.units, ended.attempt.resizing) == ({b.P5: 1}, None)

    @pytest.mark.parametrize("launched", [True, False])
    def test_without_capacity_for_more_it_goes_back_to_the_size_before(self, launched):
        resumed = told(resize(running(), 3), Status.STOPPED, 160)
        if launched:
            resumed = lifecycle.mark_launched(resumed)
        back = told(resumed, Status.FAILED, 900, failure_reason="CapacityError: no instances")
        assert (back.state, back.units, back.attempt.number) == (JobState.RESIZING, {b.P5: 1}, 3)
        assert (back.past[-1].units, back.past[-1].reason) == ({b.P5: 3}, "goes back, 3 -> 1 instances")
        assert back.capacity_failures == 1
        done = told(lifecycle.mark_launched(back), Status.IN_PROGRESS, 1_000, secondary="Training")
        assert (done.state, done.attempt.resizes) == (JobState.RUNNING, 0)
        assert done.capacity_failures == 1, "decisions on growth must see that it failed"

    @pytest.mark.parametrize("secondary", ["", "MaxWaitTimeExceeded"])
    def test_capacity_that_never_came_in_the_time_that_its_request_allows_is_none(self, secondary):
        limit = timedelta(seconds=500)
        resumed = lifecycle.mark_launched(told(resize(running(max_pending=limit), 3), Status.STOPPED, 160))
        back = told(resumed, Status.STOPPED, 700, secondary=secondary)
        assert (back.state, back.units) == (JobState.RESIZING, {b.P5: 1})

    def test_a_refused_growth_goes_back_under_the_same_name(self):
        resumed = told(resize(running(), 3), Status.STOPPED, 160)
        back = resizing.abandon_resize(resumed, b.at(170), "no room")
        assert (back.units, back.attempt.number, back.stop_asked) == ({b.P5: 1}, 2, False)

    def test_a_growth_that_does_not_come_is_stopped_and_goes_back(self):
        resumed = lifecycle.mark_launched(told(resize(running(), 3), Status.STOPPED, 160))
        back = resizing.abandon_resize(resumed, b.at(1_000), "it has not come in time")
        assert back.stop_asked
        assert back.units == {b.P5: 3}, "SageMaker may still hold them"
        smaller = told(back, Status.STOPPED, 1_030)
        assert (smaller.units, smaller.attempt.number) == ({b.P5: 1}, 3)

    def test_a_growth_that_comes_after_it_was_given_up_still_goes_back(self):
        resumed = lifecycle.mark_launched(told(resize(running(), 3), Status.STOPPED, 160))
        back = resizing.abandon_resize(resumed, b.at(1_000), "it has not come in time")
        late = told(back, Status.IN_PROGRESS, 1_010, secondary="Training")
        assert late.state is JobState.RESIZING
        assert told(late, Status.STOPPED, 1_040).units == {b.P5: 1}

    def test_the_smaller_size_without_capacity_waits_for_it_like_any_job(self):
        resumed = lifecycle.mark_launched(told(resize(running(size=3), 1), Status.STOPPED, 160))
        waiting = told(resumed, Status.FAILED, 200, failure_reason="CapacityError: no instances")
        assert (waiting.state, waiting.attempt.resizing) == (JobState.PREEMPTED, None)

    def test_a_job_preempted_during_a_resize_releases_all_and_resumes_later(self):
        stopping = lifecycle.mark_stop_sent(resize(running(), 3))
        preempting = lifecycle.preempt(stopping, "job9", b.at(150))
        assert preempting.units == {b.P5: 1}, "the next one will never be asked for"
        assert preempting.stopping
        # SageMaker began to stop it long before it was preempted: that was the queue too.
        waiting = told(preempting, Status.STOPPED, 160, stopping_since=b.at(100))
        assert (waiting.state, waiting.attempt.outcome) == (JobState.PREEMPTED, Outcome.PREEMPTED)

    def test_a_stop_by_its_user_in_the_middle_ends_it(self):
        stopping = lifecycle.request_stop(resize(running(), 3), b.at(120), "ada")
        assert stopping.stopping
        assert stopping.freeing == {b.P5: 1}
        assert told(stopping, Status.STOPPED, 160).state is JobState.STOPPED

    def test_a_stop_in_the_console_before_ours_ends_it(self):
        stopping = resize(running(), 3)
        assert told(stopping, Status.STOPPED, 160, stopping_since=b.at(30)).state is JobState.STOPPED

    def test_a_stop_in_the_console_of_the_larger_one_ends_it(self):
        resumed = lifecycle.mark_launched(told(resize(running(), 3), Status.STOPPED, 160))
        stopping = told(resumed, Status.STOPPING, 200)
        assert told(stopping, Status.STOPPED, 230).state is JobState.STOPPED

    def test_reports_of_the_attempt_before_change_nothing(self):
        stopping = resize(running(), 3)
        late = b.an_observation(stopping, status=Status.COMPLETED)
        resumed = told(stopping, Status.STOPPED, 160)
        assert lifecycle.observe(resumed, late, b.at(200)) is None

    def test_the_warm_pool_of_the_size_before_is_ended_since_no_other_size_can_use_it(self):
        stopping = resize(running(size=3, keep_alive=True), 1)
        resumed = told(stopping, Status.STOPPED, 160, warm=Warm.AVAILABLE, warm_until=b.at(3_600))
        assert resumed.attempt.warm_until is None
        pool = left_by(stopping, resumed)
        assert (pool.training_job_name, pool.units, pool.ending_since) == ("job1", {b.P5: 3}, b.at(160))

    def test_the_warm_pool_of_a_job_that_was_to_grow_has_its_own_instances_alone(self):
        stopping = resize(running(keep_alive=True), 3)
        ended = told(stopping, Status.COMPLETED, 160, warm=Warm.AVAILABLE)
        assert left_by(stopping, ended).units == {b.P5: 1}


class TestMembers:
    def test_a_start_with_more_than_the_least_has_members_that_are_named(self):
        job = running(Hook.MEMBERS, 3)
        assert names(job) == ["job1-qstamp-1-m1", "job1-qstamp-1-m2"]
        assert job.units == {b.P5: 3}

    def test_a_growth_is_done_when_all_members_work_in_whatever_order_they_come(self):
        growing = resize(running(Hook.MEMBERS), 3)
        first, second = names(growing)
        half = at_work(resizing.mark_member_launched(growing, first), second, 200)
        assert half.state is JobState.RESIZING
        done = at_work(half, first, 300)
        assert (done.state, done.units, done.attempt.resizes) == (JobState.RUNNING, {b.P5: 3}, 1)

    def test_reports_that_come_twice_or_late_change_nothing(self):
        job = running(Hook.MEMBERS, 2)
        (name,) = names(job)
        for secondary in ("Training", "Starting"):
            assert member_told(job, name, Status.IN_PROGRESS, 50, secondary=secondary) is None
        gone = member_told(job, name, Status.FAILED, 60)
        assert member_told(gone, name, Status.FAILED, 61) is None
        assert member_told(gone, name, Status.IN_PROGRESS, 62, secondary="Training") is None

    def test_a_shrink_asks_the_newest_to_leave_and_frees_each_as_it_ends(self):
        shrinking = resize(running(Hook.MEMBERS, 4), 2)
        first, second, third = names(shrinking)
        assert [m.drain_asked_at for m in shrinking.attempt.members] == [None, b.at(100), b.at(100)]
        left = resizing.mark_member_stop_sent(resizing.mark_member_left(shrinking, third, b.at(110)), third)
        assert left.units == {b.P5: 4}
        less = member_told(left, third, Status.STOPPED, 120)
        assert (less.units, less.state, names(less)) == ({b.P5: 3}, JobState.RESIZING, [first, second])
        done = member_told(less, second, Status.COMPLETED, 130)
        assert (done.units, done.state, done.attempt.faulty_since) == ({b.P5: 2}, JobState.RUNNING, None)

    def test_those_that_do_not_work_yet_leave_first(self):
        elastic = Elastic(min_instances=1, max_instances=4, hook=Hook.MEMBERS)
        job = lifecycle.mark_launched(lifecycle.start(b.a_job(elastic=elastic), {b.P5: 4}, (), b.NOW))
        job = told(job, Status.IN_PROGRESS, 5, secondary="Training")
        job = at_work(at_work(job, names(job)[2], 6), names(job)[1], 7)
        shrinking = resize(job, 2)
        assert [m.leaving for m in shrinking.attempt.members] == [True, False, True]

    def test_a_growth_that_is_given_up_keeps_the_members_that_have_come(self):
        growing = resize(running(Hook.MEMBERS), 4)
        first, second, third = names(growing)
        back = resizing.abandon_resize(at_work(growing, second, 200), b.at(1_000), "no room")
        assert [m.leaving for m in back.attempt.members] == [True, False, True]
        assert back.capacity_failures == 1
        for name in (first, third):
            back = resizing.remove_member(back, name, b.at(1_010), "is not needed", lost=False)
        assert (back.state, back.units, back.attempt.resizes) == (JobState.RUNNING, {b.P5: 2}, 0)

    def test_members_beyond_a_legal_size_leave_with_time_to_do_so(self):
        growing = resize(running(Hook.MEMBERS, sizes=(1, 3, 5)), 5)
        first, second, third, fourth = names(growing)
        for name in (first, second, fourth):
            growing = at_work(growing, name, 200)
        back = resizing.abandon_resize(growing, b.at(1_000), "no room")
        assert (back.attempt.resizing.after, back.freeing) == (3, {b.P5: 2})
        assert back.attempt.resizing.until == b.at(1_600)
        leaving = {m.training_job_name: (m.drain_asked_at, m.left_at) for m in back.attempt.members if m.leaving}
        assert leaving == {third: (None, b.at(1_000)), fourth: (b.at(1_000), None)}

    def test_a_growth_of_which_a_part_never_comes_ends_at_a_legal_size(self):
        growing = resize(running(Hook.MEMBERS, sizes=(1, 3)), 3)
        first, second = names(growing)
        half = member_told(growing, first, Status.FAILED, 200, failure_reason="CapacityError: none")
        assert (half.units, half.attempt.faulty_since) == ({b.P5: 2}, None)
        half = at_work(half, second, 210)
        assert (half.state, half.attempt.resizing.after) == (JobState.RESIZING, 1)
        assert half.attempt.members[0].drain_asked_at == b.at(210)
        done = member_told(half, second, Status.STOPPED, 300)
        assert (done.state, done.units) == (JobState.RUNNING, {b.P5: 1})

    @pytest.mark.parametrize(("sizes", "size"), [((1, 2, 3, 4), 2), ((1, 2, 3, 4), 3), ((1, 3), 3)])
    def test_a_growth_for_which_sagemaker_had_no_instances_in_the_end_is_one_that_failed(self, sizes, size):
        job = resize(running(Hook.MEMBERS, sizes=sizes), size)
        came = names(job)[1:] if sizes == (1, 3) else []
        for name in came:
            job = at_work(job, name, 150)
        for name in names(job):
            if name not in came:
                job = member_told(job, name, Status.FAILED, 200, failure_reason="CapacityError: none")
        for name in came:
            job = member_told(job, name, Status.STOPPED, 300)
        assert (job.state, job.units, job.attempt.resizes) == (JobState.RUNNING, {b.P5: 1}, 0)
        assert job.capacity_failures == 1, "decisions on growth must see that it failed"

    def test_a_replacement_that_never_came_is_for_the_wait_of_the_loss(self):
        job = running(Hook.MEMBERS, 2)
        faulty = member_told(job, names(job)[0], Status.FAILED, 50, failure_reason="InternalServerError")
        replacing = resize(faulty, 2, Cause.REPLACE)
        still = member_told(replacing, names(replacing)[-1], Status.FAILED, 200, failure_reason="CapacityError: none")
        assert (still.state, still.units, still.capacity_failures) == (JobState.RUNNING, {b.P5: 1}, 0)
        assert (still.attempt.faulty_since, still.attempt.wanted) == (b.at(50), 2)

    def test_a_lost_member_makes_the_job_faulty_until_it_is_replaced(self):
        job = running(Hook.MEMBERS, 3)
        faulty = member_told(job, names(job)[0], Status.FAILED, 50, failure_reason="InternalServerError")
        assert (faulty.units, faulty.attempt.faulty_since, faulty.attempt.wanted) == ({b.P5: 2}, b.at(50), 3)
        assert lines(faulty)[-1] == "member job1-qstamp-1-m1 has ended: InternalServerError"
        replacing = resize(faulty, 3, Cause.REPLACE)
        assert replacing.attempt.faulty_since == b.at(50)
        assert names(replacing)[-1] == "job1-qstamp-1-m3", "names are never used again"
        whole = at_work(replacing, names(replacing)[-1], 300)
        assert (whole.state, whole.attempt.faulty_since, whole.attempt.wanted) == (JobState.RUNNING, None, 0)

    def test_a_second_loss_remembers_the_first(self):
        job = running(Hook.MEMBERS, 4)
        first, second, _ = names(job)
        job = member_told(job, first, Status.FAILED, 50)
        job = member_told(job, second, Status.STOPPED, 60)
        assert (job.units, job.attempt.faulty_since, job.attempt.wanted) == ({b.P5: 2}, b.at(50), 4)

    def test_a_replacement_that_does_not_come_leaves_the_job_faulty(self):
        job = running(Hook.MEMBERS, 3)
        replacing = resize(member_told(job, names(job)[0], Status.FAILED, 50), 3, Cause.REPLACE)
        still = member_told(replacing, names(replacing)[-1], Status.FAILED, 200)
        assert (still.state, still.units, still.attempt.faulty_since) == (JobState.RUNNING, {b.P5: 2}, b.at(50))
        making_do = resizing.accept_smaller_size(still, b.at(210))
        assert (making_do.attempt.faulty_since, making_do.attempt.wanted) == (None, 0)
        assert lines(making_do)[-1] == "continues with 2 of 3 instances"

    def test_going_down_after_a_loss_settles_it(self):
        job = running(Hook.MEMBERS, 3, sizes=(1, 3))
        repairing = resize(member_told(job, names(job)[0], Status.FAILED, 50), 1, Cause.REPAIR)
        assert (repairing.attempt.faulty_since, repairing.attempt.wanted) == (None, 0)

    def test_a_loss_during_a_growth_counts_what_it_was_to_have(self):
        growing = resize(running(Hook.MEMBERS, 2), 3)
        old, new = names(growing)
        faulty = at_work(member_told(growing, old, Status.FAILED, 150), new, 200)
        assert (faulty.state, faulty.units) == (JobState.RUNNING, {b.P5: 2})
        assert (faulty.attempt.faulty_since, faulty.attempt.wanted) == (b.at(150), 3)

    def test_a_member_that_a_start_lacks_is_to_be_replaced_whatever_the_reason(self):
        elastic = Elastic(min_instances=1, max_instances=3, values=(1, 3), hook=Hook.MEMBERS)
        job = lifecycle.mark_launched(lifecycle.start(b.a_job(elastic=elastic), {b.P5: 3}, (), b.NOW))
        lacking = resizing.remove_member(job, names(job)[0], b.at(5), "cannot be created", lost=False)
        assert (lacking.state, lacking.attempt.wanted) == (JobState.STARTING, 3)
        assert told(lacking, Status.IN_PROGRESS, 9, secondary="Training").attempt.faulty_since == b.at(5)

    @pytest.mark.parametrize(
        ("status", "fields", "state"),
        [
            (Status.COMPLETED, {}, JobState.COMPLETED),
            (Status.FAILED, {}, JobState.FAILED),
            (Status.STOPPED, {}, JobState.STOPPED),
            (Status.FAILED, {"failure_reason": "AlgorithmError: sorry"}, JobState.FAILED),
            (Status.FAILED, {"failure_reason": "ClientError: sorry"}, JobState.FAILED),
            (Status.STOPPED, {"secondary": "MaxRuntimeExceeded"}, JobState.STOPPED),
            (Status.DELETING, {}, JobState.STOPPED),
        ],
    )
    def test_when_its_own_training_job_ends_its_members_go_and_then_it_is_looked_at_again(self, status, fields, state):
        growing = resize(running(Hook.MEMBERS, 2, past=(b.a_past_attempt(),)), 3)
        ended = told(growing, status, 150, **fields)
        assert (ended.units, ended.stopping, ended.attempt.resizing) == ({b.P5: 2}, True, None)
        assert [member.left_at for member in ended.attempt.members] == [b.at(150)] * 2
        assert lifecycle.observe(ended, b.an_observation(ended, status=status, **fields), b.at(151)) is None
        for name in names(ended):
            assert ended.state is JobState.RESIZING, "it never runs again"
            ended = member_told(ended, name, Status.STOPPED, 200)
        over = told(ended, status, 210, **fields)
        assert (over.state, over.attempt.units) == (state, {b.P5: 3})
        assert (over.attempt.members, over.attempt.resizing) == ((), None)

    def test_instances_that_its_own_training_job_keeps_warm_count_while_members_go(self):
        job = running(Hook.MEMBERS, 3, sizes=(2, 3), keep_alive=True)
        ended = told(job, Status.COMPLETED, 50)
        assert ended.units == {b.P5: 3}
        last = member_told(ended, names(ended)[0], Status.STOPPED, 60)
        over = told(last, Status.COMPLETED, 70, warm=Warm.AVAILABLE)
        assert left_by(last, over).units == {b.P5: 2}

    def test_a_preempted_group_stops_as_a_whole(self):
        preempting = lifecycle.preempt(resize(running(Hook.MEMBERS, 3), 2), "job9", b.at(150))
        assert all(member.left_at for member in preempting.attempt.members)
        assert preempting.freeing == {b.P5: 3}
        stopped = told(preempting, Status.STOPPED, 160)
        for name in names(stopped):
            stopped = member_told(stopped, name, Status.STOPPED, 170)
        assert stopped.state is JobState.PREEMPTING
        assert told(stopped, Status.STOPPED, 180).state is JobState.PREEMPTED

    def test_a_stop_by_its_user_in_the_middle_stops_all_of_them(self):
        stopping = lifecycle.request_stop(resize(running(Hook.MEMBERS, 2), 3), b.at(150), "ada")
        assert stopping.stopping
        for name in names(stopping):
            stopping = member_told(stopping, name, Status.STOPPED, 160)
            assert stopping.state is JobState.RESIZING
        assert told(stopping, Status.STOPPED, 170).state is JobState.STOPPED

    def test_a_group_that_sagemaker_never_had_ends_at_once_with_its_members(self):
        elastic = Elastic(min_instances=1, max_instances=3, hook=Hook.MEMBERS)
        job = lifecycle.start(b.a_job(elastic=elastic), {b.P5: 3}, (), b.NOW)
        ended = told(lifecycle.request_stop(job, b.at(1), "ada"), Status.STOPPED, 2)
        assert (ended.state, ended.attempt.members) == (JobState.STOPPED, ())

    def test_a_member_that_is_none_of_the_jobs_is_refused(self):
        with pytest.raises(IllegalTransition):
            resizing.mark_member_left(running(Hook.MEMBERS, 2), "stranger", b.at(5))


def base_told(job, status, seconds, **fields):
    """The job after a report about its base, whichever training job that is now."""
    return told(job, status, seconds, training_job_name=job.attempt.base_name, **fields)


INTERNAL = {"failure_reason": "InternalServerError: sorry"}
LOSSES = [
    (Status.FAILED, INTERNAL),
    (Status.FAILED, {"failure_reason": "CapacityError: none"}),
    (Status.FAILED, {"failure_reason": "InsufficientCapacityError: none"}),
    (Status.STOPPED, {"secondary": "MaxWaitTimeExceeded"}),
]


class TestALostBase:
    """SageMaker loses the base while members work: the attempt goes on."""

    @pytest.mark.parametrize(("status", "fields"), LOSSES)
    def test_the_oldest_member_takes_its_place_and_the_attempt_goes_on(self, status, fields):
        job = running(Hook.MEMBERS, 3)
        oldest, other = names(job)
        lost = told(job, status, 50, **fields)
        attempt = lost.attempt
        assert (lost.state, lost.units, lost.stop_asked) == (JobState.RUNNING, {b.P5: 2}, False)
        assert (attempt.number, attempt.training_job_name, attempt.base_name) == (1, job.name, oldest)
        assert (names(lost), attempt.training_job_names) == ([other], (oldest, other))
        assert (attempt.faulty_since, attempt.wanted) == (b.at(50), 3)
        assert lines(lost)[-1].endswith(f"; {oldest} takes its place")
        assert (lost.past, sum(lost.failures.values()), lost.capacity_failures) == ((), 1, 0)

    def test_its_units_come_back_as_further_members(self):
        lost = told(running(Hook.MEMBERS, 3), Status.FAILED, 50, **INTERNAL)
        replacing = resize(lost, 3, Cause.REPLACE, 60)
        assert names(replacing)[-1] == "job1-qstamp-1-m3"
        whole = at_work(replacing, "job1-qstamp-1-m3", 90)
        assert (whole.state, whole.units) == (JobState.RUNNING, {b.P5: 3})
        assert (whole.attempt.faulty_since, whole.attempt.wanted, whole.attempt.number) == (None, 0, 1)

    def test_the_member_that_took_its_place_decides_the_end(self):
        lost = told(running(Hook.MEMBERS, 3), Status.FAILED, 50, **INTERNAL)
        (other,) = names(lost)
        ended = base_told(lost, Status.COMPLETED, 70)
        assert (ended.stopping, ended.units) == (True, {b.P5: 1})
        last = member_told(ended, other, Status.COMPLETED, 71)
        over = base_told(last, Status.COMPLETED, 72)
        assert (over.state, over.attempt.outcome) == (JobState.COMPLETED, Outcome.COMPLETED)
        assert over.attempt.size == 3

    def test_reports_about_the_lost_base_change_nothing_any_more(self):
        job = running(Hook.MEMBERS, 3)
        lost = told(job, Status.FAILED, 50, **INTERNAL)
        for status, fields in [(Status.FAILED, INTERNAL), (Status.IN_PROGRESS, {"secondary": "Training"})]:
            assert member_told(lost, job.name, status, 55, **fields) is None
        assert not lifecycle.ends_attempt(lost, b.an_observation(job, status=Status.FAILED))

    def test_it_may_be_lost_again_while_a_member_works(self):
        lost = told(running(Hook.MEMBERS, 3), Status.FAILED, 50, **INTERNAL)
        (last,) = names(lost)
        again = base_told(lost, Status.FAILED, 60, **INTERNAL)
        assert (again.units, again.attempt.base_name, names(again)) == ({b.P5: 1}, last, [])
        assert (again.attempt.faulty_since, again.attempt.wanted) == (b.at(50), 3)
        over = base_told(again, Status.FAILED, 70, **INTERNAL)
        assert (over.state, over.attempt.outcome) == (JobState.PENDING, Outcome.FAILED)
        assert over.failures == {FailureClass.SERVICE: 3}

    def test_losses_beyond_the_retry_limit_end_the_job(self):
        job = replace(running(Hook.MEMBERS, 4), retries={FailureClass.SERVICE: 1})
        lost = told(job, Status.FAILED, 50, **INTERNAL)
        ended = base_told(lost, Status.FAILED, 60, **INTERNAL)
        assert ended.stopping
        for name in names(ended):
            ended = member_told(ended, name, Status.STOPPED, 70)
        assert base_told(ended, Status.FAILED, 80, **INTERNAL).state is JobState.FAILED

    @pytest.mark.parametrize(
        "fields", [{"failure_reason": "AlgorithmError: sorry"}, {"failure_reason": "ClientError: sorry"}]
    )
    def test_a_failure_of_the_users_code_still_ends_it(self, fields):
        lost = told(running(Hook.MEMBERS, 2), Status.FAILED, 50, **INTERNAL)
        assert base_told(lost, Status.FAILED, 60, **fields).state is JobState.FAILED

    def test_without_a_member_at_work_the_attempt_ends_as_ever(self):
        job = resize(running(Hook.MEMBERS, 1, past=(b.a_past_attempt(),)), 2)
        ended = told(job, Status.FAILED, 150, **INTERNAL)
        assert (ended.stopping, ended.units) == (True, {b.P5: 1})
        last = member_told(ended, names(ended)[0], Status.STOPPED, 200)
        assert told(last, Status.FAILED, 210, **INTERNAL).state is JobState.PREEMPTED

    def test_a_member_that_leaves_does_not_take_its_place(self):
        job = resize(running(Hook.MEMBERS, 2), 1)
        assert told(job, Status.FAILED, 150, **INTERNAL).stopping

    @pytest.mark.parametrize(
        "end",
        [
            lambda job: lifecycle.preempt(job, "job9", b.at(40)),
            lambda job: lifecycle.request_stop(job, b.at(40), "ada"),
        ],
    )
    def test_a_job_that_stops_does_not_go_on(self, end):
        ended = told(end(running(Hook.MEMBERS, 3)), Status.FAILED, 50, **INTERNAL)
        assert (ended.attempt.successor, ended.attempt.base_ended_at) == ("", b.at(50))

    def test_a_job_whose_training_plan_ends_does_not_go_on(self):
        job = lifecycle.set_reclaim_time(running(Hook.MEMBERS, 3), b.at(50))
        assert told(job, Status.FAILED, 50, **INTERNAL).stopping

    def test_before_it_has_worked_the_attempt_ends_as_ever(self):
        elastic = Elastic(min_instances=1, max_instances=3, hook=Hook.MEMBERS)
        job = lifecycle.mark_launched(lifecycle.start(b.a_job(elastic=elastic), {b.P5: 3}, (), b.NOW))
        ready = at_work(job, names(job)[0], 5)
        assert told(ready, Status.FAILED, 6, **INTERNAL).stopping

    def test_preempted_it_stops_as_a_whole_and_is_preempted(self):
        lost = told(running(Hook.MEMBERS, 3), Status.FAILED, 50, **INTERNAL)
        preempting = lifecycle.preempt(lost, "job9", b.at(60))
        last = member_told(preempting, names(preempting)[0], Status.STOPPED, 70)
        assert last.units == {b.P5: 1}
        over = base_told(last, Status.STOPPED, 80)
        assert (over.state, over.attempt.outcome, over.failures) == (
            JobState.PREEMPTED,
            Outcome.PREEMPTED,
            {FailureClass.SERVICE: 1},
        )

    def test_stopped_by_its_user_it_ends(self):
        lost = told(running(Hook.MEMBERS, 2), Status.FAILED, 50, **INTERNAL)
        stopping = lifecycle.request_stop(lost, b.at(60), "ada")
        assert base_told(stopping, Status.STOPPED, 70).state is JobState.STOPPED

    def test_a_stop_of_its_base_in_the_console_ends_it(self):
        lost = told(running(Hook.MEMBERS, 2), Status.FAILED, 50, **INTERNAL)
        assert base_told(lost, Status.STOPPED, 70).state is JobState.STOPPED

    def test_lost_during_a_growth_it_is_to_have_what_it_was_to_have(self):
        growing = resize(running(Hook.MEMBERS, 2), 4)
        lost = told(growing, Status.FAILED, 110, **INTERNAL)
        assert (lost.state, lost.units, lost.attempt.wanted) == (JobState.RESIZING, {b.P5: 3}, 4)
        came = at_work(at_work(lost, names(lost)[0], 120), names(lost)[1], 130)
        assert (came.state, came.units, came.attempt.faulty_since) == (JobState.RUNNING, {b.P5: 3}, b.at(110))

    def test_lost_during_a_shrink_it_is_to_have_what_it_was_to_have(self):
        lost = told(resize(running(Hook.MEMBERS, 3), 2), Status.FAILED, 110, **INTERNAL)
        assert (lost.units, lost.attempt.wanted) == ({b.P5: 2}, 2)
        left = member_told(lost, names(lost)[0], Status.STOPPED, 120)
        assert (left.state, left.units, left.attempt.faulty_since) == (JobState.RUNNING, {b.P5: 1}, b.at(110))

    def test_the_warm_pool_that_it_leaves_counts_as_one(self):
        job = running(Hook.MEMBERS, 3, sizes=(2, 3), keep_alive=True)
        lost = told(job, Status.FAILED, 50, warm=Warm.AVAILABLE, **INTERNAL)
        pool = left_by(job, lost)
        assert (pool.training_job_name, pool.units, pool.ending_since) == (job.name, {b.P5: 2}, None)
        assert (lost.units, left_by(lost, lifecycle.request_stop(lost, b.at(55), "ada"))) == ({b.P5: 1}, None)
        over = base_told(lost, Status.COMPLETED, 60)
        assert (over.state, left_by(lost, over), over.attempt.warm_until) == (JobState.COMPLETED, None, None)
        assert left_by(job, told(job, Status.FAILED, 50, warm=Warm.NONE, **INTERNAL)) is None

    def test_members_leave_no_warm_pool_that_would_count_while_others_go(self):
        lost = told(running(Hook.MEMBERS, 3, keep_alive=True), Status.FAILED, 50, warm=Warm.NONE, **INTERNAL)
        assert base_told(lost, Status.COMPLETED, 60).units == {b.P5: 1}


class TestBelowTheMinimum:
    """A base of several instances is lost, and too few members are left."""

    def lost(self, size=5, sizes=(4, 5, 6)):
        return told(running(Hook.MEMBERS, size, sizes=sizes), Status.FAILED, 50, **INTERNAL)

    def test_it_waits_for_a_replacement(self):
        lost = self.lost()
        assert (lost.state, lost.units, lost.attempt.wanted) == (JobState.RUNNING, {b.P5: 1}, 5)
        replacing = resize(lost, 5, Cause.REPLACE, 60)
        assert names(replacing) == [f"job1-qstamp-1-m{number}" for number in (2, 3, 4, 5)]
        for name in names(replacing):
            replacing = at_work(replacing, name, 90)
        assert (replacing.state, replacing.units, replacing.attempt.faulty_since) == (JobState.RUNNING, {b.P5: 5}, None)

    def test_a_smaller_legal_size_settles_it_once_it_is_there(self):
        replacing = resize(self.lost(), 4, Cause.REPLACE, 60)
        assert (replacing.attempt.faulty_since, replacing.attempt.wanted) == (b.at(50), 4)
        for name in names(replacing):
            replacing = at_work(replacing, name, 90)
        assert (replacing.units, replacing.attempt.faulty_since, replacing.attempt.wanted) == ({b.P5: 4}, None, 0)

    @pytest.mark.parametrize("size", [4, 5])
    def test_a_replacement_that_does_not_come_leaves_it_faulty(self, size):
        given_up = resizing.abandon_resize(resize(self.lost(), size, Cause.REPLACE, 60), b.at(100), "no room")
        for name in names(given_up):
            given_up = resizing.remove_member(given_up, name, b.at(101), "is not needed", lost=False)
        assert (given_up.state, given_up.units) == (JobState.RUNNING, {b.P5: 1})
        assert given_up.attempt.faulty_since == b.at(50)

    @pytest.mark.parametrize(
        ("fields", "failure"),
        [
            (INTERNAL, FailureClass.SERVICE),
            ({"failure_reason": "CapacityError: none"}, FailureClass.CAPACITY),
            ({"secondary": "MaxWaitTimeExceeded"}, FailureClass.SPOT),
        ],
    )
    def test_given_up_it_stops_and_waits_again_as_after_the_failure_of_its_base(self, fields, failure):
        status = Status.FAILED if "failure_reason" in fields else Status.STOPPED
        lost = told(running(Hook.MEMBERS, 6, sizes=(4, 5, 6)), status, 50, **fields)
        stopping = lifecycle.give_up_attempt(lost, b.at(90))
        assert (stopping.stopping, stopping.freeing) == (True, {b.P5: 2})
        last = member_told(lifecycle.mark_stop_called(stopping, b.at(91)), names(stopping)[0], Status.STOPPED, 95)
        over = base_told(last, Status.STOPPED, 96, stopping_since=b.at(92))
        assert (over.state, over.units, over.failures) == (JobState.PENDING, {}, {failure: 1})

    def test_a_start_that_is_given_up_has_lost_no_base(self):
        elastic = Elastic(min_instances=1, max_instances=2, hook=Hook.MEMBERS)
        started = lifecycle.start(b.a_job(elastic=elastic, demand=Demand(({b.P5: 1},))), {b.P5: 2}, (), b.NOW)
        starting = lifecycle.mark_launched(started)
        stopping = lifecycle.mark_stop_called(lifecycle.give_up_start(starting, b.at(90)), b.at(90))
        last = member_told(stopping, names(stopping)[0], Status.STOPPED, 95)
        over = base_told(last, Status.STOPPED, 96, stopping_since=b.at(91))
        assert (over.attempt.outcome, over.failures) == (Outcome.RETURNED, {FailureClass.CAPACITY: 1})

    def test_a_stop_by_its_user_counts_all_the_same(self):
        lost = lifecycle.give_up_attempt(self.lost(), b.at(90))
        assert base_told(lost, Status.STOPPED, 96, stopping_since=b.at(29)).state is JobState.STOPPED
        asked = lifecycle.request_stop(lost, b.at(91), "ada")
        assert base_told(asked, Status.STOPPED, 96, stopping_since=b.at(92)).state is JobState.STOPPED

    def test_it_may_complete_before_it_has_stopped(self):
        stopping = lifecycle.give_up_attempt(self.lost(), b.at(90))
        assert base_told(stopping, Status.COMPLETED, 96).state is JobState.COMPLETED

    def test_members_that_complete_first_do_not_make_it_faulty(self):
        job = told(running(Hook.MEMBERS, 6, sizes=(3, 5, 6)), Status.FAILED, 50, **INTERNAL)
        whole = resize(job, 5, Cause.REPLACE, 60)
        for name in names(whole)[2:]:
            whole = at_work(whole, name, 90)
        for name in names(whole):
            whole = member_told(whole, name, Status.COMPLETED, 100)
        assert (whole.state, whole.units, whole.attempt.faulty_since) == (JobState.RUNNING, {b.P5: 1}, None)
        assert base_told(whole, Status.COMPLETED, 110).state is JobState.COMPLETED

    def test_without_a_member_that_works_nothing_takes_the_place_of_its_base(self):
        with pytest.raises(IllegalTransition, match="no member"):
            resizing.replace_base(running(Hook.MEMBERS, 1), b.at(5), "it is lost")


class TestCustom:
    def test_it_is_told_once_and_done_when_the_answer_comes(self):
        asked = resizing.record_hook_call(resize(running(Hook.CUSTOM), 3))
        assert asked.attempt.resizing.hook_called
        done = resizing.complete_resize(asked, b.at(150), 3)
        assert (done.state, done.units, done.attempt.resizes) == (JobState.RUNNING, {b.P5: 3}, 1)

    def test_a_shrink_holds_everything_until_the_answer(self):
        asked = resizing.record_hook_call(resize(running(Hook.CUSTOM, 3), 1))
        assert asked.units == {b.P5: 3}
        assert resizing.complete_resize(asked, b.at(150), 1).units == {b.P5: 1}

    @pytest.mark.parametrize(("size", "wanted"), [(1, 3), (3, 1)])
    def test_given_up_it_runs_as_before(self, size, wanted):
        back = resizing.abandon_resize(resize(running(Hook.CUSTOM, size), wanted), b.at(1_000), "no answer")
        assert (back.state, back.units, back.attempt.resizing) == (JobState.RUNNING, {b.P5: size}, None)
        assert lines(back)[-1] == f"gives up {wanted} instances: no answer"
        assert back.capacity_failures == (wanted > size)

    def test_a_job_that_ends_in_the_middle_has_ended(self):
        ended = told(resize(running(Hook.CUSTOM), 3), Status.COMPLETED, 150)
        assert (ended.state, ended.attempt.resizing) == (JobState.COMPLETED, None)

    def test_capacity_lost_in_the_middle_sends_it_back_to_the_queue(self):
        growing = resize(running(Hook.CUSTOM), 3)
        after = told(growing, Status.FAILED, 150, failure_reason="CapacityError: none")
        assert (after.state, after.attempt.resizing) == (JobState.PENDING, None)
        assert after.failures == {FailureClass.CAPACITY: 1}


class TestWhatItHasReceived:
    def test_unit_seconds_follow_the_sizes_that_it_had(self):
        growing = resize(running(Hook.MEMBERS), 3, seconds=100)
        for name in names(growing):
            growing = at_work(growing, name, 200)
        less = member_told(growing, names(growing)[0], Status.FAILED, 300)
        ended = told(less, Status.COMPLETED, 400)
        over = told(member_told(ended, names(ended)[0], Status.STOPPED, 450), Status.COMPLETED, 460)
        held = 1 * 100 + 3 * 200 + 2 * 100 + 1 * 50
        assert over.served == pytest.approx(held)
        assert over.worked == pytest.approx(held), "a least of one instance"
        assert over.at_work == pytest.approx(460)

    def test_seconds_of_work_are_those_at_the_least_size(self):
        job = running(Hook.CUSTOM, 4, sizes=(2, 4))
        assert job.worked_by(b.at(100)) == pytest.approx(200)
        ended = told(job, Status.COMPLETED, 100)
        assert (ended.worked, ended.at_work) == (pytest.approx(200), pytest.approx(100))
        assert ended.worked_by(b.at(500)) == ended.worked

    def test_a_job_of_fixed_size_counts_as_ever(self):
        job = b.a_running_job(units={b.P5: 4})
        assert job.worked_by(b.at(100)) == pytest.approx(100)
        assert told(job, Status.COMPLETED, 100).served == pytest.approx(400)

    def test_a_restarted_job_counts_what_worked_and_not_what_it_was_to_have(self):
        resumed = told(resize(running(), 3, seconds=100), Status.STOPPED, 160)
        assert resumed.served == pytest.approx(160)
