"""Reads a CreateHyperParameterTuningJob request as a sweep, for those who move from `HyperparameterTuner`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainmaster.client.sweeps.space import invalid, number, parse_ranges
from trainmaster.client.sweeps.sweep import Goal, Objective, Strategy, Sweep

_STRATEGIES: Final[Mapping[str, Strategy]] = {"Grid": "grid", "Random": "random", "Bayesian": "optuna"}
_OBJECTIVE_PARAMETER: Final = "_tuning_objective_metric"
"""Hyperparameter that SageMaker gives the trials of its tuning jobs; its own XGBoost reads it."""
_SAME: Final = (
    "RoleArn",
    "AlgorithmSpecification",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "VpcConfig",
    "StoppingCondition",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "CheckpointConfig",
    "RetryStrategy",
    "Environment",
)
"""Members of a HyperParameterTrainingJobDefinition that a CreateTrainingJob request has under the same name."""
_READ: Final = {"StaticHyperParameters", "HyperParameterRanges", "TuningObjective", "DefinitionName"}
_INSTANCES: Final = {"InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId"}
_TOP: Final = {
    "HyperParameterTuningJobName",
    "HyperParameterTuningJobConfig",
    "TrainingJobDefinition",
    "TrainingJobDefinitions",
    "Tags",
}
DESCRIBED: Final = frozenset(
    {
        *(
            "HyperParameterTuningJobArn",
            "HyperParameterTuningJobStatus",
            "HyperParameterTuningEndTime",
            "FailureReason",
        ),
        *("CreationTime", "LastModifiedTime", "TrainingJobStatusCounters", "ObjectiveStatusCounters"),
        *("BestTrainingJob", "OverallBestTrainingJob", "TuningJobCompletionDetails", "ConsumedResources"),
    }
)
"""Members that only DescribeHyperParameterTuningJob has, so that its answers are sweeps as well."""
_CONFIG: Final = {
    "Strategy",
    "HyperParameterTuningJobObjective",
    "ResourceLimits",
    "ParameterRanges",
    "TrainingJobEarlyStoppingType",
    "RandomSeed",
}


@dataclass(frozen=True, slots=True)
class ConvertedTuningJob:
    """The arguments of a sweep, and the members of the tuning job that have no effect on it."""

    arguments: Mapping[str, Any]
    not_honored: tuple[str, ...]


def is_tuning_job(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a CreateHyperParameterTuningJob request."""
    return "HyperParameterTuningJobConfig" in document


def sweep_of_tuning_job(request: Mapping[str, Any], **changes: Any) -> Sweep:
    """Return the sweep of a CreateHyperParameterTuningJob request, with other values for the given attributes.

    Raises Refused.
    """
    return Sweep(**{**convert_tuning_job(request).arguments, **changes})


def convert_tuning_job(request: Mapping[str, Any]) -> ConvertedTuningJob:
    """Return the attributes of the sweep of a CreateHyperParameterTuningJob request. Raises Refused."""
    config, definition = _object(request, "HyperParameterTuningJobConfig"), _definition(request)
    limits = _object(config, "ResourceLimits")
    objective = _objective(config.get("HyperParameterTuningJobObjective") or definition.get("TuningObjective"))
    ranges = config.get("ParameterRanges") or definition.get("HyperParameterRanges") or {}
    seed = config.get("RandomSeed")
    arguments = {
        "name": str(request.get("HyperParameterTuningJobName", "")),
        "request": _training_job(definition, objective, request.get("Tags") or []),
        "space": parse_ranges(ranges),
        "strategy": _strategy(config),
        "trials": _whole(limits, "MaxNumberOfTrainingJobs"),
        "max_concurrent": _whole(limits, "MaxParallelTrainingJobs"),
        "objective": objective,
        "seed": None if seed is None else int(number(seed, "RandomSeed")),
        "early_stopping": config.get("TrainingJobEarlyStoppingType", "Off") == "Auto" and objective is not None,
    }
    return ConvertedTuningJob(arguments, tuple(_not_honored(request, config, definition, limits)))


def _strategy(config: Mapping[str, Any]) -> Strategy:
    given = config.get("Strategy", "Bayesian")
    if given not in _STRATEGIES:
        hint = f"Use {', '.join(_STRATEGIES)}."
        raise invalid(f"The strategy {given} has no counterpart.", "HyperParameterTuningJobConfig.Strategy", hint)
    return _STRATEGIES[given]


def _definition(request: Mapping[str, Any]) -> Mapping[str, Any]:
    several = request.get("TrainingJobDefinitions") or []
    if len(several) > 1:
        hint = "Submit one sweep for each definition."
        raise invalid("The tuning job has several definitions.", "TrainingJobDefinitions", hint)
    return several[0] if several else _object(request, "TrainingJobDefinition")


def _training_job(
    definition: Mapping[str, Any], objective: Objective | None, tags: list[dict[str, str]]
) -> dict[str, Any]:
    """Return the trials' request without the hyperparameters that differ."""
    request = {name: definition[name] for name in _SAME if name in definition}
    static = dict(definition.get("StaticHyperParameters") or {})
    if objective is not None:
        static.setdefault(_OBJECTIVE_PARAMETER, objective.metric)
    if "ResourceConfig" not in request:
        request["ResourceConfig"] = _resources(definition)
    return {**request, "HyperParameters": static, "Tags": tags}


def _resources(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ResourceConfig of a HyperParameterTuningResourceConfig, which may list several types."""
    given = _object(definition, "HyperParameterTuningResourceConfig")
    configs = given.get("InstanceConfigs") or [{}]
    if len(configs) > 1:
        where = "TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs"
        hint = "Give one, or request resources with the tag trainmaster:resources."
        raise invalid("The definition has several instance types.", where, hint)
    return {name: value for name, value in {**given, **configs[0]}.items() if name in _INSTANCES}


def _objective(given: Mapping[str, Any] | None) -> Objective | None:
    if not given:
        return None
    goals: dict[str, Goal] = {"Minimize": "Minimize", "Maximize": "Maximize"}
    goal = goals.get(str(given.get("Type")))
    if goal is None or not given.get("MetricName"):
        raise invalid("The objective is incomplete.", "HyperParameterTuningJobObjective", "Set Type and MetricName.")
    return Objective(str(given["MetricName"]), goal)


def _whole(limits: Mapping[str, Any], name: str) -> int | None:
    return None if limits.get(name) is None else int(number(limits[name], f"ResourceLimits.{name}"))


def _object(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = parent.get(name, {})
    if not isinstance(value, Mapping):
        raise invalid(f"{name} is not an object.", name, "Use CreateHyperParameterTuningJob's members.")
    return value


def _not_honored(
    request: Mapping[str, Any],
    config: Mapping[str, Any],
    definition: Mapping[str, Any],
    limits: Mapping[str, Any],
) -> list[str]:
    """Return the members without effect on the sweep."""
    known = _READ | set(_SAME) | {"HyperParameterTuningResourceConfig"}
    parts = ((request, _TOP | DESCRIBED), (config, _CONFIG), (definition, known), (limits, {*_LIMITS}))
    return [name for part, read in parts for name in part if name not in read]


_LIMITS: Final = ("MaxNumberOfTrainingJobs", "MaxParallelTrainingJobs")
