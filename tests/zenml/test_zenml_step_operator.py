"""The ZenML flavor: registered, and its step operator's steps submitted, followed and cancelled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fake_api import ROLE, FakeApi

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def step_run(_home: Any) -> Any:
    """A step of a run of ZenML's own store."""
    from trivial_pipeline import my_pipeline

    return my_pipeline().steps["train"]


@pytest.fixture(scope="module")
def _flavor(_home: Any) -> None:
    from zenml.client import Client
    from zenml.enums import StackComponentType

    Client().create_flavor("trainmaster_zenml.TrainmasterStepOperatorFlavor", StackComponentType.STEP_OPERATOR)


@pytest.fixture
def operator(url: str, _flavor: Any) -> Any:
    """The step operator, registered in ZenML as a user does, with this queue."""
    from zenml.client import Client
    from zenml.enums import StackComponentType
    from zenml.stack import StackComponent

    tags = [{"Key": "priority", "Value": "9"}, {"Key": "trainmaster:share", "Value": "vision"}]
    estimator = {"instance_type": "ml.p5.48xlarge", "output_path": "s3://bucket/out", "tags": tags}
    configuration = {"role": ROLE, "bucket": "bucket", "api_url": url, "estimator_args": estimator}
    name = "queue" + "".join(filter(str.isdigit, url))
    kind = StackComponentType.STEP_OPERATOR
    model = Client().create_stack_component(name, "trainmaster", kind, configuration)
    return StackComponent.from_model(model)


def submit(operator: Any, step_run: Any, world: FakeApi) -> str:
    """Submit a step, and return the name of its job."""
    from zenml.config.step_run_info import StepRunInfo

    class Info(StepRunInfo):
        """ZenML's information about a step, with an image that is built already."""

        def get_image(self, key: str) -> str:
            return "111122223333.dkr.ecr.us-east-1.amazonaws.com/zenml:1"

    info = Info.model_construct(
        config=SimpleNamespace(resource_settings=SimpleNamespace(empty=True), command=None, settings={}),
        step_run_id=step_run.id,
        step_run=step_run,
        pipeline=SimpleNamespace(name="my_pipeline"),
        force_write_logs=lambda: None,
    )
    operator.submit(info, ["python", "-m", "step"], {"ZENML_STORE": "x" * 600})
    (name,) = world.jobs
    return name


def test_a_step_is_a_job_of_the_queue(operator: Any, step_run: Any, world: FakeApi) -> None:
    from zenml.enums import ExecutionStatus

    name = submit(operator, step_run, world)
    request = world.jobs[name]["jobDetails"]
    assert name.startswith("my-pipeline-train-")
    assert (world.jobs[name]["priority"], world.jobs[name]["share"]) == (9, "vision")
    assert request["AlgorithmSpecification"]["ContainerEntrypoint"] == ["python", "-m", "step"]
    assert all(len(value) <= 512 for value in request["Environment"].values())
    assert operator.get_status(step_run) == ExecutionStatus.RUNNING
    world.end(name)
    assert operator.get_status(step_run) == ExecutionStatus.COMPLETED


def test_a_failed_job_is_a_failed_step(operator: Any, step_run: Any, world: FakeApi) -> None:
    from zenml.enums import ExecutionStatus

    world.end(submit(operator, step_run, world), "failed", "AlgorithmError: no data")
    assert operator.get_status(step_run) == ExecutionStatus.FAILED


def test_a_cancelled_step_cancels_the_job(operator: Any, step_run: Any, world: FakeApi) -> None:
    name = submit(operator, step_run, world)
    operator.cancel(step_run)
    assert world.jobs[name]["jobState"] == "cancelled"
