"""QueueStep in a pipeline of the SDK 3: the definition is what the queue's function reads."""

from typing import Any

import pytest
from client_stage import BUCKET
from sagemaker.core.workflow.pipeline_context import PipelineSession
from test_sdk3_trainers import a_trainer, session

from queue_steps import check_definition, message_of

__all__ = ["session"]


def test_a_queue_step_takes_the_place_of_a_training_step(session: Any) -> None:
    # These need a Region when they are imported.
    from sagemaker.mlops.workflow.callback_step import CallbackOutput, CallbackStep
    from sagemaker.mlops.workflow.pipeline import Pipeline

    from trainmaster.pipelines import QueueStep

    captured = PipelineSession(session.boto_session, default_bucket=BUCKET)
    step = QueueStep("train", a_trainer(captured).train(), "https://sqs.test/q", queue={"priority": 5})
    later = CallbackStep(
        "later", "https://sqs.test/q", {"model": step.properties.Outputs["ModelArtifacts"]}, [CallbackOutput("done")]
    )
    pipeline = Pipeline(name="pipeline", steps=[step, later], sagemaker_session=captured)
    request = check_definition(pipeline.definition(), step.name)
    assert request["RoleArn"]
    assert message_of(pipeline.definition(), step.name).arguments["Queue"] == '{"priority": 5}'


@pytest.mark.parametrize("kind", ["text", "number"])
@pytest.mark.usefixtures("session")
def test_parameters_of_the_pipeline_are_filled_in(kind: str) -> None:
    from sagemaker.core.workflow.parameters import ParameterInteger, ParameterString

    from trainmaster.pipelines import json_text

    variable = ParameterString("name") if kind == "text" else ParameterInteger("name")
    text = json_text({"a": [variable, 1], "b": "x"})
    on = text.expr["Std:Join"]
    quote = '"' if kind == "text" else ""
    assert on == {"On": "", "Values": ['{"a": [' + quote, {"Get": "Parameters.name"}, quote + ', 1], "b": "x"}']}


@pytest.mark.usefixtures("session")
def test_what_is_no_json_is_refused() -> None:
    from trainmaster.pipelines import json_text

    with pytest.raises(TypeError, match="object is no JSON value"):
        json_text({"a": object()})
