"""Warnings of calls that have SageMaker use instances without the queue."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError
from client_world import REGION, World, a_session, request_for

from trainmaster import ApiClient, QueueBypassWarning, route_to_queue
from trainmaster.client.sdk.bypass import OPERATIONS
from trainmaster.client.sdk.hook import unroute

OTHER_REGION = "eu-west-1"
TUNING = {"HyperParameterTuningJobName": "tuning"}


@pytest.fixture
def sagemaker(session: Any, api: ApiClient, sagemaker_url: str) -> Iterator[Any]:
    route_to_queue(session, api)
    client = session.client("sagemaker", endpoint_url=sagemaker_url, config=Config(parameter_validation=False))
    yield client
    client.close()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.filterwarnings("error")
def test_as_an_error_the_warning_stops_the_call(sagemaker: Any, world: World, operation: str) -> None:
    with pytest.raises(QueueBypassWarning, match="bypass the queue"):
        getattr(sagemaker, xform_name(operation))()
    assert world.calls == []


def test_a_process_is_warned_once_of_an_operation(sagemaker: Any, world: World) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            sagemaker.create_hyper_parameter_tuning_job(**TUNING)
    assert [warning.category for warning in caught] == [QueueBypassWarning]
    assert "Submit each trial to the queue instead" in str(caught[0].message)
    assert world.count("POST", "CreateHyperParameterTuningJob") == 3


@pytest.mark.parametrize(
    ("steps", "trains"),
    [
        ([{"Name": "a", "Type": "Training"}], True),
        ([{"Name": "a", "Type": "Processing"}], False),
        ([{"Name": "a", "Type": "Condition", "Arguments": {"IfSteps": [{"Type": "Tuning"}]}}], True),
        ([{"Name": "a", "Type": "Lambda", "Arguments": {"Type": ["Training"]}}], False),
        ([{"Name": "a", "Type": "AutoML"}], True),
    ],
)
def test_a_pipeline_is_warned_of_if_a_step_trains(sagemaker: Any, steps: list[Any], trains: bool) -> None:
    definition = json.dumps({"Version": "2020-12-01", "Steps": steps})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sagemaker.create_pipeline(PipelineName="p", PipelineDefinition=definition)
    assert [warning.category for warning in caught] == [QueueBypassWarning] * trains


def test_jobs_of_other_regions_bypass_the_queue_with_a_warning(
    session: Any, api: ApiClient, sagemaker_url: str, world: World
) -> None:
    route_to_queue(session, api)
    client = session.client("sagemaker", endpoint_url=sagemaker_url, region_name=OTHER_REGION)
    with pytest.warns(QueueBypassWarning, match=f"Jobs in {OTHER_REGION} bypass the queue, which is in {REGION}"):
        client.create_training_job(**request_for("job1"))
    assert client.describe_training_job(TrainingJobName="job1")["TrainingJobStatus"] == "InProgress"
    client.list_training_jobs()
    client.close()
    assert (list(world.trainings), world.jobs) == (["job1"], {})
    assert world.calls == [
        ("POST", f"{verb}") for verb in ("CreateTrainingJob", "DescribeTrainingJob", "ListTrainingJobs")
    ]


def test_a_queue_whose_region_is_not_known_has_all_calls(session: Any, sagemaker_url: str) -> None:
    """The error says what is missing."""
    route_to_queue(session, ApiClient("https://queue.example", session=a_session(None)))
    client = session.client("sagemaker", endpoint_url=sagemaker_url)
    with pytest.raises(ClientError, match="No AWS Region is configured"):
        client.create_training_job(**request_for("job1"))
    client.close()


@pytest.mark.filterwarnings("error")
def test_a_session_that_is_no_longer_routed_is_not_warned(session: Any, sagemaker: Any) -> None:
    unroute(session)
    sagemaker.create_hyper_parameter_tuning_job(**TUNING)
