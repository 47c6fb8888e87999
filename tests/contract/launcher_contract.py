"""Contract of every Launcher, in groups of behaviors, one class each.

A test module inherits the groups that its implementation is capable of and gives a `bench`; a behavior that it does
not inherit does not exist for it, so nothing is skipped. Only ports and values of the domain are spoken here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

import pytest

from builders import G5, P5, a_job, a_request, an_attempt
from trainmaster.domain.capacity.units import PlanStatus, PlanWindow
from trainmaster.domain.errors import CapacityExhausted, NotPermitted, RequestRefused, Throttled, Unavailable
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.policy.settings import FailureClass
from trainmaster.ports.sagemaker import CreateResult, Creator, Launcher, Owner, StopResult

QUEUE = "research"
P4 = "ml.p4d.24xlarge"
READY = 120
"""Seconds after which every job is at work."""
DONE = 3000
"""Seconds after which every job has ended by itself."""
MAX_PAGES = 1000


class Bench(Protocol):
    """A launcher and the world around it, as a test may see and touch it.

    Methods below a line belong to the group that it names; the bench of a launcher without that group has none.
    """

    launcher: Launcher

    def now(self) -> datetime: ...

    def create_elsewhere(self, request: Mapping[str, Any]) -> None:
        """Create a training job from outside the queue."""
        ...

    def described(self, name: str) -> Mapping[str, Any]:
        """The DescribeTrainingJob answer."""
        ...

    def tags_of(self, name: str) -> Mapping[str, str]: ...

    def let(self, seconds: float) -> None:
        """Time passes, as far as this world has any."""
        ...

    # ------------------------------------------------------------ Lives

    def create_lasting(self, name: str) -> None:
        """Create a training job from outside the queue that does not end while the test runs."""
        ...

    # ------------------------------------------------------------ RunsOut

    def limit(self, instance_type: str, count: int) -> None:
        """The account may use so many."""
        ...

    def capacity(self, instance_type: str, count: int) -> None:
        """EC2 has so many."""
        ...

    # ------------------------------------------------------------ Plans

    def buy_plan(self, name: str, instance_type: str, *hours: tuple[float, float]) -> str:
        """A training plan of two instances, reserved between these hours from now; returns its ARN."""
        ...

    # ------------------------------------------------------------ Interrupts

    def interrupt(self, name: str) -> None:
        """EC2 takes a spot job's instances away."""
        ...

    # ------------------------------------------------------------ Fails

    def next_call(self, operation: str, trouble: str, *, after: bool = False) -> None:
        """The next call of this operation ends in `throttled`, `broken`, `silent` or `denied`.

        Args:
            after: whether it has happened all the same.
        """
        ...

    # ------------------------------------------------------------ Reports

    def reports(self) -> list[Observation]:
        """Observations that the events so far carried, oldest first."""
        ...


def create(bench: Bench, name: str = "job1", *, number: int = 1, queue_job: str | None = None, **members: Any):
    """Create an attempt; its job entered just now."""
    job = a_job(queue_job or name, entry_time=bench.now())
    given = {key: members.pop(key) for key in ("choices", "created_at") if key in members}
    attempt = an_attempt(number, training_job_name=name, **given)
    return bench.launcher.create(job, attempt, a_request(queue_job or name, **members))


def creator(bench: Bench, name: str = "job1", *, number: int = 1, queue_job: str | None = None, **members: Any):
    """Look up the creator of an attempt's training job."""
    job = a_job(queue_job or name, entry_time=bench.now())
    return bench.launcher.creator(job, an_attempt(number, training_job_name=name, **members))


def preferring(*types: str, count: int = 1) -> dict[str, Any]:
    return {
        "InstancePreferences": [{"InstanceType": name} for name in types],
        "InstanceCount": count,
        "VolumeSizeInGB": 30,
    }


def open_names(bench: Bench) -> list[str]:
    """Every open job, page by page, to the end."""
    since = bench.now() - timedelta(days=30)
    names: list[str] = []
    token = None
    for _ in range(MAX_PAGES):
        page = bench.launcher.list_open_jobs(since, token)
        names.extend(page.names)
        token = page.token
        if token is None:
            return names
        bench.let(1)  # the account's rate of list calls
    raise AssertionError("the pages have no end")


def seen(bench: Bench, name: str = "job1") -> Observation:
    """Describe a job that exists."""
    report = bench.launcher.describe(name)
    assert report is not None
    return report


class Creates:
    """A training job comes to be, under the attempt's name and with its tags."""

    def test_a_new_attempt_is_there_afterwards(self, bench: Bench):
        assert create(bench) is CreateResult.NEW
        report = seen(bench)
        assert report.training_job_name == "job1"

    def test_it_carries_its_queue_job_attempt_and_share_and_the_users_tags(self, bench: Bench):
        create(bench, "job1-qstamp-2", number=2, queue_job="job1", priority=7)
        assert bench.tags_of("job1-qstamp-2") == {
            "priority": "7",
            "trainmaster:queue": QUEUE,
            "trainmaster:job": "job1",
            "trainmaster:attempt": "2",
            "trainmaster:start": an_attempt().start_id,
            "trainmaster:share": "default",
        }

    def test_the_rest_of_the_request_arrives_as_it_was(self, bench: Bench):
        create(bench, "job1-qstamp-2", number=2, queue_job="job1", HyperParameters={"epochs": "3"})
        there = bench.described("job1-qstamp-2")
        request = a_request("job1")
        assert there["RoleArn"] == request["RoleArn"]
        for member in ("OutputDataConfig", "ResourceConfig", "StoppingCondition"):
            assert request[member].items() <= there[member].items(), "SageMaker adds defaults"
        assert there["HyperParameters"] == {"epochs": "3"}

    def test_two_attempts_of_a_job_are_two_training_jobs(self, bench: Bench):
        assert create(bench) is CreateResult.NEW
        assert create(bench, "job1-qstamp-2", number=2, queue_job="job1") is CreateResult.NEW

    def test_a_member_is_another_training_job_of_its_attempt(self, bench: Bench):
        create(bench)
        assert create(bench, "job1-qstamp-1-m1", queue_job="job1") is CreateResult.NEW
        assert bench.tags_of("job1-qstamp-1-m1") == bench.tags_of("job1")

    def test_a_request_that_is_none_is_refused(self, bench: Bench):
        with pytest.raises(RequestRefused):
            create(bench, StoppingCondition={"MaxRuntimeInSeconds": "long"})
        assert bench.launcher.describe("job1") is None

    def test_an_absent_training_job_is_none_and_holds_nothing(self, bench: Bench):
        assert bench.launcher.describe("missing") is None
        assert bench.launcher.units_of("missing") == {}

    def test_an_account_without_open_jobs_lists_none(self, bench: Bench):
        assert open_names(bench) == []


class KeepsNamesUnique:
    """A taken name is recognized as the queue's or as a stranger's."""

    def test_our_own_attempt_is_already_there(self, bench: Bench):
        create(bench)
        assert create(bench) is CreateResult.ALREADY_THERE

    def test_so_is_a_member_of_it(self, bench: Bench):
        create(bench, "job1-qstamp-1-m1", queue_job="job1")
        assert create(bench, "job1-qstamp-1-m1", queue_job="job1") is CreateResult.ALREADY_THERE

    def test_it_is_already_there_when_it_has_ended_too(self, bench: Bench):
        create(bench)
        bench.let(DONE)
        job = a_job("job1", entry_time=bench.now() - timedelta(seconds=DONE))
        assert bench.launcher.create(job, an_attempt(), a_request("job1")) is CreateResult.ALREADY_THERE

    def test_a_training_job_of_another_owner_takes_the_name(self, bench: Bench):
        bench.create_elsewhere(a_request("job1", priority=7))
        assert create(bench) is CreateResult.NAME_TAKEN
        assert "trainmaster:queue" not in bench.tags_of("job1")

    @pytest.mark.parametrize(
        "other",
        [
            {"trainmaster:queue": "another"},
            {"trainmaster:job": "another"},
            {"trainmaster:attempt": "2"},
        ],
    )
    def test_so_has_an_attempt_of_another_queue_job_or_number(self, bench: Bench, other: dict[str, str]):
        tags = {
            "trainmaster:queue": QUEUE,
            "trainmaster:job": "job1",
            "trainmaster:attempt": "1",
            **other,
        }
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        bench.create_elsewhere(a_request("job1", Tags=listed))
        assert create(bench) is CreateResult.NAME_TAKEN

    def test_so_has_our_own_of_an_earlier_start(self, bench: Bench):
        create(bench)
        bench.let(DONE)
        assert create(bench, created_at=bench.now()) is CreateResult.EARLIER_START

    def test_the_creator_of_a_name_is_told(self, bench: Bench):
        assert creator(bench) is Creator.NONE
        create(bench)
        assert creator(bench) is Creator.ATTEMPT
        assert creator(bench, created_at=bench.now() + timedelta(hours=1)) is Creator.EARLIER_START
        assert creator(bench, number=2) is Creator.OTHER
        create(bench, "job1-qstamp-1-m1", queue_job="job1")
        assert creator(bench, "job1-qstamp-1-m1", queue_job="job1") is Creator.ATTEMPT
        bench.let(DONE)
        assert creator(bench) is Creator.ATTEMPT, "ended"

    def test_a_training_job_without_tags_has_no_known_creator_unless_it_is_older(self, bench: Bench):
        bench.create_elsewhere(a_request("bare", Tags=[]))
        assert creator(bench, "bare", created_at=bench.now()) is Creator.UNKNOWN
        assert creator(bench, "bare", created_at=bench.now() + timedelta(hours=1)) is Creator.OTHER


class Lives:
    """Training jobs take their time, hold instances meanwhile, and end."""

    def test_it_starts_works_and_completes(self, bench: Bench):
        create(bench)
        first = seen(bench)
        bench.let(READY)
        second = seen(bench)
        bench.let(DONE)
        third = seen(bench)
        assert (first.status, first.at_work, first.started_at) == (Status.IN_PROGRESS, False, None)
        assert second.at_work
        assert second.started_at is not None
        assert second.started_at <= bench.now() - timedelta(seconds=DONE)
        assert (third.status, third.terminal) == (Status.COMPLETED, True)
        assert third.started_at == second.started_at
        assert third.stopping_since is None

    def test_it_holds_its_instances_until_it_has_ended(self, bench: Bench):
        create(bench, count=2)
        assert bench.launcher.units_of("job1") == {P5: 2}
        bench.let(DONE)
        assert bench.launcher.units_of("job1") == {}

    def test_instance_groups_hold_instances_of_several_types(self, bench: Bench):
        groups = [
            {"InstanceGroupName": "a", "InstanceType": P5, "InstanceCount": 2},
            {"InstanceGroupName": "b", "InstanceType": G5, "InstanceCount": 1},
            {"InstanceGroupName": "c", "InstanceType": P5, "InstanceCount": 1},
        ]
        create(bench, ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 30})
        assert bench.launcher.units_of("job1") == {P5: 3, G5: 1}

    def test_open_jobs_are_those_that_have_not_ended_ours_or_not(self, bench: Bench):
        create(bench, "ended")
        bench.let(DONE)
        create(bench, "ours")
        bench.create_elsewhere(a_request("external"))
        assert sorted(open_names(bench)) == ["external", "ours"]

    def test_an_open_job_behind_pages_of_ended_ones_is_found(self, bench: Bench):
        bench.create_lasting("old")
        bench.let(1)
        for index in range(210):
            bench.create_elsewhere(a_request(f"short{index}"))
        bench.let(DONE)
        assert bench.launcher.list_open_jobs(bench.now() - timedelta(days=1)).names == ()
        assert open_names(bench) == ["old"]

    def test_open_jobs_are_told_in_pages(self, bench: Bench):
        names = [f"job{index}" for index in range(101)]
        for name in names:
            bench.create_elsewhere(a_request(name))
        page = bench.launcher.list_open_jobs(bench.now() - timedelta(days=1))
        assert len(page.names) == 100
        assert page.token is not None
        assert sorted(open_names(bench)) == sorted(names)

    def test_open_jobs_from_before_are_not_told(self, bench: Bench):
        create(bench, "before")
        bench.let(10)
        since = bench.now()
        bench.let(10)
        create(bench, "after")
        assert bench.launcher.list_open_jobs(since).names == ("after",)

    def test_an_attempt_is_identified_by_its_tags(self, bench: Bench):
        config = {"InstanceType": P5, "InstanceCount": 2, "VolumeSizeInGB": 30, "KeepAlivePeriodInSeconds": 600}
        create(bench, "job1-qstamp-2", number=2, queue_job="job1", ResourceConfig=config)
        found = bench.launcher.identify("job1-qstamp-2")
        assert found is not None
        assert (found.name, found.owner, found.job_name) == ("job1-qstamp-2", Owner.QUEUE, "job1")
        assert (found.units, found.keep_alive, found.stopping) == ({P5: 2}, True, False)
        assert abs(found.created_at - bench.now()) < timedelta(minutes=1)

    def test_training_jobs_of_others_are_identified_as_such(self, bench: Bench):
        tag = {"Key": "trainmaster:queue", "Value": "another"}
        bench.create_elsewhere({**a_request("another"), "Tags": [tag, {"Key": "trainmaster:job", "Value": "job1"}]})
        bench.create_elsewhere({**a_request("bare"), "Tags": []})
        found = [bench.launcher.identify(name) for name in ("another", "bare")]
        assert [(each.owner, each.job_name) for each in found if each is not None] == [
            (Owner.OTHER, ""),
            (Owner.UNKNOWN, ""),
        ]

    def test_an_ended_training_job_is_not_identified(self, bench: Bench):
        create(bench)
        bench.let(DONE)
        assert (bench.launcher.identify("job1"), bench.launcher.identify("unknown")) == (None, None)


class Stops:
    """A stop is asked for, takes its time, and is no error where there is nothing to stop."""

    def test_a_running_job_stops_and_says_since_when(self, bench: Bench):
        create(bench)
        bench.let(READY)
        asked = bench.now()
        assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ACCEPTED
        report = seen(bench)
        assert (report.status, report.terminal, report.stopping_since) == (Status.STOPPING, False, asked)
        bench.let(DONE)
        ended = seen(bench)
        assert (ended.status, ended.terminal, ended.stopping_since) == (Status.STOPPED, True, asked)

    def test_a_stopping_job_still_holds_its_instances_and_is_listed(self, bench: Bench):
        create(bench)
        bench.let(READY)
        bench.launcher.stop("job1", end_warm_pool=False)
        assert bench.launcher.units_of("job1") == {P5: 1}
        assert open_names(bench) == ["job1"]

    def test_a_job_that_is_not_at_work_yet_stops_too(self, bench: Bench):
        create(bench)
        assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ACCEPTED
        bench.let(READY)
        report = seen(bench)
        assert (report.status, report.started_at) == (Status.STOPPED, None)

    def test_asking_twice_is_asking_once(self, bench: Bench):
        create(bench)
        bench.let(READY)
        assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ACCEPTED
        since = seen(bench)
        bench.let(1)
        assert bench.launcher.stop("job1", end_warm_pool=True) is StopResult.ACCEPTED
        again = seen(bench)
        assert again.stopping_since == since.stopping_since

    @pytest.mark.parametrize("end_warm_pool", [True, False])
    def test_an_ended_job_needs_no_stop(self, bench: Bench, end_warm_pool: bool):
        create(bench)
        bench.let(DONE)
        assert bench.launcher.stop("job1", end_warm_pool=end_warm_pool) is StopResult.ENDED

    @pytest.mark.parametrize("end_warm_pool", [True, False])
    def test_nor_does_one_that_is_not_there(self, bench: Bench, end_warm_pool: bool):
        assert bench.launcher.stop("unknown", end_warm_pool=end_warm_pool) is StopResult.NOT_FOUND


class KeepsWarm:
    """Warm pools hold instances after their jobs, unless they are ended."""

    KEEPING = {  # noqa: RUF012 -- an example, never changed
        "InstanceType": P5,
        "InstanceCount": 1,
        "VolumeSizeInGB": 30,
        "KeepAlivePeriodInSeconds": 3600,
    }

    def test_a_completed_job_leaves_one_which_can_be_ended(self, bench: Bench):
        create(bench, ResourceConfig=self.KEEPING)
        bench.let(READY)
        running = seen(bench)
        bench.let(900)
        ended = seen(bench)
        bench.launcher.end_warm_pool("job1")
        after = seen(bench)
        assert (running.warm_pool, ended.warm_pool, after.warm_pool) == (False, True, False)
        assert ended.status is Status.COMPLETED

    def test_a_stopped_job_leaves_none_where_told(self, bench: Bench):
        create(bench, ResourceConfig=self.KEEPING)
        bench.let(READY)
        assert bench.launcher.stop("job1", end_warm_pool=True)
        bench.let(300)
        report = seen(bench)
        assert (report.status, report.warm_pool) == (Status.STOPPED, False)

    def test_it_leaves_one_where_not(self, bench: Bench):
        create(bench, ResourceConfig=self.KEEPING)
        bench.let(READY)
        assert bench.launcher.stop("job1", end_warm_pool=False)
        bench.let(300)
        report = seen(bench)
        assert report.warm_pool

    def test_ending_what_is_not_there_is_nothing(self, bench: Bench):
        create(bench)
        bench.launcher.end_warm_pool("job1")
        bench.let(DONE)
        bench.launcher.end_warm_pool("job1")
        bench.launcher.end_warm_pool("missing")
        report = seen(bench)
        assert report.status is Status.COMPLETED


class Chooses:
    """Among preferences SageMaker chooses, and only among those that the attempt leaves it."""

    def test_it_holds_the_worst_case_until_one_is_chosen(self, bench: Bench):
        create(bench, choices=(P5, G5), ResourceConfig=preferring(P5, G5, count=2))
        before = seen(bench)
        assert bench.launcher.units_of("job1") == {P5: 2, G5: 2}
        bench.let(READY)
        after = seen(bench)
        assert (before.chosen_type, after.chosen_type) == (None, P5)
        assert bench.launcher.units_of("job1") == {P5: 2}

    def test_omitted_types_are_never_chosen(self, bench: Bench):
        create(bench, choices=(P4, G5), ResourceConfig=preferring(P5, P4, G5))
        assert bench.launcher.units_of("job1") == {P4: 1, G5: 1}
        bench.let(READY)
        report = seen(bench)
        assert report.chosen_type == P4


class RunsOut:
    """The account's limit and EC2's capacity end somewhere."""

    def test_beyond_the_accounts_limit_nothing_is_created(self, bench: Bench):
        bench.limit(P5, 2)
        create(bench, count=2)
        with pytest.raises(CapacityExhausted, match=r"is 2 Instances, with current utilization of 2 Instances"):
            create(bench, "job2")
        assert bench.launcher.describe("job2") is None

    def test_a_limit_that_the_attempt_itself_has_reached_is_no_obstacle(self, bench: Bench):
        bench.limit(P5, 1)
        create(bench)
        assert create(bench) is CreateResult.ALREADY_THERE

    def test_a_job_that_finds_no_instances_fails_for_that_and_says_so(self, bench: Bench):
        bench.capacity(P5, 0)
        create(bench)
        bench.let(READY)
        waiting = seen(bench)
        bench.let(4 * 3600)
        failed = seen(bench)
        assert (waiting.secondary, waiting.at_work) == ("Pending", False)
        assert failed.failure_class is FailureClass.CAPACITY


class Plans:
    """A training plan's capacity comes and goes, perhaps several times, and takes its jobs with it."""

    def test_it_says_when_its_capacity_is_there_now_or_next(self, bench: Bench):
        began = bench.now()
        arn = bench.buy_plan("spring", P5, (1, 4), (24, 28))
        hours = {hour: began + timedelta(hours=hour) for hour in (1, 4, 24, 28)}
        first, second = (hours[1], hours[4]), (hours[24], hours[28])
        for status, window, hour in (
            (PlanStatus.SCHEDULED, first, 0),
            (PlanStatus.ACTIVE, first, 1),
            (PlanStatus.SCHEDULED, second, 4),
            (PlanStatus.ACTIVE, second, 24),
            (PlanStatus.EXPIRED, (hours[1], hours[28]), 28),
        ):
            bench.let((began + timedelta(hours=hour) - bench.now()).total_seconds())
            assert bench.launcher.describe_training_plan(arn) == PlanWindow(status, *window, 2)

    def test_one_that_is_not_there_is_none(self, bench: Bench):
        assert bench.launcher.describe_training_plan(NO_PLAN) is None

    def test_a_job_waits_for_it_and_is_stopped_half_an_hour_before_it_ends(self, bench: Bench):
        arn = bench.buy_plan("spring", P5, (1, 3))
        config = {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 1, "TrainingPlanArn": arn}
        create(bench, ResourceConfig=config, Environment={"SIMULATOR_TRAINING_SECONDS": "86400"}, **LONG)
        bench.let(1800)
        waiting = seen(bench)
        bench.let(1800 + READY)
        running = seen(bench)
        held = bench.launcher.units_of("job1")
        bench.let(5400 - READY + 60)
        ended = seen(bench)
        assert (waiting.secondary, waiting.at_work, running.secondary) == ("Pending", False, "Training")
        assert held == {arn: 1}
        assert ended.status is Status.STOPPED


class Interrupts:
    """Spot instances are taken away, and the job goes on later."""

    def test_each_interruption_is_told_in_answers_and_events(self, bench: Bench):
        wait = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
        long = {"SIMULATOR_TRAINING_SECONDS": "3000"}
        create(bench, EnableManagedSpotTraining=True, StoppingCondition=wait, Environment=long)
        for times in (1, 2):
            bench.let(READY + 300)
            bench.interrupt("job1")
            bench.let(1)
            report = seen(bench)
            assert (report.status, report.interruptions) == (Status.IN_PROGRESS, times)
            assert bench.launcher.units_of("job1") == {f"{P5}.spot": 1}
        assert max(report.interruptions for report in bench.reports()) == 2


LONG = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}}
NO_PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/nowhere"
TROUBLES = {"throttled": Throttled, "broken": Unavailable, "silent": Unavailable, "denied": NotPermitted}
CALLS = {
    "CreateTrainingJob": lambda bench: create(bench, "job2"),
    "DescribeTrainingJob": lambda bench: bench.launcher.describe("job1"),
    "DescribeTrainingPlan": lambda bench: bench.launcher.describe_training_plan(NO_PLAN),
    "ListTrainingJobs": open_names,
    "StopTrainingJob": lambda bench: bench.launcher.stop("job1", end_warm_pool=False),
    "UpdateTrainingJob": lambda bench: bench.launcher.end_warm_pool("job1"),
}


class Fails:
    """AWS throttles, breaks, falls silent and denies; every verb can be called again."""

    @pytest.mark.parametrize("trouble", TROUBLES)
    @pytest.mark.parametrize("operation", CALLS)
    def test_trouble_is_told_and_the_next_call_works(self, bench: Bench, operation: str, trouble: str):
        create(bench)
        bench.next_call(operation, trouble)
        with pytest.raises(TROUBLES[trouble]):
            CALLS[operation](bench)
        CALLS[operation](bench)

    @pytest.mark.parametrize("trouble", ["broken", "silent"])
    def test_an_attempt_whose_answer_was_lost_is_already_there(self, bench: Bench, trouble: str):
        bench.next_call("CreateTrainingJob", trouble, after=True)
        with pytest.raises(Unavailable):
            create(bench)
        assert create(bench) is CreateResult.ALREADY_THERE

    def test_a_stop_whose_answer_was_lost_is_a_stop(self, bench: Bench):
        create(bench)
        bench.let(READY)
        bench.next_call("StopTrainingJob", "silent", after=True)
        with pytest.raises(Unavailable):
            bench.launcher.stop("job1", end_warm_pool=False)
        assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ACCEPTED

    @pytest.mark.parametrize("trouble", TROUBLES)
    @pytest.mark.parametrize("operation", ["DescribeTrainingJob", "ListTags"])
    def test_tags_that_cannot_be_read_are_not_absent(self, bench: Bench, operation: str, trouble: str):
        create(bench)
        bench.next_call(operation, trouble)
        with pytest.raises(TROUBLES[trouble]):
            bench.launcher.identify("job1")
        found = bench.launcher.identify("job1")
        assert found is not None
        assert found.owner is Owner.QUEUE

    @pytest.mark.parametrize("trouble", TROUBLES)
    @pytest.mark.parametrize("operation", ["DescribeTrainingJob", "ListTags"])
    def test_an_unknown_owner_of_a_name_is_an_error(self, bench: Bench, operation: str, trouble: str):
        create(bench)
        bench.next_call(operation, trouble)
        with pytest.raises(TROUBLES[trouble]):
            create(bench)
        assert create(bench) is CreateResult.ALREADY_THERE


class Reports:
    """Events and Describe agree."""

    def test_every_event_of_a_job_is_an_observation_that_names_it(self, bench: Bench):
        create(bench, "job1-qstamp-2", number=2, queue_job="job1")
        bench.let(READY)
        bench.launcher.stop("job1-qstamp-2", end_warm_pool=False)
        bench.let(DONE)
        reports = bench.reports()
        assert {report.job_name for report in reports} == {"job1"}
        assert {report.training_job_name for report in reports} == {"job1-qstamp-2"}
        statuses = list(dict.fromkeys(report.status for report in reports))
        assert statuses == [Status.IN_PROGRESS, Status.STOPPING, Status.STOPPED]
        assert any(report.at_work for report in reports)

    def test_the_last_event_and_describe_agree(self, bench: Bench):
        create(bench)
        bench.let(READY)
        bench.launcher.stop("job1", end_warm_pool=False)
        bench.let(DONE)
        report, last = seen(bench), bench.reports()[-1]
        assert (report.status, report.secondary, report.started_at, report.stopping_since) == (
            last.status,
            last.secondary,
            last.started_at,
            last.stopping_since,
        )

    def test_events_of_others_are_none_of_ours(self, bench: Bench):
        tags = [{"Key": "trainmaster:queue", "Value": "another"}, {"Key": "trainmaster:job", "Value": "job1"}]
        bench.create_elsewhere(a_request("job1", Tags=tags))
        bench.create_elsewhere(a_request("job2", priority=3))
        bench.let(DONE)
        assert bench.reports() == []
