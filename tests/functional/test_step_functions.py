"""Tasks of Step Functions that wait for jobs: each ends once, with its job's end, whatever happens to either side."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import ADA, P5
from fake_states import ROLE_OF_STATES, Task
from tables import new_table
from trainmaster.domain.errors import InvalidRequest, ServiceError
from trainmaster.domain.jobs.job import ENDED
from trainmaster.domain.jobs.listing import Filter
from trainmaster.handlers.tasks import submit_task
from trainmaster.ports.store import Pause
from trainmaster.service.change import cancel
from world import BRISK, Faults, Killed, World, a_request, fault_at, in_chunks, kills

CHUNKS = 24
ANY = Filter()
PRINCIPAL = "arn:aws:sts::111122223333:assumed-role/nightly-states"

pytestmark = pytest.mark.usefixtures("quiet")


def asked(name: str, **request: Any) -> dict[str, Any]:
    """A request without tags: the options of the queue are beside it."""
    return {key: value for key, value in a_request(name, **request).items() if key != "Tags"}


class StatesWorld(World):
    """A queue whose jobs tasks wait for."""

    def invoke_task(self, task: Task) -> dict[str, Any]:
        """Run the task function once."""
        self.faults.armed = True
        try:
            return submit_task(self.application(), task.payload)
        finally:
            self.faults.armed = False

    def execute(self, execution: str, heartbeat: int | None = None, tries: int = 12, **payload: Any) -> Task:
        """Run a state with `Retry`: an invocation that fails is a new attempt of the task, with another token."""
        for _ in range(tries):
            task = self.fake_states.start(execution, heartbeat, **payload)
            try:
                self.invoke_task(task)
            except (Killed, ServiceError):
                self.killed += 1
                task.outcome = ("Lambda.Unknown", None)
            else:
                return task
        raise AssertionError("the function keeps failing")


def a_world(client: Any = None, **arguments: Any) -> StatesWorld:
    return StatesWorld(client, profile=BRISK, pools=f"{P5}=1", step_functions=True, **arguments)


@contextmanager
def on_dynamodb(**arguments: Any) -> Iterator[StatesWorld]:
    with new_table() as client:
        yield a_world(client, **arguments)


def outcome(world: StatesWorld, task: Task, seconds: int = 3_000) -> tuple[str, Any]:
    for _ in range(0, seconds, 30):
        if task.outcome is not None:
            return task.outcome
        world.run(30, step=10)
    raise AssertionError(world.fake_states.tasks)


def left(world: StatesWorld) -> list[object]:
    store = world.api_context.store
    names = [job.name for job in store.list_jobs(ANY, limit=50).jobs]
    return [*store.outbox(limit=9), *(each for name in names if (each := store.callback(name)))]


def test_a_completed_job_ends_its_task_as_the_sync_integration_would():
    world = a_world()
    task = world.execute("run-1", Request=asked("job1", training_seconds=60), Queue={"priority": 3})
    result, output = outcome(world, task)
    assert result == "Success"
    assert (output["TrainingJobName"], output["TrainingJobStatus"]) == ("job1", "Completed")
    assert output["ModelArtifacts"]["S3ModelArtifacts"].startswith("s3://bucket/output/job1/")
    assert output["ResourceConfig"]["InstanceType"] == P5
    assert isinstance(output["TrainingEndTime"], int)
    assert output["TrainingEndTime"] > 1_700_000_000_000
    assert "ResponseMetadata" not in output
    job = world.job("job1")
    assert (job.priority, job.submitted_by) == (3, PRINCIPAL)
    assert job.history[0].reason == f"submitted by {PRINCIPAL}/run-1"
    assert left(world) == []


def test_a_preempted_job_ends_its_task_with_its_last_attempt_under_its_own_name():
    world = a_world()
    task = world.execute("run-1", Request=asked("job1", training_seconds=90))
    world.run(40, step=10)
    world.submit("urgent", priority=5, training_seconds=20)
    result, output = outcome(world, task)
    assert (result, output["TrainingJobName"]) == ("Success", "job1")
    assert output["TrainingJobArn"].endswith(":training-job/job1-qstamp-2")


@pytest.mark.parametrize(
    ("request_", "then", "error", "status"),
    [
        ({"outcome": "failed"}, None, "Trainmaster.Failed", "Failed"),
        ({"training_seconds": 900}, "stop", "Trainmaster.Stopped", "Stopped"),
        ({}, "cancel", "Trainmaster.Cancelled", "Stopped"),
    ],
)
def test_each_other_end_is_an_error_with_a_name(request_, then, error, status):
    world = a_world()
    if then == "cancel":
        world.submit("first", training_seconds=900)
        world.run(30, step=10)
    task = world.execute("run-1", Request=asked("job1", **request_))
    if then is not None:
        world.run(60, step=10)
        cancel(world.api_context, ADA, "job1")
    result, cause = outcome(world, task)
    assert result == error
    assert (cause["TrainingJobName"], cause["TrainingJobStatus"]) == ("job1", status)
    assert cause["FailureReason"]
    assert left(world) == []


REFUSED = [
    ({"Request": {"TrainingJobName": "job1"}}, "SageMaker.AmazonSageMakerException"),
    ({"Request": asked("job1", count=9)}, "Trainmaster.Infeasible"),
    ({"Request": asked("job1"), "Queue": {"prority": 5}}, "SageMaker.AmazonSageMakerException"),
    ({"Request": asked("job1"), "Queue": {"priority": 5.5}}, "SageMaker.AmazonSageMakerException"),
    ({"Request": asked("job1"), "Queue": []}, "SageMaker.AmazonSageMakerException"),
    ({"Request": "job1"}, "SageMaker.AmazonSageMakerException"),
    ({"TrainingJobName": "job1"}, "SageMaker.AmazonSageMakerException"),
    ({}, "SageMaker.AmazonSageMakerException"),
]


@pytest.mark.parametrize(("payload", "error"), REFUSED)
def test_a_refused_request_fails_the_task_at_once(payload, error):
    world = a_world()
    task = world.execute("run-1", **payload)
    assert task.outcome is not None
    assert task.outcome[0] == error
    assert task.outcome[1]["FailureReason"]
    assert world.api_context.store.find("job1") is None


def test_a_heartbeat_that_a_tick_cannot_keep_is_refused_with_what_to_set():
    world = a_world()
    task = world.execute("run-1", heartbeat=60, Request=asked("job1"))
    assert task.outcome is not None
    assert "Set HeartbeatSeconds of the state to 120 or more" in task.outcome[1]["FailureReason"]


@pytest.mark.parametrize("event", [{}, {"TaskToken": ""}, {"TaskToken": 7}, {"TaskToken": "a" * 2049}])
def test_an_event_without_a_token_fails_the_invocation(event):
    with pytest.raises(InvalidRequest, match="no TaskToken"):
        submit_task(a_world().application(), {"Request": {}, **event})


def test_a_request_without_a_name_gets_one_of_its_token():
    world = a_world()
    request = asked("any")
    del request["TrainingJobName"]
    task = world.execute("nightly run/7", Request=request)
    name = world.invoke_task(task)["TrainingJobName"]
    assert name.startswith("nightly-run-7-")
    assert outcome(world, task)[1]["TrainingJobName"] == name


# -- heartbeats ------------------------------------------------------------------------------------
@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize(("heartbeat", "most"), [(120, 62), (600, 14), (7_200, 14)])
def test_heartbeats_keep_a_task_alive_as_its_job_waits_and_are_no_more_than_needed(heartbeat, most, paused):
    world = a_world()
    world.submit("first", training_seconds=3_600)
    world.run(30, step=10)
    task = world.execute("run-1", heartbeat=heartbeat, Request=asked("job1", training_seconds=20))
    if paused:
        world.api_context.store.set_pause(Pause("a test", "ada", world.now()))
    world.run(3_000, step=30)
    assert task.outcome is None
    assert 3_000 / (heartbeat / 2) - 2 < task.beats <= most
    world.api_context.store.set_pause(None)
    assert outcome(world, task)[0] == "Success"
    beats = task.beats
    world.run(600, step=60)
    assert task.beats == beats


def test_throttled_heartbeats_are_repeated_with_the_next_tick():
    world = a_world()
    world.submit("first", training_seconds=3_600)
    task = world.execute("run-1", heartbeat=180, Request=asked("job1", training_seconds=20))
    beat, refused = world.fake_states.send_task_heartbeat, []

    def throttled(**arguments: Any) -> None:
        if len(refused) % 2:
            beat(**arguments)
            refused.append(False)
        else:
            refused.append(True)
            raise ServiceError("throttled")

    world.fake_states.send_task_heartbeat = throttled  # type: ignore[method-assign]
    world.run(1_200, step=30)
    assert task.outcome is None
    assert task.beats >= 4


# -- the end of an execution -----------------------------------------------------------------------
@pytest.mark.parametrize("state", ["waits", "is held", "runs"])
def test_stopping_the_execution_cancels_the_job(state):
    world = a_world()
    if state == "waits":
        world.submit("first", training_seconds=3_600)
        world.run(30, step=10)
    queue = {"notBefore": "2026-11-21T20:00:00Z"} if state == "is held" else {}
    task = world.execute("run-1", Request=asked("job1", training_seconds=3_000), Queue=queue)
    world.run(60, step=10)
    assert world.job("job1").state == {"waits": "pending", "is held": "held", "runs": "running"}[state]
    world.fake_states.stop("run-1")
    world.run(130, step=10)
    assert world.job("job1").state == ("stopped" if state == "runs" else "cancelled")
    assert "its execution waits no longer" in json.dumps([line.reason for line in world.job("job1").history])
    assert task.outcome == ("Aborted", None)
    world.run(60, step=60)
    assert left(world) == []


# -- one job for a task ----------------------------------------------------------------------------
def test_the_same_task_again_is_the_same_job():
    world = a_world()
    task = world.execute("run-1", Request=asked("job1", training_seconds=20))
    for _ in range(2):
        assert world.invoke_task(task)["TrainingJobName"] == "job1"
        result, _ = outcome(world, task)
        assert result == "Success"
    assert left(world) == []


def test_a_name_that_another_execution_waits_for_is_in_use():
    world = a_world()
    first = world.execute("run-1", Request=asked("job1", training_seconds=20))
    second = world.execute("run-2", Request=asked("job1", training_seconds=20))
    assert second.outcome is not None
    assert second.outcome[0] == "SageMaker.ResourceInUseException"
    assert outcome(world, first)[0] == "Success"


@pytest.mark.parametrize("ended", [False, True])
def test_a_retried_task_takes_over_the_job_of_the_attempt_before(ended):
    world = a_world()
    first = world.execute("run-1", Request=asked("job1", training_seconds=20))
    first.outcome = ("Lambda.Unknown", None)
    if ended:
        world.run(58, step=10)
        world.run_until_ended("job1")
    second = world.execute("run-1", Request=asked("job1", training_seconds=20))
    result, output = outcome(world, second)
    assert (result, output["TrainingJobName"]) == ("Success", "job1") or ended
    assert left(world) == []


def test_a_job_of_another_caller_is_never_taken_over():
    world = a_world()
    first = world.execute("run-1", Request=asked("job1", training_seconds=900))
    first.outcome = ("Lambda.Unknown", None)
    world.fake_states.role = ROLE_OF_STATES.replace("nightly", "other")
    second = world.execute("run-2", Request=asked("job1", training_seconds=900))
    assert second.outcome is not None
    assert second.outcome[0] == "SageMaker.ResourceInUseException"


def test_a_job_that_a_person_submitted_is_never_taken_over():
    world = a_world()
    world.submit("job1")
    task = world.execute("run-1", Request=asked("job1"))
    assert task.outcome is not None
    assert task.outcome[0] == "SageMaker.ResourceInUseException"


# -- who asks --------------------------------------------------------------------------------------
@pytest.mark.parametrize("change", ["execution", "request", "unknown"])
def test_nobody_can_act_for_an_execution_that_has_no_such_task(change):
    world = a_world()
    victim = world.fake_states.start("run-1", Request=asked("job1"))
    mine = world.fake_states.start("run-2", Request=asked("job1"))
    forged = dict(mine.payload)
    if change == "execution":
        forged["Execution"] = victim.execution
    elif change == "request":
        forged = {**victim.payload, "Request": asked("job1", count=1, training_seconds=5)}
    else:
        forged["Execution"] = victim.execution + "-9"
    assert submit_task(world.application(), forged) == {"Refused": "AccessDenied"}
    assert world.api_context.store.find("job1") is None


def test_a_task_that_its_history_does_not_show_at_once_is_read_again():
    world = a_world()
    world.fake_states.hidden = 2
    task = world.execute("run-1", Request=asked("job1", training_seconds=20))
    assert outcome(world, task)[0] == "Success"


def test_a_task_is_found_behind_many_others_of_its_execution():
    world = a_world()
    task = world.fake_states.start("run-1", Request=asked("job1", training_seconds=20))
    for number in range(350):
        world.fake_states.start("run-1", Number=number)
    world.invoke_task(task)
    assert outcome(world, task)[0] == "Success"


# -- crashes ---------------------------------------------------------------------------------------
def story(world: StatesWorld, heartbeat: int = 180) -> None:
    """One job completes, one fails, one is cancelled with its execution, and one is refused."""
    done = world.execute("run-1", heartbeat, Request=asked("done", training_seconds=150))
    failed = world.execute("run-2", heartbeat, Request=asked("failed", training_seconds=20, outcome="failed"))
    stopped = world.execute(
        "run-3", heartbeat, Request=asked("unwanted", training_seconds=2_000), Queue={"priority": -5}
    )
    refused = world.execute("run-4", Request=asked("large", count=9))
    world.run(20, step=10)
    world.fake_states.stop("run-3")
    world.run(400, step=20)
    world.run_until_ended("done", "failed")
    world.run(300, step=60)
    ends = [task.outcome and task.outcome[0] for task in (done, failed, stopped, refused)]
    assert ends == ["Success", "Trainmaster.Failed", "Aborted", "Trainmaster.Infeasible"]
    assert done.outcome is not None
    assert done.outcome[1]["TrainingJobName"] == "done"
    assert world.job("unwanted").state in ("cancelled", "stopped")
    assert not {job.name for job in world.api_context.store.list_jobs(ANY, limit=50).jobs if job.state not in ENDED}
    assert left(world) == []


@cache
def calls() -> list[str]:
    with on_dynamodb() as world:
        story(world)
        return world.faults.calls


def test_a_story():
    assert {"SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"} <= set(calls())


@in_chunks(CHUNKS)
def test_each_task_ends_once_if_a_function_is_killed_after_any_change(chunk):
    for number in kills(calls(), reads=False)[chunk::CHUNKS]:
        with on_dynamodb(faults=Faults(kill_after=number)) as world:
            story(world)
            assert world.killed == 1


@in_chunks(CHUNKS)
@pytest.mark.parametrize("trouble", ["ThrottlingException", "InternalServerError", "lost answer"])
def test_each_task_ends_once_if_a_call_fails_or_its_answer_is_lost(trouble, chunk):
    ours = ("SendTask", "DescribeStateMachine", "GetExecution", "DeleteItem", "PutItem", "TransactWriteItems")
    numbers = [number for number, name in enumerate(calls(), 1) if name.startswith(ours)]
    for number in numbers[chunk::CHUNKS]:
        with on_dynamodb(faults=fault_at(number, trouble)) as world:
            story(world)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_random_kills_and_lost_answers_in_memory(seed):
    """With that many faults, two heartbeats in a row can fail: the tasks allow more time than that."""
    rng = random.Random(seed)
    world = a_world()
    world.faults.lose = frozenset(number for number in range(1, 60) if rng.random() < 0.1)
    world.faults.kill_after = rng.randint(1, 40)
    story(world, heartbeat=420)
