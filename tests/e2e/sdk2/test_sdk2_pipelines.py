"""QueueStep in a pipeline of the SDK 2: the definition is what the queue's function reads."""

from typing import Any

from sagemaker.inputs import TrainingInput
from sagemaker.workflow.callback_step import CallbackOutput, CallbackStep
from sagemaker.workflow.parameters import ParameterInteger, ParameterString
from sagemaker.workflow.pipeline import Pipeline
from sagemaker.workflow.pipeline_context import PipelineSession
from test_sdk2_estimators import an_estimator, session

from queue_steps import check_definition, message_of
from trainmaster.pipelines import QueueStep, json_text

__all__ = ["session"]


def test_a_queue_step_takes_the_place_of_a_training_step(session: Any) -> None:
    captured = PipelineSession(session.boto_session, default_bucket="bucket")
    data, count = ParameterString("data", default_value="s3://b/data"), ParameterInteger("count", default_value=1)
    estimator = an_estimator(captured, instance_count=count)
    step = QueueStep("train", estimator.fit(TrainingInput(data)), "https://sqs.test/q", queue={"priority": 5})
    later = CallbackStep(
        "later", "https://sqs.test/q", {"model": step.properties.Outputs["ModelArtifacts"]}, [CallbackOutput("done")]
    )
    pipeline = Pipeline("pipeline", parameters=[data, count], steps=[step, later], sagemaker_session=captured)
    request = check_definition(pipeline.definition(), step.name, data="s3://b/other", count=3)
    assert request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://b/other"
    assert request["ResourceConfig"]["InstanceCount"] == 3
    message = message_of(pipeline.definition(), step.name, data="s3://b/other", count=3)
    assert message.arguments["Queue"] == '{"priority": 5}'


def test_a_value_without_parameters_is_text() -> None:
    assert json_text({"a": 1}) == '{"a": 1}'
