"""The SageMaker launcher over the simulator: all groups of the contract, and every AWS call within the hook's reach."""

from __future__ import annotations

import ast
import re
from datetime import timedelta
from pathlib import Path

import boto3
import botocore.session
import launcher_contract
import pytest
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError
from launcher_contract import (
    CALLS,
    QUEUE,
    READY,
    Chooses,
    Creates,
    Fails,
    Interrupts,
    KeepsNamesUnique,
    KeepsWarm,
    Lives,
    Plans,
    Reports,
    RunsOut,
    Stops,
    create,
    open_names,
)

import trainmaster.adapters.sagemaker.launcher
from builders import P5, a_request
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.adapters.sagemaker.observation import observation_of_event
from trainmaster.adapters.sagemaker.service_model import use_trimmed_model
from trainmaster.domain.jobs.observation import Status
from trainmaster.local.simulator import Account, SageMakerSimulator
from trainmaster.ports.sagemaker import CreateResult

CODES = {
    "throttled": "ThrottlingException",
    "broken": "ServiceUnavailable",
    "denied": "AccessDeniedException",
}


class SimulatorBench:
    """A launcher over a simulator under a virtual clock.

    Args:
        missing: the error code for a job that is not there: the model says one thing, SageMaker another.
    """

    def __init__(self, missing):
        self.events = []
        self.calls = []
        self.silences = []
        self.simulator = SageMakerSimulator(
            account=Account(not_found_code=missing), sink=self.events.append, on_call=self.on_call
        )
        self.launcher = SageMakerLauncher(self.simulator.client(), QUEUE)

    def on_call(self, operation, phase):
        self.calls.append((operation, phase))
        if (operation, phase) in self.silences:
            self.silences.remove((operation, phase))
            raise ReadTimeoutError(endpoint_url="https://sagemaker.simulator.invalid")

    def now(self):
        return self.simulator.now()

    def let(self, seconds):
        self.simulator.advance(seconds)

    def create_elsewhere(self, request):
        self.simulator.call("CreateTrainingJob", **request)

    def create_lasting(self, name):
        self.simulator.set_profile(name, training_seconds=86_400)
        self.create_elsewhere(a_request(name, StoppingCondition={"MaxRuntimeInSeconds": 86_400}))

    def described(self, name):
        return self.simulator.call("DescribeTrainingJob", TrainingJobName=name)

    def tags_of(self, name):
        answer = self.simulator.call("ListTags", ResourceArn=self.described(name)["TrainingJobArn"])
        return {tag["Key"]: tag["Value"] for tag in answer["Tags"]}

    def limit(self, instance_type, count):
        self.simulator.quotas.set_limit(instance_type, count)

    def capacity(self, instance_type, count):
        self.simulator.set_capacity(instance_type, count)

    def buy_plan(self, name, instance_type, *hours):
        blocks = [tuple(self.now() + timedelta(hours=hour) for hour in pair) for pair in hours]
        return self.simulator.add_plan(name, instance_type, 2, *blocks)

    def interrupt(self, name):
        self.simulator.interrupt(name)

    def next_call(self, operation, trouble, *, after=False):
        if trouble == "silent":
            self.silences.append((operation, "after" if after else "before"))
        else:
            self.simulator.faults.inject(operation, CODES[trouble], executed=after)

    def reports(self):
        found = (observation_of_event(event, QUEUE) for event in self.events)
        return [report for report in found if report is not None]


@pytest.fixture(params=["ValidationException", "ResourceNotFound"])
def missing(request):
    return request.param


@pytest.fixture
def bench(missing):
    return SimulatorBench(missing)


class TestSimulator(
    Creates, KeepsNamesUnique, Lives, Stops, KeepsWarm, Chooses, RunsOut, Plans, Interrupts, Fails, Reports
):
    """The SageMaker adapter over the simulator."""


def test_every_group_of_the_contract_has_an_implementation():
    groups = {
        value
        for value in vars(launcher_contract).values()
        if isinstance(value, type) and any(name.startswith("test_") for name in vars(value))
    }
    assert groups == set(TestSimulator.__bases__)


def calls_in_the_adapter():
    """The operations that the launcher's source names."""
    tree = ast.parse(Path(trainmaster.adapters.sagemaker.launcher.__file__).read_text())
    methods = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Attribute)
        and node.func.value.attr == "_client"
    }
    return {re.sub(r"(?:^|_)(\w)", lambda found: found[1].upper(), method) for method in methods}


def test_every_aws_call_of_the_adapter_is_within_the_hooks_reach():
    bench = SimulatorBench("ValidationException")
    create(bench)
    for call in CALLS.values():
        call(bench)
    create(bench)
    for phase in ("before", "after"):
        assert {operation for operation, seen in bench.calls if seen == phase} == calls_in_the_adapter()


class KilledError(BaseException):
    """A crash as the code inside sees it: nothing in the adapter may catch it."""


SCENES = {
    "create": create,
    "create again": lambda bench: (create(bench), create(bench)),
    "stop": lambda bench: bench.launcher.stop("old", end_warm_pool=True),
    "stop what has ended": lambda bench: bench.launcher.stop("ended", end_warm_pool=True),
    "describe": lambda bench: bench.launcher.describe("old"),
    "units": lambda bench: bench.launcher.units_of("old"),
    "list": open_names,
}


def a_scene():
    """An account with a job that has ended, one at work, and room for one more instance."""
    bench = SimulatorBench("ValidationException")
    create(bench, "ended")
    bench.let(3600)
    bench.create_lasting("old")
    bench.let(READY)
    bench.limit(P5, 2)
    bench.calls.clear()
    return bench


def calls_of(scene):
    bench = a_scene()
    SCENES[scene](bench)
    return len(bench.calls)


@pytest.mark.parametrize("scene", SCENES)
def test_a_crash_at_any_call_is_mended_by_calling_again(scene):
    for moment in range(calls_of(scene)):
        bench = a_scene()
        left = [moment]

        def crash(_operation, _phase, left=left):
            left[0] -= 1
            if left[0] < 0:
                left[0] = 10**6
                raise KilledError

        bench.simulator.on_call = crash
        with pytest.raises(KilledError):
            SCENES[scene](bench)
        SCENES[scene](bench)
        jobs = bench.simulator.call("ListTrainingJobs", MaxResults=100)["TrainingJobSummaries"]
        names = sorted(job["TrainingJobName"] for job in jobs)
        assert names == (["ended", "job1", "old"] if scene.startswith("create") else ["ended", "old"])
        stopped = scene == "stop"
        assert bench.launcher.describe("old").status is (Status.STOPPING if stopped else Status.IN_PROGRESS)


def test_a_retry_of_botocores_own_after_a_lost_answer_is_already_there():
    """botocore tries again by itself; the second try meets the first one's training job."""
    bench = SimulatorBench("ValidationException")
    bench.limit(P5, 1)
    config = Config(retries={"mode": "standard", "total_max_attempts": 2})
    bench.launcher = SageMakerLauncher(bench.simulator.client(config), QUEUE)
    bench.next_call("CreateTrainingJob", "silent", after=True)
    assert create(bench) is CreateResult.ALREADY_THERE
    assert [operation for operation, phase in bench.calls if phase == "before"] == [
        "CreateTrainingJob",
        "CreateTrainingJob",
        "DescribeTrainingJob",
        "ListTags",
    ]


def test_the_trimmed_model_that_is_deployed_serves_every_verb():
    bench = SimulatorBench("ValidationException")
    session = use_trimmed_model(botocore.session.Session())
    client = boto3.Session(botocore_session=session).client(
        "sagemaker", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    bench.simulator.attach(client)
    bench.launcher = SageMakerLauncher(client, QUEUE)
    assert create(bench) is CreateResult.NEW
    assert create(bench) is CreateResult.ALREADY_THERE
    bench.let(READY)
    bench.launcher.end_warm_pool("job1")
    assert bench.launcher.describe("job1").at_work
    assert bench.launcher.units_of("job1") == {P5: 1}
    assert open_names(bench) == ["job1"]
    assert bench.launcher.describe_training_plan(bench.buy_plan("spring", P5, (0, 8))).instances == 2
    assert bench.launcher.stop("job1", end_warm_pool=True)
    assert {operation for operation, _ in bench.calls} == calls_in_the_adapter()
