"""Logs of scripts that are simulated, for `trainmaster logs` and the SDKs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated import QUICK, TRAINING_FROM, Account, resources

from trainmaster.local.simulator.events.log_lines import LOG_GROUP, LogLine

SAVED = {"CheckpointConfig": {"S3Uri": "s3://bucket/job1"}}


class Logged(Account):
    """An account that keeps the lines of its logs."""

    def __init__(self, **settings) -> None:
        self.lines: list[LogLine] = []
        super().__init__(logs=self.lines.append, **settings)

    def of(self, stream: str) -> list[tuple[float, str]]:
        """Seconds since the start, and text, of each line in the streams whose names begin so."""
        return [
            (self.seconds(line.at), line.text.removeprefix("[simulated] "))
            for line in self.lines
            if line.stream.startswith(stream)
        ]

    def texts(self, stream: str) -> list[str]:
        return [text for _, text in self.of(stream)]


def with_profile(**changes) -> Logged:
    return Logged(profile=replace(QUICK, log_seconds=30, **changes))


def test_a_simulated_script_logs_its_start_progress_and_end():
    account = with_profile()
    account.create()
    account.simulator.run_until_idle()
    assert account.of("job1/algo-1-") == [
        (TRAINING_FROM, "This machine runs no container for the image " + image(account) + ". Training takes 100 s."),
        (TRAINING_FROM + 30, "30% of the training is done."),
        (TRAINING_FROM + 60, "60% of the training is done."),
        (TRAINING_FROM + 90, "90% of the training is done."),
        (TRAINING_FROM + 100, "Training has ended."),
    ]
    assert {line.group for line in account.lines} == {LOG_GROUP}
    assert all(line.text.startswith("[simulated] ") for line in account.lines)


def image(account: Account) -> str:
    return account.describe()["AlgorithmSpecification"]["TrainingImage"].rpartition("/")[2]


def test_each_instance_has_a_stream_with_the_same_lines():
    account = with_profile()
    account.create(ResourceConfig=resources(count=2))
    account.simulator.run_until_idle()
    assert len({line.stream for line in account.lines}) == 2
    assert account.texts("job1/algo-1-") == account.texts("job1/algo-2-")


def test_the_reason_of_a_failure_is_the_last_line():
    account = with_profile()
    account.create(Environment={"SIMULATOR_OUTCOME": "failed", "SIMULATOR_FAILURE_REASON": "out of memory"})
    account.simulator.run_until_idle()
    assert account.texts("job1")[-1] == "Training failed: out of memory."


def test_an_internal_error_starts_a_second_stream_if_sagemaker_retries():
    account = with_profile(internal_errors=1)
    account.create(RetryStrategy={"MaximumRetryAttempts": 1})
    account.simulator.run_until_idle()
    streams = sorted({line.stream for line in account.lines})
    assert [account.texts(stream)[-1] for stream in streams] == [
        "Training failed: internal error of SageMaker, which starts the script again.",
        "Training has ended.",
    ]


def test_a_stopped_script_and_the_attempt_that_continues_it_tell_how_far_they_are():
    account = with_profile()
    account.create(**SAVED)
    account.advance(TRAINING_FROM + 40)
    account.stop()
    account.create("job2", **SAVED)
    account.simulator.run_until_idle()
    assert account.texts("job1/")[-1] == "SIGTERM, with 40% of the training done."
    start, continues, *progress = account.texts("job2/")
    assert start.endswith("Training takes 60 s.")
    assert continues == "Continuing: 40% of the training was saved."
    assert progress == ["70% of the training is done.", "Training has ended."]


def test_lines_follow_the_work_when_the_pace_changes():
    account = with_profile()
    account.create()
    account.advance(TRAINING_FROM + 40)
    account.simulator.profiles.pace = lambda _: 2
    account.simulator.change_pace("job1")
    account.simulator.run_until_idle()
    assert account.of("job1")[1:] == [
        (TRAINING_FROM + 30, "30% of the training is done."),
        (TRAINING_FROM + 70, "Training has ended."),
    ]


@pytest.mark.parametrize(("seconds", "speed", "lines"), [(0, 1, 0), (60, 1, 1), (60, 10, 1), (9, 1, 11)])
def test_lines_are_as_far_apart_as_the_profile_says_at_any_speed(seconds, speed, lines):
    account = Logged(profile=replace(QUICK, log_seconds=seconds), speed=speed)
    account.create()
    account.simulator.run_until_idle()
    assert len([text for text in account.texts("job1") if "is done" in text]) == lines


def test_without_a_receiver_of_lines_there_are_no_timers_for_them():
    account = Account(profile=replace(QUICK, log_seconds=1))
    account.create()
    account.advance(TRAINING_FROM + 5)
    assert account.seconds(account.simulator.next_time()) == TRAINING_FROM + 100
