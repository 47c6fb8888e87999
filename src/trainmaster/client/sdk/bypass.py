"""Warns of calls that have SageMaker use instances without the queue."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from trainmaster.client.api.errors import NotConfigured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainmaster.client.api.client import ApiClient


class QueueBypassWarning(UserWarning):
    """A call that has SageMaker use instances without the queue. As an error, it stops the call."""


_PIPELINE = (
    "SageMaker starts the training, tuning and AutoML steps of a pipeline itself: these jobs bypass the queue, and do "
    "not wait for its pools. Replace a training step by trainmaster.pipelines.QueueStep, which has the queue run the "
    "job and waits for it."
)
_AUTOML = (
    "SageMaker starts the jobs of an AutoML job itself: they bypass the queue, and do not wait for its pools. Submit "
    "training jobs to the queue instead, or reserve instances outside its pools."
)
_MESSAGES = {
    "CreateHyperParameterTuningJob": (
        "SageMaker starts the training jobs of a tuning job itself: they bypass the queue, and do not wait for its "
        "pools. Submit each trial to the queue instead: one training job per set of hyperparameters."
    ),
    "CreateAutoMLJob": _AUTOML,
    "CreateAutoMLJobV2": _AUTOML,
    "CreatePipeline": _PIPELINE,
    "UpdatePipeline": _PIPELINE,
    "StartPipelineExecution": _PIPELINE,
    "CreateProcessingJob": (
        "Processing jobs bypass the queue, which has no pools for them: they start at once, within SageMaker's quotas "
        "for processing. Run the work as a training job if it should wait for the queue's instances."
    ),
    "CreateTransformJob": (
        "Batch transform jobs bypass the queue, which has no pools for them: they start at once, within SageMaker's "
        "quotas for transform jobs. Run the work as a training job if it should wait for the queue's instances."
    ),
}
OPERATIONS = tuple(_MESSAGES)
"""The operations that `warn` knows."""
_TRAINING_STEPS = ("Training", "Tuning", "AutoML")


def warn(_: str, message: str) -> None:
    """Warn that an operation bypasses the queue; with Python's default filter, once for each message.

    Raises QueueBypassWarning if a filter makes it an error.
    """
    warnings.warn(message, QueueBypassWarning, stacklevel=1)


def message_of(operation: str, request: Mapping[str, Any]) -> str | None:
    """Return the warning for a call that bypasses the queue; None for a pipeline that trains nothing."""
    trains = "PipelineDefinition" not in request or _trains(request["PipelineDefinition"])
    return _MESSAGES[operation] if trains else None


def is_elsewhere(region: str, api: ApiClient) -> bool:
    """Return whether a Region is another than the queue's; False if the queue's is not configured."""
    try:
        return region != api.region
    except NotConfigured:
        return False


def region_message(region: str, home: str) -> str:
    """Return the warning for a job of another Region than the queue's."""
    return f"Jobs in {region} bypass the queue, which is in {home}."


def _trains(definition: str) -> bool:
    """Return whether a pipeline has a step that trains, also inside of conditions; unreadable ones count."""
    try:
        return _has_training_step(json.loads(definition))
    except ValueError:
        return True


def _has_training_step(value: object) -> bool:
    if isinstance(value, dict):
        return value.get("Type") in _TRAINING_STEPS or any(map(_has_training_step, value.values()))
    return isinstance(value, list) and any(map(_has_training_step, value))
