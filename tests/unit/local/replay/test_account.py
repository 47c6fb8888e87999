"""An account's own history as a trace, over a simulated account and over answers as AWS gives them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from builders import P5, a_request
from doc_blocks import blocks, commands
from trainmaster.local.replay.program import main
from trainmaster.local.replay.trace.account import MAX_PAUSE_SECONDS, MAX_TRIES, Account, trace_of
from trainmaster.local.replay.trace.reading import read_trace
from trainmaster.local.replay.trace.trace import BadTrace
from trainmaster.local.simulator import Profile, SageMakerSimulator, VirtualClock

QUICK = Profile(
    requesting_seconds=0, starting_seconds=0, downloading_seconds=0, uploading_seconds=0, training_seconds=100
)
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)


class World:
    """A simulated account, and what the reader of its history has waited and told."""

    def __init__(self):
        self.simulator = SageMakerSimulator(VirtualClock(), profile=QUICK)
        self.slept = []
        self.told = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.simulator.advance(seconds)

    def create(self, name, *, after=0.0, **members):
        self.simulator.advance(after)
        self.simulator.call("CreateTrainingJob", **a_request(name, **members))

    def history(self, since=LONG_AGO):
        def on_progress(*what):
            self.told.append(what)

        return Account(self.simulator.client(), self.sleep, on_progress).history(since)


@pytest.fixture
def world():
    return World()


def test_each_job_that_has_ended_is_there_with_its_accelerators(world):
    world.create("first", count=2)
    world.create("second", after=30, StoppingCondition={"MaxRuntimeInSeconds": 7200})
    world.simulator.run_until_idle()
    world.create("still-running")
    first, second = world.history()
    assert (first.job_id, first.submit, first.duration, first.gpus) == ("first", 0, 100, 16)
    assert (second.job_id, second.submit, second.duration, second.gpus) == ("second", 30, 100, 8)
    assert second.max_runtime == 7200
    assert first.share == a_request("first")["RoleArn"].rpartition("/")[2]


def test_all_pages_are_read_at_no_more_than_two_a_second(world):
    for index in range(250):
        world.create(f"job{index:03d}")
    world.simulator.run_until_idle()
    assert [job.job_id for job in world.history()] == [f"job{index:03d}" for index in range(250)]
    assert world.slept == [0.5, 0.5]
    assert world.told[0] == ("listing jobs", 100, None)
    assert world.told[-1] == ("reading jobs", 249, 250)


def test_jobs_from_before_are_left_out(world):
    world.create("before")
    world.simulator.advance(1000)
    since = world.simulator.now()
    world.create("after", after=10)
    world.simulator.run_until_idle()
    assert [job.job_id for job in world.history(since)] == ["after"]


@pytest.mark.parametrize("operation", ["ListTrainingJobs", "DescribeTrainingJob"])
def test_throttling_is_waited_for_ever_longer(world, operation):
    world.create("job1")
    world.simulator.run_until_idle()
    world.simulator.faults.inject(operation, "ThrottlingException", times=3)
    assert len(world.history()) == 1
    assert world.slept == [1, 2, 4]


def test_endless_throttling_is_told(world):
    world.simulator.faults.inject("ListTrainingJobs", "ThrottlingException", times=None)
    with pytest.raises(ClientError, match="Throttling"):
        world.history()
    assert len(world.slept) == MAX_TRIES - 1
    assert max(world.slept) == MAX_PAUSE_SECONDS


def test_another_error_is_not_tried_again(world):
    world.simulator.faults.inject("ListTrainingJobs", "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDenied"):
        world.history()
    assert world.slept == []


def test_an_account_without_any_is_told_so(world):
    with pytest.raises(BadTrace, match="no training job on accelerators"):
        world.history()


def test_attempts_of_one_job_of_a_queue_are_one_job(world):
    world.create("job1")
    world.simulator.advance(40)
    world.simulator.call("StopTrainingJob", TrainingJobName="job1")
    world.simulator.advance(60)
    world.create("job1-qstamp-2")
    world.simulator.run_until_idle()
    (job,) = world.history()
    assert job.job_id == "job1"
    assert (job.submit, job.duration) == (0, 50 + 100)  # it goes on for 10 s after it was told to stop


# -- answers as AWS gives them

START = datetime(2026, 1, 1, tzinfo=UTC)


def answer(name="job1", status="Completed", config=None, **members):
    return {
        "TrainingJobName": name,
        "TrainingJobStatus": status,
        "CreationTime": START,
        "TrainingStartTime": START + timedelta(seconds=100),
        "TrainingEndTime": START + timedelta(seconds=400),
        "RoleArn": "arn:aws:iam::111122223333:role/teams/vision",
        "ResourceConfig": config or {"InstanceType": P5, "InstanceCount": 1},
        **members,
    }


@pytest.mark.parametrize(
    ("config", "gpus"),
    [
        ({"InstanceType": P5, "InstanceCount": 4}, 32),
        ({"InstanceType": "ml.g5.xlarge", "InstanceCount": 3}, 3),
        ({"InstanceGroups": [{"InstanceType": P5, "InstanceCount": 2}, {"InstanceType": "ml.c5.large"}]}, 16),
        ({"InstancePreferences": [], "SelectedInstanceType": "ml.trn1.32xlarge", "SelectedInstanceCount": 2}, 32),
    ],
)
def test_accelerators_are_counted_for_every_kind_of_request(config, gpus):
    (job,) = trace_of([answer(config=config)])
    assert (job.gpus, job.duration, job.share) == (gpus, 300, "vision")


@pytest.mark.parametrize(
    "left_out",
    [
        answer(config={"InstanceType": "ml.m5.large", "InstanceCount": 2}),
        answer(status="InProgress"),
        answer(TrainingStartTime=None),
        answer(ResourceConfig=None),
    ],
)
def test_jobs_without_accelerators_or_end_are_omitted(left_out):
    assert trace_of([left_out]) == []


def test_a_spot_job_counts_the_time_that_it_trained():
    (job,) = trace_of([answer(TrainingTimeInSeconds=250, BillableTimeInSeconds=80)])
    assert job.duration == 250


# -- the program


def test_the_history_can_be_saved_and_replayed_later(world, tmp_path, capsys, monkeypatch):
    now = datetime.now(UTC)
    world.simulator.clock.move_to(now - timedelta(days=1))
    for index in range(3):
        world.create(f"job{index}", after=10)
    world.simulator.run_until_idle()
    monkeypatch.chdir(tmp_path)
    (block,) = [each for each in blocks() if each.page == "docs/how-to/replay.md" and each.mark == "run by"]
    ((_, _, *arguments),) = commands(block)
    path = arguments[-1]
    assert main(arguments, connect=lambda _: world.simulator.client(), sleep=world.sleep) == 0
    assert [(job.job_id, job.submit, job.gpus) for job in read_trace(path)] == [
        ("job0", 0, 8),
        ("job1", 10, 8),
        ("job2", 20, 8),
    ]
    capsys.readouterr()
    assert main([path, "--cap", "8", "--policy", "fifo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan_s"] == 300


@pytest.mark.parametrize(("code", "expected"), [("AccessDeniedException", 5), ("ServiceUnavailable", 6)])
def test_aws_errors_are_reported_with_their_code(world, capsys, code, expected):
    world.simulator.faults.inject("ListTrainingJobs", code, times=None)
    arguments = ["--from-account", "--cap", "8"]
    assert main(arguments, connect=lambda _: world.simulator.client(), sleep=world.sleep) == expected
    assert code in capsys.readouterr().err


def test_missing_credentials_are_told(capsys):
    def connect(_):
        raise NoCredentialsError

    assert main(["--from-account", "--cap", "8"], connect=connect) == 5
    assert "Unable to locate credentials" in capsys.readouterr().err


def test_an_account_without_jobs_ends_with_two(world, capsys):
    arguments = ["--from-account", "--cap", "8"]
    assert main(arguments, connect=lambda _: world.simulator.client(), sleep=world.sleep) == 2
    assert "the account: no training job" in capsys.readouterr().err
