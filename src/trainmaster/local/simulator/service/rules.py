"""Rules that SageMaker checks at CreateTrainingJob beyond the constraints of single members.

Sources: CreateTrainingJob, ResourceConfig and StoppingCondition (SageMaker API reference); train-instance-preferences,
"Managed Spot Training in Amazon SageMaker AI" and "SageMaker AI Managed Warm Pools" (SageMaker developer guide). Error
messages that AWS does not publish are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.domain.requests.training_job import MAX_RUNTIME
from trainmaster.local.simulator.wire.errors import invalid

MAX_TAGS = 50


def check(request: Mapping[str, Any]) -> None:
    """Raise `ApiError` (`ValidationException`) if members of the request contradict each other."""
    _check_algorithm(request)
    _check_resources(request)
    _check_times(request)
    check_tags({}, request.get("Tags", []))


def check_tags(present: Mapping[str, str], added: list[dict[str, str]]) -> None:
    """Raise `ApiError` for a duplicate key, or too many tags."""
    keys = [tag["Key"] for tag in added]
    if len(set(keys)) < len(keys):
        raise invalid("Duplicate tag keys found. Please note that Tag keys are case insensitive.")
    if len({*present, *keys}) > MAX_TAGS:
        raise invalid(f"A resource can have at most {MAX_TAGS} tags.")


def _check_algorithm(request: Mapping[str, Any]) -> None:
    algorithm = request.get("AlgorithmSpecification", {})
    if "ServerlessJobConfig" in request:
        return
    if ("TrainingImage" in algorithm) == ("AlgorithmName" in algorithm):
        raise invalid("You must specify either TrainingImage or AlgorithmName in AlgorithmSpecification.")


def _check_resources(request: Mapping[str, Any]) -> None:
    config = request.get("ResourceConfig")
    if config is None:
        if "ServerlessJobConfig" not in request:
            raise invalid("ResourceConfig is required.")
        return
    kinds = [name for name in ("InstanceType", "InstanceGroups", "InstancePreferences") if name in config]
    if len(kinds) != 1:
        raise invalid("Specify exactly one of InstanceType, InstanceGroups and InstancePreferences.")
    if "SelectedInstanceType" in config or "SelectedInstanceCount" in config:
        raise invalid("SelectedInstanceType and SelectedInstanceCount are read-only.")
    _check_kind(kinds[0], config)
    _check_combinations(kinds[0], config, spot=bool(request.get("EnableManagedSpotTraining")))


def _check_kind(kind: str, config: Mapping[str, Any]) -> None:
    common = "InstanceCount" in config
    if kind == "InstanceType" and not common:
        raise invalid("InstanceCount is required with InstanceType.")
    if kind == "InstanceGroups" and common:
        raise invalid("InstanceCount cannot be specified with InstanceGroups.")
    if kind == "InstancePreferences":
        _check_preferences(config["InstancePreferences"], common=common)


def _check_preferences(preferences: list[dict[str, Any]], *, common: bool) -> None:
    own = sum("InstanceCount" in each for each in preferences)
    if own not in (0, len(preferences)) or common == bool(own):
        raise invalid("Set InstanceCount on every InstancePreference, or once for the job in ResourceConfig.")
    if len({each["InstanceType"] for each in preferences}) < len(preferences):
        raise invalid("An instance type can appear only once in InstancePreferences.")


def _check_combinations(kind: str, config: Mapping[str, Any], *, spot: bool) -> None:
    if spot and kind == "InstancePreferences":
        raise invalid("InstancePreferences cannot be specified when EnableManagedSpotTraining is set to true.")
    if kind == "InstancePreferences" and "InstancePlacementConfig" in config:
        raise invalid("InstancePlacementConfig cannot be specified with InstancePreferences.")
    if config.get("KeepAlivePeriodInSeconds"):
        if spot:
            raise invalid("KeepAlivePeriodInSeconds cannot be specified with EnableManagedSpotTraining.")
        if kind == "InstanceGroups":
            raise invalid("KeepAlivePeriodInSeconds cannot be specified with InstanceGroups.")


def _check_times(request: Mapping[str, Any]) -> None:
    stopping = request.get("StoppingCondition", {})
    runtime, wait = stopping.get("MaxRuntimeInSeconds", 0), stopping.get("MaxWaitTimeInSeconds")
    if runtime > MAX_RUNTIME:
        raise invalid(f"MaxRuntimeInSeconds must be at most {MAX_RUNTIME}.")
    spot = bool(request.get("EnableManagedSpotTraining"))
    if wait is not None and not spot:
        raise invalid(
            "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"
        )
    if spot and (wait is None or wait < runtime):
        raise invalid(
            "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds"
        )
