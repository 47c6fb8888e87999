"""A hostile SageMaker: what it may do to its callers, and what it may not."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from simulated import QUICK, TRAINING_FROM, Account, refusal, resources

from builders import G5, P5, a_request
from samples import examples
from trainmaster.local.simulator import ApiError, Hostility
from trainmaster.local.simulator.service.engine import Engine

LIMITS = {P5: 3, G5: 4}
NAMES = st.sampled_from([f"job{number}" for number in range(6)])
SEEDS = st.integers(0, 2**32)
LAGS = st.floats(0.5, 60)
CHANCES = st.sampled_from([0.0, 0.2, 1.0])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("warm"), NAMES),
        st.tuples(st.just("spot"), NAMES),
        st.tuples(st.just("stop"), NAMES),
        st.tuples(st.just("keep_alive"), NAMES, st.sampled_from([0, 100])),
        st.tuples(st.just("tag"), NAMES, st.sampled_from(["a", "b"])),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("advance"), st.floats(0, 100, allow_nan=False)),
        st.tuples(st.just("look"), NAMES),
    ),
    max_size=30,
)
HOSTILITIES = st.builds(
    Hostility,
    describe_lag=st.floats(0, 60), list_lag=st.floats(0, 60), tags_lag=st.floats(0, 60),
    failed_calls=CHANCES, lost_answers=CHANCES, late_creates=CHANCES, late_seconds=st.floats(0, 60),
    capacity_errors=CHANCES, capacity_error_seconds=st.floats(0, 200), internal_errors=CHANCES,
    stuck_stops=CHANCES, stuck_seconds=st.floats(0, 200), refuse_repeated_stops=CHANCES,
    spot_interruptions=st.floats(0, 60), clock_offset=st.floats(-30, 30),
    rates=st.sampled_from([{}, {"CreateTrainingJob": 0.1, "DescribeTrainingJob": 1}]),
)  # fmt: skip
SLOW = [HealthCheck.too_slow]


class Hostile(Account):
    """An account whose SageMaker misbehaves, and the truth beside it."""

    def __init__(self, hostility: Hostility, seed: int = 0, **options: Any) -> None:
        super().__init__(hostility=hostility, rng=random.Random(seed), **options)
        self.client = self.simulator.direct()

    def truth(self, operation: str, **members: Any) -> Any:
        return self.simulator.call(operation, **members)

    def arn(self, name: str) -> str:
        return self.simulator.account.arn(name)

    def tag(self, name: str, value: str) -> None:
        self.truth("AddTags", ResourceArn=self.arn(name), Tags=[{"Key": "k", "Value": value}])

    def delete(self, name: str) -> None:
        self.truth("DeleteTrainingJob", TrainingJobName=name)

    def reads(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        return [
            ("DescribeTrainingJob", {"TrainingJobName": name}),
            ("ListTrainingJobs", {"MaxResults": 100}),
            ("ListTags", {"ResourceArn": self.arn(name)}),
        ]

    def seen(self, operation: str, members: dict[str, Any]) -> Any:
        """The answer of a client, or the error in it."""
        return outcome(lambda: self.simulator.direct()._call(operation, members))


def outcome(call: Any) -> Any:
    try:
        return call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    except BotoCoreError as error:
        return type(error).__name__


def do(account: Hostile, step: tuple[Any, ...]) -> Any:
    what, *args = step
    if what == "look":
        return [account.seen(*read) for read in account.reads(args[0])]
    call = getattr(account, what)
    try:
        return outcome(lambda: call(*args))
    except ApiError as error:
        return str(error)


def run(account: Hostile, steps: Any) -> list[Any]:
    return [do(account, step) for step in steps]


def true_answers(account: Hostile, name: str) -> list[Any]:
    def answer(operation: str, members: dict[str, Any]) -> Any:
        try:
            return account.truth(operation, **members)
        except ApiError as error:
            return error.code

    return [answer(*read) for read in account.reads(name)]


@examples(40, deadline=None, suppress_health_check=SLOW)
@given(steps=STEPS, hostility=HOSTILITIES, seed=SEEDS)
def test_without_hostility_answers_equal_the_ideal_ones_whether_or_not_there_was_any(steps, hostility, seed):
    ideal, ended = Hostile(Hostility()), Hostile(hostility, seed)
    ended.simulator.hostility = Hostility()
    assert type(ended.simulator._engine) is Engine
    assert run(ideal, steps) == run(ended, steps)
    for number in range(6):
        name = f"job{number}"
        assert [ideal.seen(*read) for read in ideal.reads(name)] == true_answers(ideal, name)


@examples(60, deadline=None, suppress_health_check=SLOW)
@given(steps=STEPS, describe=LAGS, lists=LAGS, tags=LAGS, seed=SEEDS)
@example(
    steps=[("create", "job0"), ("stop", "job0"), ("advance", 7.0), ("create", "job1"), ("delete", "job0")],
    describe=1.0,
    lists=1.0,
    tags=1.0,
    seed=0,
)
def test_a_lagging_answer_is_one_that_was_true_within_the_lag(steps, describe, lists, tags, seed):
    account = Hostile(Hostility(describe_lag=describe, list_lag=lists, tags_lag=tags), seed, limits=LIMITS)
    truths: list[tuple[Any, dict[str, list[Any]]]] = []

    def note() -> None:
        account.simulator.tick()
        truths.append((account.simulator.now(), {name: views(true_answers(account, name)) for name in names}))

    names = [f"job{number}" for number in range(6)]
    note()
    for step in steps:
        if step[0] == "advance":
            end = account.simulator.now() + timedelta(seconds=step[1])
            while (time := account.simulator.next_time()) is not None and time <= end:
                account.simulator.run_until(time)
                note()
            account.simulator.run_until(end)
        elif step[0] != "look":
            do(account, step)
        note()
    for name in names:
        for index, (read, lag) in enumerate(zip(account.reads(name), (describe, lists, tags), strict=True)):
            seen = views([account.seen(*read)])[0]
            horizon = account.simulator.now() - timedelta(seconds=lag)
            before = [number for number, (time, _) in enumerate(truths) if time <= horizon]
            allowed = [told[name][index] for _, told in truths[before[-1] if before else 0 :]]
            assert seen in allowed or (index == 2 and seen == {"Tags": []}), (name, read)


def views(answers: list[Any]) -> list[Any]:
    """The answers without the seconds for which a warm pool has been kept, which pass without a change."""
    return [without_seconds(answer) for answer in answers]


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_seconds(each) for name, each in value.items() if "Retained" not in name}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value


@examples(40, deadline=None)
@given(lag=LAGS, age=st.floats(0, 100), seed=SEEDS)
def test_a_job_older_than_the_lag_is_always_found(lag, age, seed):
    account = Hostile(Hostility(describe_lag=lag, list_lag=lag, tags_lag=lag), seed)
    account.create()
    account.advance(lag + age)
    for _ in range(10):
        assert account.describe()["TrainingJobName"] == "job1"
        assert len(account.client.list_training_jobs()["TrainingJobSummaries"]) == 1
        account.client.list_tags(ResourceArn=account.arn("job1"))


def test_a_young_job_is_not_found_absent_or_without_tags_and_reads_are_not_monotonic():
    account = Hostile(Hostility(describe_lag=10, list_lag=10, tags_lag=10))
    account.create(Tags=[{"Key": "k", "Value": "a"}])
    account.advance(5)
    seen = [do(account, ("look", "job1")) for _ in range(50)]
    described = [each[0] if isinstance(each[0], str) else "found" for each in seen]
    assert set(described) == {"ValidationException", "found"}
    assert "found ValidationException" in " ".join(described)
    assert {len(each[1]["TrainingJobSummaries"]) for each in seen} == {0, 1}
    tags = {each[2] if isinstance(each[2], str) else len(each[2]["Tags"]) for each in seen}
    assert tags == {"ValidationException", 0, 1}
    account.simulator.hostility = Hostility()
    assert account.describe()["TrainingJobName"] == "job1"


def test_memory_is_bounded_by_the_lag():
    account = Hostile(Hostility(describe_lag=10), limits={})
    for number in range(50):
        account.create(f"job{number}")
        account.advance(400)
    history = account.simulator._layer._history
    assert sum(map(len, history._versions.values())) < 12
    assert len(history._recorded) < 12


@examples(40, deadline=None)
@given(seed=SEEDS)
def test_a_lost_answer_has_its_effect_once(seed):
    account = Hostile(Hostility(lost_answers=1), seed)
    with pytest.raises((ClientError, BotoCoreError)):
        account.create()
    assert account.simulator.quotas.used(P5) == 1
    account.advance(TRAINING_FROM)
    with pytest.raises((ClientError, BotoCoreError)):
        account.stop()
    assert account.truth("DescribeTrainingJob", TrainingJobName="job1")["TrainingJobStatus"] == "Stopping"
    assert [status for status, _ in account.told()].count("Stopping") == 1


@examples(40, deadline=None)
@given(seed=SEEDS)
def test_a_failed_call_has_no_effect(seed):
    account = Hostile(Hostility(failed_calls=1), seed)
    with pytest.raises((ClientError, BotoCoreError)):
        account.create()
    account.simulator.run_until_idle()
    assert account.truth("ListTrainingJobs")["TrainingJobSummaries"] == []


@examples(60, deadline=None)
@given(seed=SEEDS, tries=st.integers(1, 5), seconds=st.floats(0, 100))
def test_late_creates_take_effect_at_most_once(seed, tries, seconds):
    account = Hostile(Hostility(late_creates=1, late_seconds=seconds), seed)
    for _ in range(tries):
        with pytest.raises((ClientError, BotoCoreError)):
            account.create()
    account.advance(seconds)
    assert account.simulator.quotas.used(P5) == (1 if seconds < 130 else 0)
    account.simulator.run_until_idle()
    assert [status for status, _ in account.told()].count("Completed") == 1


def test_a_late_create_meets_the_name_and_the_quota_of_its_arrival():
    account = Hostile(Hostility(late_creates=1, late_seconds=100), limits={P5: 1})
    for name in ("job1", "job2"):
        with pytest.raises((ClientError, BotoCoreError)):
            account.create(name)
    account.truth("CreateTrainingJob", **a_request("job1", HyperParameters={"mine": "1"}))
    account.advance(100)
    found = account.truth("ListTrainingJobs")["TrainingJobSummaries"]
    assert [each["TrainingJobName"] for each in found] == ["job1"]
    assert account.truth("DescribeTrainingJob", TrainingJobName="job1")["HyperParameters"] == {"mine": "1"}


def test_late_creates_arrive_when_hostility_ends():
    account = Hostile(Hostility(late_creates=1, late_seconds=1e6), seed=3)
    with pytest.raises((ClientError, BotoCoreError)):
        account.create()
    account.simulator.hostility = Hostility()
    assert account.status() == ("InProgress", "Starting")
    account.simulator.run_until_idle()
    assert len([each for each in account.told() if each[0] == "Completed"]) == 1


def test_a_late_create_that_arrived_at_the_end_of_hostility_does_not_arrive_again():
    account = Hostile(Hostility(late_creates=1, late_seconds=1e6), seed=3)
    with pytest.raises((ClientError, BotoCoreError)):
        account.create()
    account.simulator.hostility = Hostility()
    account.advance(200)
    account.delete("job1")
    account.simulator.run_until_idle()
    assert account.truth("ListTrainingJobs")["TrainingJobSummaries"] == []


def test_a_capacity_error_comes_when_it_should_although_capacity_is_free():
    account = Hostile(Hostility(capacity_errors=1, capacity_error_seconds=60))
    account.create()
    account.advance(30)
    assert account.status() == ("InProgress", "Pending")
    account.simulator.set_capacity(P5, 100)
    account.advance(29)
    assert account.status() == ("InProgress", "Pending")
    account.advance(1)
    assert account.describe()["FailureReason"].startswith("CapacityError: ")
    assert account.simulator.quotas.used(P5) == 0


def test_an_internal_error_strikes_while_the_script_runs():
    account = Hostile(Hostility(internal_errors=1))
    account.create()
    account.advance(TRAINING_FROM + 110)
    seen = account.describe()
    assert (seen["TrainingJobStatus"], seen["FailureReason"][:20]) == ("Failed", "InternalServerError:")
    assert account.passed() == ["Starting", "Downloading", "Training", "Uploading", "Failed"]


def test_a_stuck_stop_ends_after_its_time():
    account = Hostile(Hostility(stuck_stops=1, stuck_seconds=500))
    account.create()
    account.advance(TRAINING_FROM + 1)
    account.stop()
    account.advance(499)
    assert account.status() == ("Stopping", "Stopping")
    assert account.simulator.quotas.used(P5) == 1
    account.advance(1 + QUICK.uploading_seconds)
    assert account.status() == ("Stopped", "Stopped")


def test_a_repeated_stop_is_refused():
    account = Hostile(Hostility(refuse_repeated_stops=1))
    account.create()
    account.advance(TRAINING_FROM + 1)
    account.stop()
    code, text = refusal(account.stop)
    assert (code, text) == (
        "ValidationException", "The request was rejected because the training job is in status Stopping.",
    )  # fmt: skip


def test_spot_jobs_are_interrupted_about_as_often_as_expected():
    account = Hostile(Hostility(spot_interruptions=60), limits={P5: 50}, profile=QUICK)
    for number in range(40):
        account.spot(f"job{number}", CheckpointConfig={"S3Uri": f"s3://b/{number}"})
    account.create("on-demand")
    account.simulator.run_until_idle()
    interrupted = Counter(each["detail"]["TrainingJobName"] for each in account.events
                          if each["detail"]["SecondaryStatus"] == "Interrupted")  # fmt: skip
    assert "on-demand" not in interrupted
    # Each job runs for 100 s and downloads for 10 s in each of its runs: about two interruptions.
    assert 40 <= interrupted.total() <= 160


def test_sagemakers_clock_is_ahead_in_answers_filters_and_events():
    account = Hostile(Hostility(clock_offset=90))
    account.create()
    account.simulator.run_until_idle()
    seen, true = account.describe(), account.truth("DescribeTrainingJob", TrainingJobName="job1")
    ahead = timedelta(seconds=90)
    for name in ("CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime"):
        assert seen[name] == true[name] + ahead
    pairs = zip(seen["SecondaryStatusTransitions"], true["SecondaryStatusTransitions"], strict=True)
    assert all(told["StartTime"] == really["StartTime"] + ahead for told, really in pairs)
    detail = account.events[-1]["detail"]
    assert detail["TrainingEndTime"] == (true["TrainingEndTime"] + ahead).timestamp() * 1000
    assert account.events[-1]["time"] == (true["TrainingEndTime"] + ahead).strftime("%Y-%m-%dT%H:%M:%SZ")
    created = seen["CreationTime"]
    second = timedelta(seconds=1)
    found = account.client.list_training_jobs(CreationTimeAfter=created - second)["TrainingJobSummaries"]
    assert [each["CreationTime"] for each in found] == [created]
    assert account.client.list_training_jobs(CreationTimeAfter=created)["TrainingJobSummaries"] == []


def test_rates_apply_to_clients_and_not_to_the_truth():
    account = Hostile(Hostility(rates={"StopTrainingJob": 1}))
    account.create()
    account.stop()
    assert refusal(account.stop)[0] == "ThrottlingException"
    account.truth("StopTrainingJob", TrainingJobName="job1")
    account.advance(1)
    account.stop()


@examples(30, deadline=None, suppress_health_check=SLOW)
@given(steps=STEPS, hostility=HOSTILITIES, seed=SEEDS)
@example(steps=[("create", "job1"), ("advance", 50), ("look", "job1")], hostility=Hostility.moderate(), seed=1)
def test_the_same_seed_gives_the_same_run(steps, hostility, seed):
    runs = []
    for _ in range(2):
        account = Hostile(hostility, seed, limits=LIMITS)
        runs.append((run(account, steps), account.events))
    assert runs[0] == runs[1]


@examples(60, deadline=None, suppress_health_check=SLOW)
@given(steps=STEPS, hostility=HOSTILITIES, seed=SEEDS, again=HOSTILITIES)
@example(steps=[("spot", "job0")], hostility=Hostility(spot_interruptions=1e-300), seed=0, again=Hostility())
def test_quotas_are_conserved_and_every_job_ends_once(steps, hostility, seed, again):
    account = Hostile(hostility, seed, limits=LIMITS, spot_limits=LIMITS)
    for step in steps:
        do(account, step)
        assert account.simulator.quotas.used(P5) <= LIMITS[P5]
    account.simulator.hostility = again
    run(account, steps)
    account.simulator.hostility = Hostility()
    account.simulator.run_until_idle()
    assert all(count == 0 for count in account.simulator.quotas._used.values())
    assert all(count == 0 for count in account.simulator._ec2._running.values())
    for each in account.truth("ListTrainingJobs", MaxResults=100)["TrainingJobSummaries"]:
        assert each["TrainingJobStatus"] in {"Completed", "Failed", "Stopped"}


def test_boto3_clients_meet_the_same_errors():
    account = Account(hostility=Hostility(failed_calls=1))
    kinds = set()
    for _ in range(60):
        with pytest.raises((ClientError, BotoCoreError)) as caught:
            account.create()
        answer = getattr(caught.value, "response", None)
        kinds.add(answer["Error"]["Code"] if answer else caught.type.__name__)
    assert kinds == {
        "InternalFailure", "ServiceUnavailable", "ThrottlingException",
        "EndpointConnectionError", "ReadTimeoutError", "ConnectionClosedError",
    }  # fmt: skip


def test_quotas_can_be_changed_at_run_time():
    account = Account(limits={P5: 1})
    account.create()
    assert refusal(account.create, "job2")[0] == "ResourceLimitExceeded"
    account.simulator.set_limit(P5, 2)
    account.create("job2")
    account.simulator.set_limit(P5, 0, spot=True)
    assert refusal(account.spot, "job3")[0] == "ResourceLimitExceeded"
    account.simulator.set_limit(P5, None)
    account.create("job3", ResourceConfig=resources(count=9))


@pytest.mark.parametrize(
    "fields",
    [{"failed_calls": 2}, {"lost_answers": -0.1}, {"describe_lag": -1}, {"late_seconds": float("nan")},
     {"rates": {"Stop": 1}}, {"rates": {"StopTrainingJob": 0}}],
)  # fmt: skip
def test_values_outside_their_ranges_are_refused(fields):
    with pytest.raises(ValueError, match=r"must be|is not an operation"):
        Hostility(**fields)


def test_a_replaced_hostility_is_read_back():
    account = Account()
    assert account.simulator.hostility == Hostility()
    account.simulator.hostility = Hostility.moderate()
    with suppress(ClientError, BotoCoreError):
        account.create()
    assert account.simulator.hostility == Hostility.moderate()
