"""Steps of SageMaker Pipelines whose training jobs run on the queue; needs the SageMaker SDK, 3 or 2."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

try:
    from sagemaker.core.helper.pipeline_variable import PipelineVariable  # type: ignore[import-not-found]
    from sagemaker.core.workflow import utilities  # type: ignore[import-not-found]
    from sagemaker.core.workflow.functions import Join  # type: ignore[import-not-found]
    from sagemaker.mlops.workflow.callback_step import CallbackOutput, CallbackStep  # type: ignore[import-not-found]
    from sagemaker.mlops.workflow.steps import TrainingStep  # type: ignore[import-not-found]
except ImportError:
    from sagemaker.workflow import utilities  # type: ignore[import-not-found]
    from sagemaker.workflow.callback_step import CallbackOutput, CallbackStep  # type: ignore[import-not-found]
    from sagemaker.workflow.entities import PipelineVariable  # type: ignore[import-not-found]
    from sagemaker.workflow.functions import Join  # type: ignore[import-not-found]
    from sagemaker.workflow.steps import TrainingStep  # type: ignore[import-not-found]

OUTPUTS = ("ModelArtifacts", "TrainingJobArn", "TrainingJobName")
"""Outputs of the step: the S3 URI of the model, and the training job of the last attempt."""
_MARK = "@trainmaster-pipeline-variable-{}@"
_MARKED = re.compile(r'"@trainmaster-pipeline-variable-([0-9]+)@"')
_NUMBERS = ("Boolean", "Float", "Integer")
"""Types of parameters that stand in JSON without quotes."""


class QueueStep(CallbackStep):  # type: ignore[misc]
    """A step that submits a training job to the queue and waits for its end, in the place of a `TrainingStep`.

    Later steps read `step.properties.Outputs["ModelArtifacts"]`.

    Args:
        name: name of the step.
        step_args: what `estimator.fit()` or `model_trainer.train()` returns with a `PipelineSession`.
        sqs_queue_url: the output `PipelinesQueueUrl` of the queue's stack.
        queue: options of the queue, such as `{"priority": 5, "share": "vision"}`; tags of the job do the same.
        depends_on: steps that must end first.
    """

    def __init__(  # noqa: PLR0913 -- those of the SDK's steps
        self,
        name: str,
        step_args: Any,
        sqs_queue_url: Any,
        *,
        queue: Mapping[str, Any] | None = None,
        display_name: str | None = None,
        description: str | None = None,
        depends_on: Sequence[Any] | None = None,
    ) -> None:
        self._training = TrainingStep(name=name, step_args=step_args)
        self._options = dict(queue or {})
        super().__init__(
            name=name,
            sqs_queue_url=sqs_queue_url,
            inputs={},
            outputs=[CallbackOutput(output_name=each) for each in OUTPUTS],
            display_name=display_name,
            description=description,
            depends_on=list(depends_on) if depends_on else None,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The members of the message to the queue, each a JSON text that may contain pipeline variables."""
        config = utilities._pipeline_config  # noqa: SLF001 -- the SDK sets it for its own types of steps alone
        if config is not None and config.code_hash is None:
            config.code_hash = utilities.get_code_hash(self._training)
        found = {"Request": json_text(self._training.arguments)}
        return found | ({"Queue": json_text(self._options)} if self._options else {})


def json_text(value: Mapping[str, Any]) -> Any:
    """Return a value as JSON text; a `Join` of its parts if it contains pipeline variables."""
    variables: list[Any] = []

    def mark(variable: Any) -> str:
        if not isinstance(variable, PipelineVariable):
            raise TypeError(f"{type(variable).__name__} is no JSON value")
        variables.append(variable)
        return _MARK.format(len(variables) - 1)

    text = json.dumps(value, default=mark)
    return Join(on="", values=list(_parts(text, variables))) if variables else text


def _parts(text: str, variables: Sequence[Any]) -> Iterator[Any]:
    """Yield the texts between variables, and the variables, in quotes unless they are numbers or booleans."""
    pieces = _MARKED.split(text)
    quote = ""
    for piece, number in zip(pieces[::2], [*pieces[1::2], None], strict=True):
        after = quote
        quote = "" if number is None or _is_number(variables[int(number)]) else '"'
        if joined := after + piece + quote:
            yield joined
        if number is not None:
            yield variables[int(number)]


def _is_number(variable: Any) -> bool:
    kind = getattr(variable, "parameter_type", None)
    return kind is not None and kind.value in _NUMBERS
