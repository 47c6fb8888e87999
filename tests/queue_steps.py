"""The steps of a pipeline's definition as SageMaker Pipelines runs them: variables are filled in, messages are sent."""

from __future__ import annotations

import json
from typing import Any

TOKEN = "abcdefgh12"
EXECUTION = "arn:aws:sagemaker:us-east-1:111122223333:pipeline/nightly/execution/abcdefghij12"


class Message:
    """The message of a callback step."""

    def __init__(self, arguments: dict[str, str]) -> None:
        self.arguments = arguments


def filled(value: Any, parameters: dict[str, Any]) -> Any:
    """The value as Pipelines fills it in."""
    if isinstance(value, list):
        return [filled(each, parameters) for each in value]
    if not isinstance(value, dict):
        return value
    if "Std:Join" in value:
        joined = value["Std:Join"]
        return joined["On"].join(str(filled(each, parameters)) for each in joined["Values"])
    if "Get" in value:
        return parameters[value["Get"].removeprefix("Parameters.")]
    return {name: filled(each, parameters) for name, each in value.items()}


def message_of(definition: str, name: str, **parameters: Any) -> Message:
    """Return the message of a step."""
    (step,) = [step for step in json.loads(definition)["Steps"] if step["Name"] == name]
    return Message(filled(step["Arguments"], parameters))


def check_definition(definition: str, name: str, **parameters: Any) -> dict[str, Any]:
    """Check the step of a definition, and return the request in its message."""
    # SDK 3 needs a Region when it is imported.
    from trainmaster.pipelines import OUTPUTS

    (step,) = [step for step in json.loads(definition)["Steps"] if step["Name"] == name]
    assert (step["Type"], step["SqsQueueUrl"]) == ("Callback", "https://sqs.test/q")
    assert [each["OutputName"] for each in step["OutputParameters"]] == list(OUTPUTS)
    (later,) = [step for step in json.loads(definition)["Steps"] if step["Name"] == "later"]
    assert later["Arguments"] == {"model": {"Get": f"Steps.{name}.OutputParameters['ModelArtifacts']"}}
    request: dict[str, Any] = json.loads(message_of(definition, name, **parameters).arguments["Request"])
    assert "TrainingJobName" not in request
    return request
