"""Callback steps of SageMaker Pipelines that wait for jobs: each ends once, with its job's end, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from builders import ADA, P5
from fake_pipelines import PIPELINE, SENDER, Step
from tables import new_table
from trainmaster.domain.jobs.job import ENDED
from trainmaster.domain.jobs.listing import Filter
from trainmaster.handlers.pipelines import consume
from trainmaster.service.change import cancel
from world import BRISK, Faults, Killed, World, a_request, fault_at, in_chunks, kills

CHUNKS = 20
ANY = Filter()
PRINCIPAL = "arn:aws:sts::111122223333:assumed-role/nightly-pipeline"

pytestmark = pytest.mark.usefixtures("quiet")


def asked(name: str = "", **request: Any) -> dict[str, Any]:
    """A request without tags, and without a name unless one is given, as `QueueStep` sends it."""
    left_out = {"Tags"} if name else {"Tags", "TrainingJobName"}
    return {key: value for key, value in a_request(name or "any", **request).items() if key not in left_out}


class PipelinesWorld(World):
    """A queue whose jobs steps wait for."""

    def send(self, *records: dict[str, Any], tries: int = 5) -> list[str]:
        """Deliver messages until they are consumed, or some times; return those that are left."""
        left = list(records)
        for _ in range(tries):
            self.faults.armed = True
            try:
                failed = {
                    each["itemIdentifier"]
                    for each in consume(self.application(), {"Records": left})["batchItemFailures"]
                }
                left = [record for record in left if record["messageId"] in failed]
            except Killed:
                self.killed += 1
            finally:
                self.faults.armed = False
            if not left:
                break
        return [record["messageId"] for record in left]

    def execute(self, execution: str, request: dict[str, Any], queue: dict[str, Any] | None = None) -> Step:
        step = self.pipelines.start(execution, request, queue)
        assert self.send(step.record()) == []
        return step

    def stop(self, step: Step) -> None:
        """StopPipelineExecution: the step gets another message, and the execution waits for its answer."""
        self.pipelines.status[step.execution] = "Stopping"
        assert self.send(step.record("Stopping")) == []

    def names(self) -> list[str]:
        return sorted(job.name for job in self.api_context.store.list_jobs(ANY, limit=50).jobs)


def a_world(client: Any = None, **arguments: Any) -> PipelinesWorld:
    return PipelinesWorld(client, profile=BRISK, pools=f"{P5}=1", pipelines=True, **arguments)


@contextmanager
def on_dynamodb(**arguments: Any) -> Iterator[PipelinesWorld]:
    with new_table() as client:
        yield a_world(client, **arguments)


def outcome(world: PipelinesWorld, step: Step, seconds: int = 3_000) -> tuple[str, Any]:
    for _ in range(0, seconds, 30):
        if step.outcome is not None:
            return step.outcome
        world.run(30, step=10)
    raise AssertionError(world.pipelines.steps)


@pytest.mark.parametrize("tells_role", [True, False])
def test_a_completed_job_ends_its_step_with_outputs(tells_role):
    world = a_world()
    world.pipelines.tells_role = tells_role
    step = world.execute("abcdefghij12", asked(training_seconds=60), {"priority": 3})
    result, outputs = outcome(world, step)
    (name,) = world.names()
    job = world.job(name)
    assert result == "Success"
    assert outputs["TrainingJobName"] == name
    assert outputs["TrainingJobArn"].endswith(f":training-job/{name}")
    assert outputs["ModelArtifacts"].startswith(f"s3://bucket/output/{name}/")
    assert (job.priority, job.submitted_by) == (3, PRINCIPAL)
    assert job.history[0].reason == f"submitted by {PRINCIPAL}/abcdefghij12"
    world.run(60, step=60)
    assert world.api_context.store.callback(name) is None


@pytest.mark.parametrize(
    ("request_", "then", "error"),
    [
        ({"outcome": "failed"}, False, "Trainmaster.Failed: "),
        ({"training_seconds": 900}, True, "Trainmaster.Stopped: "),
    ],
)
def test_each_other_end_fails_the_step_with_its_name_and_reason(request_, then, error):
    world = a_world()
    step = world.execute("abcdefghij12", asked("job1", **request_))
    if then:
        world.run(60, step=10)
        cancel(world.api_context, ADA, "job1")
    result, reason = outcome(world, step)
    assert result == "Failure"
    assert reason.startswith(error)
    assert len(reason) > len(error)


@pytest.mark.parametrize(
    "request_",
    [{"TrainingJobName": "job1"}, asked("job1", count=9), [], "text"],
    ids=["lacks members", "large", "list", "text"],
)
def test_a_refused_request_fails_the_step_at_once(request_):
    world = a_world()
    step = world.execute("abcdefghij12", request_)
    assert step.outcome is not None
    assert step.outcome[1].startswith("Trainmaster.Refused: ")
    assert world.names() == []


def test_a_step_without_a_request_fails_with_what_to_use():
    world = a_world()
    step = world.pipelines.start("abcdefghij12", {})
    step.arguments = {"Model": "x"}
    assert world.send(step.record()) == []
    assert step.outcome is not None
    assert "trainmaster.pipelines.QueueStep" in step.outcome[1]


# -- stops -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["pending", "running"])
def test_stopping_the_execution_cancels_the_job_and_answers_the_step(state):
    world = a_world()
    if state == "pending":
        world.submit("first", training_seconds=3_600)
        world.run(30, step=10)
    step = world.execute("abcdefghij12", asked("job1", training_seconds=3_000))
    world.run(60, step=10)
    assert world.job("job1").state == state
    world.stop(step)
    _, reason = outcome(world, step)
    assert reason.startswith("Trainmaster.Cancelled: " if state == "pending" else "Trainmaster.Stopped: ")
    assert "its pipeline was stopped" in " ".join(line.reason for line in world.job("job1").history)


def test_a_stop_that_overtakes_its_step_is_answered_and_no_job_is_submitted():
    world = a_world()
    step = world.pipelines.start("abcdefghij12", asked("job1"))
    world.stop(step)
    assert step.outcome is not None
    assert step.outcome[1].startswith("Trainmaster.Cancelled: ")
    assert world.send(step.record()) == []
    assert world.names() == []


def test_a_stop_after_the_end_changes_nothing():
    world = a_world()
    step = world.execute("abcdefghij12", asked("job1", training_seconds=20))
    result, _ = outcome(world, step)
    world.stop(step)
    assert (result, step.outcome and step.outcome[0]) == ("Success", "Success")


# -- messages --------------------------------------------------------------------------------------
def test_a_message_that_comes_twice_is_one_job():
    world = a_world()
    step = world.execute("abcdefghij12", asked(training_seconds=20))
    for _ in range(2):
        assert world.send(step.record()) == []
        assert outcome(world, step)[0] == "Success"
    assert len(world.names()) == 1


def test_two_steps_of_one_execution_are_two_jobs():
    world = a_world()
    for _ in range(2):
        world.execute("abcdefghij12", asked(training_seconds=20))
    assert len(world.names()) == 2


@pytest.mark.parametrize("sender", ["AROAOTHER:SageMaker", "", "AROAPIPELINEX", SENDER.lower()])
def test_only_the_role_of_the_pipeline_can_send_its_messages(sender):
    world = a_world()
    step = world.pipelines.start("abcdefghij12", asked("job1"))
    assert world.send(step.record(sender=sender)) == [f"{step.token}-Executing"]
    assert (world.names(), step.outcome) == ([], None)


@pytest.mark.parametrize(
    "change",
    [{"body": "{"}, {"body": "{}"}, {"body": '{"token": "abcdefgh12"}'}, {"execution": f"{PIPELINE}/execution/other"}],
    ids=["no JSON", "no token", "no execution", "unknown execution"],
)
def test_a_message_that_cannot_be_read_fails_alone_and_is_left_to_the_dead_letter_queue(change):
    world = a_world()
    good, bad = (world.pipelines.start("abcdefghij12", asked(f"job{number}")) for number in (1, 2))
    bad.execution = change.get("execution", bad.execution)
    record = bad.record() | {key: value for key, value in change.items() if key == "body"}
    assert world.send(record, good.record()) == [record["messageId"]]
    assert world.names() == ["job1"]


# -- crashes ---------------------------------------------------------------------------------------
def story(world: PipelinesWorld) -> None:
    """One job completes, one fails, one is cancelled with its execution, and one is refused."""
    done = world.execute("aaaaaaaaaa11", asked("done", training_seconds=60))
    failed = world.execute("bbbbbbbbbb22", asked("failed", training_seconds=20, outcome="failed"))
    stopped = world.execute("cccccccccc33", asked("unwanted", training_seconds=900), {"priority": -5})
    refused = world.execute("dddddddddd44", asked("large", count=9))
    world.run(20, step=10)
    world.stop(stopped)
    world.run_until_ended("done", "failed", "unwanted")
    world.run(300, step=60)
    ends = [step.outcome and (step.outcome[0], step.outcome[1][:12]) for step in (failed, stopped, refused)]
    assert ends == [("Failure", "Trainmaster.")] * 3
    assert done.outcome is not None
    assert (done.outcome[0], done.outcome[1]["TrainingJobName"]) == ("Success", "done")
    store = world.api_context.store
    assert not [name for name in world.names() if world.job(name).state not in ENDED or store.callback(name)]
    assert not store.outbox(limit=1)


@cache
def calls() -> list[str]:
    with on_dynamodb() as world:
        story(world)
        return world.faults.calls


@in_chunks(CHUNKS)
def test_each_step_ends_once_if_a_function_is_killed_after_any_change(chunk):
    for number in kills(calls(), reads=False)[chunk::CHUNKS]:
        with on_dynamodb(faults=Faults(kill_after=number)) as world:
            story(world)
            assert world.killed == 1


@in_chunks(CHUNKS)
@pytest.mark.parametrize("trouble", ["ThrottlingException", "InternalServerError", "lost answer"])
def test_each_step_ends_once_if_a_call_fails_or_its_answer_is_lost(trouble, chunk):
    ours = ("SendPipeline", "DescribePipeline", "GetRole", "DeleteItem", "PutItem", "TransactWriteItems")
    numbers = [number for number, name in enumerate(calls(), 1) if name.startswith(ours)]
    for number in numbers[chunk::CHUNKS]:
        with on_dynamodb(faults=fault_at(number, trouble)) as world:
            story(world)
