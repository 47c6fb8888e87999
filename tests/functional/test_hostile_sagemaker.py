"""Late, lost, refused and forged answers of SageMaker: nothing is lost, doubled or over a cap."""

from __future__ import annotations

import json

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from builders import ADA, G5, P5
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.local.simulator import Hostility
from trainmaster.service.change import cancel, change
from trainmaster.service.launch import MAX_TAKEN_NAMES
from world import Killed, World, a_request

pytestmark = pytest.mark.usefixtures("quiet")
NOT_FOUND = {"code": "ValidationException", "message": "Requested resource not found.", "times": None}


def hide(world, *operations):
    """Have SageMaker answer these operations with "not found" until `world.simulator.faults.clear()`."""
    for operation in operations:
        world.simulator.faults.inject(operation, **NOT_FOUND)


def lose_create(world):
    """Have the next CreateTrainingJob take effect without an answer."""
    world.simulator.faults.inject("CreateTrainingJob", "InternalFailure", executed=True)


def without_events(**options):
    return World(events=lambda number, event: [], **options)


def statuses(world):
    return {name: job["TrainingJobStatus"] for name, job in world.training_jobs.items()}


class TestNotFound:
    def test_a_young_job_that_is_not_described_keeps_running(self):
        world = without_events()
        world.submit("job1", training_seconds=2000)
        world.settle()
        hide(world, "DescribeTrainingJob")
        world.run(500)
        assert (world.job("job1").state, world.job("job1").units) == (JobState.STARTING, {P5: 1})
        world.simulator.faults.clear()
        world.run_until_ended("job1")
        assert (world.job("job1").state, world.opened) == (JobState.COMPLETED, ["job1"])

    def test_a_job_that_is_not_described_for_ten_minutes_is_gone(self):
        world = without_events()
        world.submit("job1", training_seconds=90_000)
        world.settle()
        hide(world, "DescribeTrainingJob")
        world.run(1500)
        assert world.job("job1").state is JobState.STOPPED

    def test_a_job_cancelled_while_its_creation_is_in_doubt_is_stopped(self):
        world = without_events()
        lose_create(world)
        world.submit("job1", training_seconds=90_000)
        hide(world, "DescribeTrainingJob", "StopTrainingJob")
        world.settle()
        cancel(world.api_context, ADA, "job1")
        world.run(400)
        assert world.job("job1").units == {P5: 1}, "its training job may run"
        world.simulator.faults.clear()
        world.run_until_ended("job1")
        assert (world.job("job1").state, statuses(world)) == (JobState.STOPPED, {"job1": "Stopped"})

    def test_a_job_preempted_seconds_after_its_creation_holds_its_units(self):
        world = without_events(pools=f"{P5}=1")
        world.submit("job1", training_seconds=600)
        world.settle()
        hide(world, "DescribeTrainingJob", "StopTrainingJob")
        world.submit("job2", priority=9, training_seconds=60)
        world.run(400)
        assert (world.opened, world.job("job1").units) == (["job1"], {P5: 1})
        world.simulator.faults.clear()
        world.run_until_ended("job1", "job2")
        assert world.states("job1", "job2") == {"job1": "completed", "job2": "completed"}
        assert (world.peaks, world.doubles) == ({P5: 1}, set())

    @pytest.mark.parametrize("code", ["ResourceLimitExceeded", "ValidationException", "AccessDeniedException"])
    def test_a_refused_retry_keeps_the_units_of_the_first_try(self, code):
        world = without_events(pools=f"{P5}=1")
        lose_create(world)
        world.simulator.faults.inject("CreateTrainingJob", code, times=None, skip=1)
        hide(world, "DescribeTrainingJob")
        world.submit("job1", training_seconds=600)
        world.submit("job2", training_seconds=60)
        world.run(400)
        assert (world.opened, world.job("job1").units) == (["job1"], {P5: 1})
        world.simulator.faults.clear()
        world.run_until_ended("job1", "job2")
        assert (world.peaks, world.states("job1", "job2")) == ({P5: 1}, {"job1": "completed", "job2": "completed"})

    def test_a_refused_retry_is_final_after_ten_minutes(self):
        world = without_events()
        world.simulator.faults.inject("CreateTrainingJob", "InternalFailure")
        world.simulator.faults.inject("CreateTrainingJob", "ValidationException", times=None, skip=1)
        world.submit("job1")
        world.run(500)
        assert world.job("job1").state is JobState.STARTING
        world.run(200)
        assert (world.job("job1").state, world.opened) == (JobState.FAILED, [])

    def test_tags_that_are_not_visible_yet_make_no_stranger(self):
        world = without_events()
        lose_create(world)
        hide(world, "ListTags")
        world.submit("job1", training_seconds=600)
        world.run(400)
        assert world.job("job1").state is JobState.STARTING
        world.simulator.faults.clear()
        world.run_until_ended("job1")
        assert (world.job("job1").state, world.opened) == (JobState.COMPLETED, ["job1"])


class TestThrottling:
    def test_throttled_creates_do_not_delay_stops(self):
        world = World(pools=f"{P5}=1,{G5}=4")
        world.submit("running", training_seconds=5000)
        world.run(60)
        world.simulator.faults.inject("CreateTrainingJob", "ThrottlingException", times=None)
        for number in range(3):
            world.submit(f"early{number}", kind=G5)
        world.settle()
        cancel(world.api_context, ADA, "running")
        world.run(10)
        assert statuses(world)["running"] in ("Stopping", "Stopped")

    def test_throttled_stops_do_not_delay_creates(self):
        world = World(pools=f"{P5}=1,{G5}=1")
        world.submit("running", training_seconds=5000)
        world.run(60)
        world.simulator.faults.inject("StopTrainingJob", "ThrottlingException", times=None)
        world.submit("urgent", priority=9)
        world.submit("other", kind=G5)
        world.run(10)
        assert world.opened == ["running", "other"]


def test_a_number_that_a_stray_training_job_has_used_is_not_adopted():
    """One manager's Create was refused and the job requeued; another's Create of the same start was accepted late."""
    world = World(limits={P5: 0})
    world.submit("job1", training_seconds=60)
    world.run(10)
    assert world.job("job1").state is JobState.PENDING
    first = world.job("job1").attempt
    world.simulator.set_limit(P5, 2)
    stray = a_request("job1", training_seconds=5)
    tags = {"queue": "sagemaker-queue", "job": "job1", "attempt": "1", "start": first.start_id}
    stray["Tags"] = [{"Key": f"trainmaster:{key}", "Value": value} for key, value in tags.items()]
    world.simulator.call("CreateTrainingJob", **stray)
    world.simulator.call("StopTrainingJob", TrainingJobName="job1")
    world.run_until_ended("job1")
    assert (world.job("job1").state, world.opened) == (JobState.COMPLETED, ["job1", "job1-qstamp-2"])


class TestWhoStoppedIt:
    def preempt(self, **options):
        world = World(pools=f"{P5}=1", **options)
        world.submit("job1", training_seconds=900)
        world.run(200)
        return world

    @pytest.mark.parametrize("offset", [-30, -10, 10, 30])
    def test_a_difference_of_clocks_does_not_turn_a_preemption_into_a_persons_stop(self, offset):
        world = self.preempt(hostility=Hostility(clock_offset=offset))
        world.submit("job2", priority=9, training_seconds=60)
        world.run_until_ended("job1", "job2")
        assert [str(attempt.outcome) for attempt in world.job("job1").attempts] == ["preempted", "completed"]

    @pytest.mark.parametrize(
        ("refuses", "call"),
        [(0, "DescribeTrainingJob"), (1, "DescribeTrainingJob"), (1, "StopTrainingJob")],
        ids=["repetitions are accepted", "repetitions are refused", "right before the queue's stop"],
    )
    def test_a_persons_stop_between_the_decision_and_the_queues_stop_is_final(self, refuses, call):
        world = self.preempt(hostility=Hostility(refuse_repeated_stops=refuses))

        def stop_first(operation, phase):
            if (operation, phase) == (call, "before"):
                world.simulator.on_call = None
                world.simulator.call("StopTrainingJob", TrainingJobName="job1")

        world.submit("job2", priority=9, training_seconds=60)
        world.simulator.on_call = stop_first
        world.run_until_ended("job1", "job2")
        assert (world.job("job1").state, world.opened) == (JobState.STOPPED, ["job1", "job2"])

    @pytest.mark.parametrize("refuses", [0, 1])
    @pytest.mark.parametrize("events", [True, False])
    def test_a_stop_of_the_queue_without_an_answer_is_a_preemption(self, refuses, events):
        delivery = {} if events else {"events": lambda number, event: []}
        world = self.preempt(hostility=Hostility(refuse_repeated_stops=refuses), **delivery)
        world.simulator.faults.inject("StopTrainingJob", "InternalFailure", executed=True)
        world.submit("job2", priority=9, training_seconds=60)
        world.run_until_ended("job1", "job2")
        assert [str(attempt.outcome) for attempt in world.job("job1").attempts] == ["preempted", "completed"]

    def test_a_manager_that_dies_in_a_repeated_stop_leaves_a_preemption(self):
        """The accepted stop comes minutes after the decision, and nothing is stored after it."""
        world = self.preempt(events=lambda number, event: [], hostility=Hostility(clock_offset=30))
        world.simulator.faults.inject("StopTrainingJob", "ServiceUnavailable", times=3)
        world.submit("job2", priority=9, training_seconds=60)
        world.run(100)

        def die(operation, phase):
            if (operation, phase) == ("StopTrainingJob", "after"):
                world.simulator.on_call = None
                raise Killed

        world.simulator.on_call = die
        world.run_until_ended("job1", "job2")
        assert world.killed == 1
        assert [str(attempt.outcome) for attempt in world.job("job1").attempts] == ["preempted", "completed"]


class TestForgedReports:
    def forge(self, world, status, **members):
        detail = {"TrainingJobName": "job1", "TrainingJobStatus": status, "SecondaryStatus": status, **members}
        detail["Tags"] = {"trainmaster:queue": "sagemaker-queue", "trainmaster:job": "job1"}
        world.queue.send(json.dumps({"detail-type": "SageMaker Training Job State Change", "detail": detail}))

    @pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped", "Stopping"])
    def test_a_forged_report_ends_nothing(self, status):
        world = World(pools=f"{P5}=1")
        world.submit("job1", training_seconds=900)
        world.submit("job2", training_seconds=60)
        world.run(200)
        self.forge(world, status)
        world.run(100)
        assert (world.states("job1", "job2"), world.opened) == ({"job1": "running", "job2": "pending"}, ["job1"])
        assert not world.job("job1").stopping
        world.run_until_ended("job1", "job2")
        assert (world.job("job1").state, world.peaks) == (JobState.COMPLETED, {P5: 1})

    def test_a_forged_choice_of_a_type_frees_no_units(self):
        world = World(pools=f"{P5}=1,{G5}=1", capacity={P5: 0, G5: 0})
        request = a_request("job1", training_seconds=400)
        preferences = [{"InstanceType": P5, "InstanceCount": 1}, {"InstanceType": G5, "InstanceCount": 1}]
        request["ResourceConfig"] = {"InstancePreferences": preferences, "VolumeSizeInGB": 30}
        world.submit_request(request)
        world.settle()
        self.forge(world, "InProgress", ResourceConfig={"SelectedInstanceType": G5})
        world.run(10)
        assert world.job("job1").units == {P5: 1, G5: 1}

    def test_an_end_that_describe_reports_late_is_found_by_the_next_ticks(self):
        world = World()
        world.submit("job1", training_seconds=30)
        world.run(20)
        hide(world, "DescribeTrainingJob")
        world.run(400)
        assert statuses(world) == {"job1": "Completed"}
        world.simulator.faults.clear()
        world.run(65)
        assert world.job("job1").state is JobState.COMPLETED


class TestStrangersOfTheSameName:
    """Another person's training job has an attempt's name before the attempt is known to be created."""

    @staticmethod
    def world_with_stranger(name="job1", tags=(), **options):
        world = World(events=lambda number, event: [], **options)
        request = a_request(name, training_seconds=90_000)
        world.simulator.call("CreateTrainingJob", **{**request, "Tags": list(tags)})
        return world

    @staticmethod
    def deny_stops(world):
        """Refuse what the template's condition on tags refuses the manager."""
        world.simulator.faults.inject("StopTrainingJob", "AccessDeniedException", times=None)

    def test_a_cancellation_does_not_stop_it(self):
        world = self.world_with_stranger()
        world.submit("job1")
        world.settle()
        assert world.job("job1").state is JobState.STARTING, "its creation is in doubt"
        cancel(world.api_context, ADA, "job1")
        world.run(900)
        assert (world.job("job1").state, statuses(world)) == (JobState.STOPPED, {"job1": "InProgress"})
        assert "belongs to a training job that the queue did not start" in world.job("job1").history[-2].reason

    def test_a_cancellation_ends_at_once_where_the_tags_of_another_queue_are_visible(self):
        world = self.world_with_stranger(tags=[{"Key": "trainmaster:queue", "Value": "another"}])
        world.simulator.faults.inject("CreateTrainingJob", "ThrottlingException", times=1)
        world.submit("job1")
        world.settle()
        cancel(world.api_context, ADA, "job1")
        world.run(10)
        assert (world.job("job1").state, statuses(world)) == (JobState.STOPPED, {"job1": "InProgress"})

    def test_a_preemption_does_not_stop_it(self):
        world = self.world_with_stranger()
        world.submit("job1")
        world.settle()
        job = world.job("job1")
        assert world.api_context.store.transition([(job, lifecycle.preempt(job, "job2", world.now()))])
        world.run_until_ended("job1")
        assert (world.job("job1").state, statuses(world)) == (JobState.FAILED, {"job1": "InProgress"})
        assert "that the queue did not start" in world.job("job1").history[-1].reason

    @pytest.mark.parametrize("status", ["InProgress", "Stopping"])
    def test_a_forged_report_does_not_adopt_it(self, status):
        world = self.world_with_stranger()
        world.submit("job1")
        world.settle()
        TestForgedReports().forge(world, status)
        world.settle()
        cancel(world.api_context, ADA, "job1")
        world.run(900)
        assert (world.job("job1").state, statuses(world)) == (JobState.STOPPED, {"job1": "InProgress"})

    def test_a_forged_end_does_not_end_the_attempt(self):
        world = self.world_with_stranger()
        world.submit("job1")
        world.settle()
        world.simulator.call("StopTrainingJob", TrainingJobName="job1")
        world.simulator.advance(60)
        TestForgedReports().forge(world, "Stopped")
        world.settle()
        assert world.job("job1").state is JobState.STARTING

    def test_an_own_training_job_with_late_tags_is_stopped_once_they_are_visible(self):
        world = without_events()
        lose_create(world)
        hide(world, "ListTags")
        world.submit("job1", training_seconds=90_000)
        world.settle()
        cancel(world.api_context, ADA, "job1")
        world.run(400)
        assert (world.job("job1").units, statuses(world)) == ({P5: 1}, {"job1": "InProgress"})
        world.simulator.faults.clear()
        world.run_until_ended("job1")
        assert (world.job("job1").state, statuses(world)) == (JobState.STOPPED, {"job1": "Stopped"})

    def test_one_that_took_the_name_of_a_deleted_training_job_ends_the_job(self):
        world = without_events()
        world.submit("job1", training_seconds=90_000)
        world.run(1000)
        world.simulator.call("StopTrainingJob", TrainingJobName="job1")
        world.simulator.advance(200)
        world.simulator.call("DeleteTrainingJob", TrainingJobName="job1")
        world.simulator.advance(20)
        world.simulator.call("CreateTrainingJob", **{**a_request("job1", training_seconds=90_000), "Tags": []})
        self.deny_stops(world)
        cancel(world.api_context, ADA, "job1")
        world.run(10)
        assert (world.job("job1").state, statuses(world)) == (JobState.STOPPED, {"job1": "InProgress"})

    def test_a_missing_permission_is_noted_once_and_the_stop_repeated(self):
        world = without_events()
        world.submit("job1", training_seconds=90_000)
        world.run(1000)
        self.deny_stops(world)
        cancel(world.api_context, ADA, "job1")
        world.run(300)
        notes = [change.reason for change in world.job("job1").history if "may not stop" in change.reason]
        assert (len(notes), world.job("job1").units) == (1, {P5: 1})
        world.simulator.faults.clear()
        world.run_until_ended("job1")
        assert statuses(world) == {"job1": "Stopped"}


class TestStrangersWithTheNamesOfLaterAttempts:
    """Other people's training jobs have the names that later attempts of a job will get."""

    QUEUE_TAG = ({"Key": "trainmaster:queue", "Value": "another"},)

    @staticmethod
    def squat(world, *numbers, tags=()):
        for number in numbers:
            request = a_request(f"job1-qstamp-{number}", kind=G5, training_seconds=90_000)
            world.simulator.call("CreateTrainingJob", **{**request, "Tags": list(tags)})

    def preempted(self, *numbers, tags=QUEUE_TAG, **options):
        """A job whose first attempt is preempted, and whose next attempts' names are taken."""
        world = World(pools=f"{P5}=1", **options)
        world.submit("job1", training_seconds=3000)
        world.run(200)
        self.squat(world, *numbers, tags=tags)
        world.run(600)
        world.submit("job2", priority=9, training_seconds=60)
        return world

    def with_young_stranger(self):
        """The same, but the name is taken just before the next attempt starts."""
        world = self.preempted()
        while world.job("job2").state is not JobState.RUNNING:
            world.run(10)
        self.squat(world, 2)
        world.run_until_ended("job2")
        world.run(60)
        return world

    @pytest.mark.parametrize("tags", [QUEUE_TAG, ()], ids=["of another queue", "without tags"])
    def test_the_next_free_number_is_taken(self, tags):
        world = self.preempted(2, 3, tags=tags)
        world.run_until_ended("job1", "job2")
        job = world.job("job1")
        assert (job.state, job.attempt.training_job_name) == (JobState.COMPLETED, "job1-qstamp-4")
        assert [str(attempt.outcome) for attempt in job.attempts] == ["preempted", "returned", "returned", "completed"]
        assert world.peaks[P5] == 1
        assert {statuses(world)[f"job1-qstamp-{number}"] for number in (2, 3)} == {"InProgress"}
        reasons = [change.reason for change in job.history]
        for number in (2, 3):
            taken = f"the name job1-qstamp-{number} belongs to a training job that the queue did not start"
            assert f"its name is taken: {taken}" in reasons

    def test_a_young_training_job_without_tags_is_waited_for_first(self):
        world = self.with_young_stranger()
        job = world.job("job1")
        assert (job.state, job.attempt.number, job.attempt.launched) == (JobState.STARTING, 2, False)
        world.run_until_ended("job1")
        job = world.job("job1")
        assert (job.state, job.attempt.training_job_name) == (JobState.COMPLETED, "job1-qstamp-3")

    def test_a_preemption_of_an_attempt_whose_name_is_taken_leaves_the_job_in_the_queue(self):
        world = self.with_young_stranger()
        job = world.job("job1")
        assert world.api_context.store.transition([(job, lifecycle.preempt(job, "job3", world.now()))])
        world.run_until_ended("job1")
        outcomes = [str(attempt.outcome) for attempt in world.job("job1").attempts]
        assert outcomes == ["preempted", "preempted", "completed"]
        assert (world.peaks[P5], statuses(world)["job1-qstamp-2"]) == (1, "InProgress")

    def test_after_many_taken_names_the_job_is_held_until_a_person_releases_it(self):
        numbers = range(2, MAX_TAKEN_NAMES + 3)
        world = self.preempted(*numbers)
        world.run_until_ended("job2")
        world.run(300)
        job = world.job("job1")
        assert (job.state, job.units, job.attempt.number) == (JobState.HELD, {}, numbers[-1])
        assert f"those of the {MAX_TAKEN_NAMES} attempts before it" in job.held_by
        change(world.api_context, ADA, "job1", hold=False)
        world.run_until_ended("job1")
        assert world.job("job1").attempt.training_job_name == f"job1-qstamp-{numbers[-1] + 1}"

    def test_the_jobs_own_name_is_not_replaced(self):
        world = TestStrangersOfTheSameName.world_with_stranger(tags=self.QUEUE_TAG)
        world.submit("job1")
        world.run(100)
        assert world.job("job1").failure == "the name job1 belongs to a training job that the queue did not start"

    @settings(deadline=None, max_examples=10, phases=[Phase.explicit, Phase.generate])
    @given(
        taken=st.sets(st.integers(2, 6), min_size=1),
        kill_after=st.integers(1, 60),
        lost=st.frozensets(st.integers(1, 60), max_size=3),
    )
    def test_no_fault_of_the_manager_loses_or_doubles_the_job(self, taken, kill_after, lost):
        world = self.preempted(*taken)
        world.faults.calls.clear()
        world.faults.kill_after, world.faults.lose = kill_after, lost
        world.run_until_ended("job1", "job2")
        assert (world.job("job1").state, world.peaks[P5], world.doubles) == (JobState.COMPLETED, 1, set())
        assert world.job("job1").attempt.number not in taken
        assert all(statuses(world)[f"job1-qstamp-{number}"] == "InProgress" for number in taken)
