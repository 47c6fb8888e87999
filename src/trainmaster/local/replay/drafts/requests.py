"""Requests of replayed jobs: what of a submitted request the queue decides by, and the simulator's variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG
from trainmaster.local.simulator import Profile

Request = dict[str, Any]
_ROLE = "arn:aws:iam::111122223333:role/replay"
_PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/"
"""Training plans of the simulated account."""
_KEPT = ("ResourceConfig", "StoppingCondition", "EnableManagedSpotTraining", "RetryStrategy", "CheckpointConfig")
_ALGORITHM = ("TrainingImage", "AlgorithmName")


def replayed_plan(arn: str | None) -> str | None:
    """Return the ARN of a training plan in the simulated account."""
    return None if arn is None else _PLAN + arn.rpartition("/")[2]


def plan_name(arn: str) -> str:
    """Return the name of a training plan."""
    return arn.rpartition("/")[2]


def replayed_request(name: str, details: Mapping[str, Any]) -> Request:
    """Return the parts of a submitted request that the queue decides by."""
    algorithm = details.get("AlgorithmSpecification") or {}
    known = {key: algorithm[key] for key in _ALGORITHM if key in algorithm}
    request: Request = {
        "TrainingJobName": name,
        "RoleArn": _ROLE,
        "AlgorithmSpecification": {**known, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://replay/output"},
        **{key: details[key] for key in _KEPT if key in details},
        "Tags": [tag for tag in details.get("Tags") or [] if _is_option(tag)],
    }
    config = request.get("ResourceConfig") or {}
    if (plan := config.get("TrainingPlanArn")) is not None:
        request["ResourceConfig"] = {**config, "TrainingPlanArn": replayed_plan(plan)}
    return request


def with_profile(request: Request, profile: Profile, *, checkpointed: bool) -> Request:
    """Return a request whose training job takes the time of the profile, and resumes if it writes checkpoints.

    Checkpoints are apart by job: the simulator's jobs of one URI share their progress.
    """
    variables = {
        "TRAINING_SECONDS": repr(profile.training_seconds),
        "STARTING_SECONDS": repr(profile.starting_seconds),
        "OUTCOME": profile.outcome.value,
        "FAILURE_REASON": profile.failure_reason,
    }
    made = {key: value for key, value in request.items() if key != "CheckpointConfig"}
    if checkpointed:
        made["CheckpointConfig"] = {"S3Uri": f"s3://replay/checkpoints/{request['TrainingJobName']}"}
    return made | {"Environment": {f"SIMULATOR_{name}": value for name, value in variables.items()}}


def _is_option(tag: Any) -> bool:
    key = tag.get("Key") if isinstance(tag, Mapping) else None
    return isinstance(key, str) and (key == PRIORITY_TAG or key.startswith(OPTION_PREFIX))
