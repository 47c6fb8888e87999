"""Every file of `events/`, replayed through the handler that its prefix names; they are also the docs' examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api_world import ALICE, RESEARCH, ApiWorld, read
from builders import NOW, P5, a_custom_resize, a_job, a_preempted_job, a_running_job, an_observation, at
from trainmaster.adapters.sagemaker.observation import observation_of_event
from trainmaster.adapters.stepfunctions import WaitingTask
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.listing import Filter
from trainmaster.handlers.api.app import OPERATIONS, answer
from trainmaster.handlers.manager import consume, metrics
from trainmaster.handlers.pipelines import consume as consume_steps
from trainmaster.handlers.tasks import submit_task
from trainmaster.ports.sagemaker import CreateResult, Creator, OpenJobsPage, StopResult

EVENTS = Path(__file__).parent.parent.parent / "events"
API = sorted(EVENTS.glob("api-*.json"))
TASKS = sorted(EVENTS.glob("task-*.json"))
MANAGER = sorted(EVENTS.glob("sqs-*.json"))


class Context:
    """The Lambda context that both handlers look at."""

    function_name = "sagemaker-queue-manager"

    def get_remaining_time_in_millis(self):
        return 60_000


class ObedientLauncher:
    """SageMaker doing at once what it is told."""

    def __init__(self):
        self.created, self.stopped = [], []
        self.described = {}

    def create(self, job, attempt, request, *, retry=False):
        self.created.append(attempt.training_job_name)
        return CreateResult.NEW

    def creator(self, job, attempt):
        return Creator.ATTEMPT if attempt.training_job_name in self.described else Creator.NONE

    def stop(self, training_job_name, *, end_warm_pool):
        self.stopped.append(training_job_name)
        return StopResult.ACCEPTED

    def end_warm_pool(self, training_job_name):
        pass

    def describe(self, training_job_name):
        return self.described.get(training_job_name)

    def list_open_jobs(self, since, token=None):
        return OpenJobsPage(())

    def units_of(self, training_job_name):
        return {}

    def identify(self, training_job_name):
        return None


def a_world():
    """job1 runs, job3 waits, one P5 is free."""
    world = ApiWorld()
    world.seed(a_running_job("job1", priority=1, entry_time=at(-40)), a_job("job3", priority=1, entry_time=at(-10)))
    world.application.launcher = ObedientLauncher()
    return world


def load(path):
    return json.loads(path.read_text())


STATUS = {
    "api-add-job": 202,
    "api-add-job-by-resources": 202,
    "api-answer-resize": 200,
    "api-cancel-job": 200,
    "api-change-job": 200,
    "api-change-pool": 200,
    "api-export-queue": 200,
    "api-get-job": 200,
    "api-get-manager": 200,
    "api-get-pools": 200,
    "api-get-queue": 200,
    "api-get-rendezvous": 200,
    "api-get-schedule": 200,
    "api-get-settings": 200,
    "api-get-shares": 200,
    "api-get-usage": 200,
    "api-import-queue": 200,
    "api-list-audit": 200,
    "api-list-jobs": 200,
    "api-openapi": 200,
    "api-pause": 200,
    "api-plan": 200,
    "api-remove-pool": 200,
    "api-report-speed": 200,
    "api-restore": 202,
    "api-resume": 200,
    "api-set-pool": 200,
    "api-set-pools": 200,
    "api-set-settings": 200,
}


@pytest.mark.parametrize("path", API, ids=lambda path: path.stem)
def test_an_api_event_is_answered(path):
    world = a_world()
    if path.stem in ("api-answer-resize", "api-report-speed"):
        world.seed(a_custom_resize("job5"))
    if path.stem == "api-report-speed":
        answer(lambda: world.app, load(EVENTS / "api-answer-resize.json"), Context())
    if path.stem == "api-restore":
        answer(lambda: world.app, load(EVENTS / "api-pause.json"), Context())
    if load(path)["resource"] == "/pools/{name}":
        answer(lambda: world.app, load(EVENTS / "api-set-pool.json"), Context())
    reply = read(answer(lambda: world.app, load(path), Context()))
    assert reply.status == STATUS[path.stem], reply.body
    assert "error" not in reply.body


def test_the_settings_event_changes_the_settings():
    world = a_world()
    for name in ("set-settings", "get-settings"):
        said = read(answer(lambda: world.app, load(EVENTS / f"api-{name}.json"), Context())).body
        assert (said["preemption"]["minRuntimeSeconds"], said["version"]) == (600, 1)
        assert said["shares"]["vision"]["nominal"] == {P5: 1}


def test_api_events_are_carried_out():
    world = a_world()

    def play(name):
        return read(answer(lambda: world.app, load(EVENTS / f"api-{name}.json"), Context())).body

    assert play("plan")["decision"] == "start"
    assert play("add-job")["submittedBy"] == RESEARCH
    assert [job["jobName"] for job in play("get-queue")["jobs"]] == ["job4", "job3"]
    assert [job["jobName"] for job in play("list-jobs")["jobs"]] == ["job1", "job4", "job3"]
    assert play("change-job")["jobState"] == "held"
    assert play("cancel-job")["jobState"] == "cancelled"
    assert play("get-job")["jobName"] == "job1"
    assert {pool["name"]: pool["cap"] for pool in play("set-pools")["pools"]} == {P5: 3, "ml.g5.2xlarge": 8}
    assert play("get-pools")["version"] == 1
    assert play("get-settings")["preemption"]["minRuntimeSeconds"] == 0
    assert play("openapi")["openapi"].startswith("3.1")


def test_the_job_of_the_event_that_asks_for_resources_gets_the_pool_that_has_them():
    world = a_world()
    path = EVENTS / "api-add-job-by-resources.json"
    said = read(answer(lambda: world.app, load(path), Context())).body
    assert (said["demand"], said["instances"], said["resources"]["acceleratorMemoryGib"]) == ([{P5: 1}], 1, 640)


def test_the_event_that_answers_a_resize_gives_the_job_its_size():
    world = a_world()
    world.seed(a_custom_resize("job5"))
    said = read(answer(lambda: world.app, load(EVENTS / "api-answer-resize.json"), Context())).body
    assert (said["jobState"], said["attempts"][-1]["units"]) == ("running", {P5: 2})


def test_the_event_that_reports_a_speed_leaves_it_with_the_job():
    world = a_world()
    world.seed(a_custom_resize("job5"))
    for name in ("answer-resize", "report-speed"):
        answer(lambda: world.app, load(EVENTS / f"api-{name}.json"), Context())
    assert [(speed.instances, speed.rate) for speed in world.memory.find("job5").speeds.of_sizes] == [(2, 12.5)]


def test_events_about_one_pool_are_carried_out():
    world = a_world()

    def play(name):
        return read(answer(lambda: world.app, load(EVENTS / f"api-{name}.json"), Context())).body

    assert (play("set-pool")["cap"], play("change-pool")["state"]) == (8, "drained")
    assert [pool["name"] for pool in play("remove-pool")["pools"]] == [P5]


def test_there_is_one_api_event_for_each_route_besides_other_ways_to_ask():
    routes = {(event["httpMethod"], event["resource"]) for event in map(load, API)}
    assert routes == {(each.method, each.rule.replace("<", "{").replace(">", "}")) for _, each in OPERATIONS.values()}
    assert len([path for path in API if "-by-" not in path.stem]) == len(OPERATIONS)


@pytest.mark.parametrize("path", API, ids=lambda path: path.stem)
def test_an_api_event_is_one_of_an_iam_signed_request(path):
    event = load(path)
    identity = event["requestContext"]["identity"]
    assert identity["userArn"] == ALICE
    assert {"accessKey", "accountId", "caller", "sourceIp", "user", "userAgent", "vpceId"} <= identity.keys()
    assert event["requestContext"]["path"] == f"/prod{event['path']}"


AFTERWARDS = {
    "sqs-job-completed": ("job1", "completed"),
    "sqs-job-failed": ("job1", "failed"),
    "sqs-job-in-progress": ("job1", "running"),
    "sqs-job-stopped": ("job1", "stopped"),
    "sqs-mixed-batch-with-a-bad-message": ("job3", "starting"),
    "sqs-tick": ("job3", "starting"),
    "sqs-wake": ("job3", "starting"),
}


def second_attempt():
    """job1 in its second attempt."""
    again = lifecycle.mark_launched(lifecycle.start(a_preempted_job("job1"), {P5: 1}, (), NOW))
    return lifecycle.observe(again, an_observation(again, secondary="Training", started_at=NOW), NOW)


class OneTask:
    """Step Functions with one task, which waits with the payload of the event."""

    def __init__(self, payload):
        self.payload = payload

    def waiting_task(self, execution, payload):
        assert (execution, payload) == (self.payload["Execution"], self.payload)
        return WaitingTask(Caller(ALICE), 600)


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_the_event_of_a_task_submits_its_job(path):
    world = a_world()
    world.application.tasks = OneTask(load(path))
    name = submit_task(world.application, load(path))["TrainingJobName"]
    job = world.memory.find(name)
    assert (job.name, job.priority, job.callback) == (name, 5, "task")
    assert world.memory.callback(name).interval == 300


class OneStep:
    """SageMaker Pipelines with one execution."""

    def waiting_step(self, execution, sender):
        assert (execution.rpartition("/")[2], sender) == ("abcdefghij12", "AROAPIPELINE:SageMaker")
        return Caller(ALICE), True


def test_the_events_of_a_step_submit_and_cancel_its_job():
    world = a_world()
    world.application.steps = OneStep()
    for name, state in (("begins", "pending"), ("stops", "cancelled")):
        answered = consume_steps(world.application, load(EVENTS / f"pipelines-step-{name}.json"))
        assert answered == {"batchItemFailures": []}
        (job,) = [job for job in world.memory.list_jobs(Filter(), limit=9).jobs if job.name.startswith("pipeline-")]
        assert (job.state, job.priority, job.callback) == (state, 5, "step")


@pytest.mark.parametrize("path", MANAGER, ids=lambda path: path.stem)
def test_a_manager_event_is_consumed(path):
    world = a_world()
    event = load(path)
    if "job1-qstamp-2" in json.dumps(event):
        now = world.memory.find("job1")
        assert world.memory.transition([(now, second_attempt())])
    for record in event["Records"]:
        if is_message(record["body"]) and (seen := observation_of_event(json.loads(record["body"]), "sagemaker-queue")):
            world.application.launcher.described[seen.training_job_name] = seen
    bad = sum(not is_message(record["body"]) for record in event["Records"])
    try:
        assert consume(world.application, event, Context()) == {"batchItemFailures": []}
    finally:
        metrics.clear_metrics()
    assert len(world.publisher.aside) == bad
    name, state = AFTERWARDS.get(path.stem, ("job1", world.memory.find("job1").state))
    assert world.memory.find(name).state == state


def is_message(body):
    try:
        message = json.loads(body)
    except ValueError:
        return False
    return "kind" in message or isinstance(message.get("detail"), dict)
