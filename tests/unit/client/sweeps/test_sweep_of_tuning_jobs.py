"""CreateHyperParameterTuningJob requests as sweeps."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator

from trainmaster import sweep_of_tuning_job
from trainmaster.client.api.errors import Refused
from trainmaster.client.sweeps.space import Categorical, Continuous, Integer
from trainmaster.client.sweeps.sweep import Objective
from trainmaster.client.sweeps.tuning_job import DESCRIBED, convert_tuning_job

ROLE = "arn:aws:iam::123456789012:role/trainer"


def a_tuning_job(config: Any = None, definition: Any = None, **changes: Any) -> dict[str, Any]:
    return {
        "HyperParameterTuningJobName": "xgboost-tuning",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 20, "MaxParallelTrainingJobs": 3},
            "ParameterRanges": {
                "ContinuousParameterRanges": [
                    {"Name": "eta", "MinValue": "0.01", "MaxValue": "0.5", "ScalingType": "Logarithmic"}
                ],
                "IntegerParameterRanges": [{"Name": "max_depth", "MinValue": "1", "MaxValue": "10"}],
                "CategoricalParameterRanges": [{"Name": "tree_method", "Values": ["auto", "hist"]}],
            },
            "TrainingJobEarlyStoppingType": "Auto",
            "RandomSeed": 7,
        }
        | (config or {}),
        "TrainingJobDefinition": {
            "StaticHyperParameters": {"num_round": "100"},
            "AlgorithmSpecification": {
                "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/xgboost:1",
                "TrainingInputMode": "File",
            },
            "RoleArn": ROLE,
            "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        }
        | (definition or {}),
        "Tags": [{"Key": "team", "Value": "vision"}],
    } | changes


def check(operation: str, request: dict[str, Any]) -> None:
    """Hold a request against botocore's model of the operation."""
    client = boto3.client("sagemaker", region_name="us-east-1")
    shape = client.meta.service_model.operation_model(operation).input_shape
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()


def test_a_tuning_job_is_a_sweep_with_its_ranges_limits_and_objective() -> None:
    check("CreateHyperParameterTuningJob", a_tuning_job())
    sweep = sweep_of_tuning_job(a_tuning_job())
    assert (sweep.name, sweep.strategy, sweep.trials, sweep.max_concurrent) == ("xgboost-tuning", "random", 20, 3)
    assert sweep.space == {
        "eta": Continuous(0.01, 0.5, "Logarithmic"),
        "max_depth": Integer(1, 10),
        "tree_method": Categorical("auto", "hist"),
    }
    assert sweep.objective == Objective("validation:auc", "Maximize")
    assert (sweep.seed, sweep.early_stopping) == (7, True)
    trials = sweep.planned()
    assert len(trials) == 20
    for trial in trials:
        request = sweep.request_of(trial)
        check("CreateTrainingJob", request)
        static = {"num_round": "100", "_tuning_objective_metric": "validation:auc"}
        assert request["HyperParameters"] == static | trial.values
        assert request["Tags"][0] == {"Key": "team", "Value": "vision"}


def test_one_definition_in_a_list_has_its_own_ranges_objective_and_resources() -> None:
    plain = a_tuning_job()
    config = plain["HyperParameterTuningJobConfig"]
    definition = plain.pop("TrainingJobDefinition") | {
        "DefinitionName": "one",
        "TuningObjective": config.pop("HyperParameterTuningJobObjective"),
        "HyperParameterRanges": config.pop("ParameterRanges"),
    }
    resources = definition.pop("ResourceConfig")
    definition["HyperParameterTuningResourceConfig"] = resources
    request = plain | {"TrainingJobDefinitions": [definition]}
    check("CreateHyperParameterTuningJob", request)
    assert sweep_of_tuning_job(request) == sweep_of_tuning_job(a_tuning_job())
    configs = [{"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10}]
    definition["HyperParameterTuningResourceConfig"] = {"InstanceConfigs": configs}
    assert sweep_of_tuning_job(request).request["ResourceConfig"] == resources
    with pytest.raises(Refused, match="several definitions"):
        sweep_of_tuning_job(request | {"TrainingJobDefinitions": [definition] * 2})
    definition["HyperParameterTuningResourceConfig"] = {"InstanceConfigs": configs * 2}
    with pytest.raises(Refused, match="several instance types"):
        sweep_of_tuning_job(request)


def test_members_without_effect_are_named() -> None:
    limits = {"MaxNumberOfTrainingJobs": 20, "MaxParallelTrainingJobs": 3, "MaxRuntimeInSeconds": 3600}
    criteria = {"TargetObjectiveMetricValue": 0.9}
    request = a_tuning_job({"ResourceLimits": limits, "TuningJobCompletionCriteria": criteria}, WarmStartConfig={})
    not_honored = convert_tuning_job(request).not_honored
    assert not_honored == ("WarmStartConfig", "TuningJobCompletionCriteria", "MaxRuntimeInSeconds")


def test_the_description_of_a_tuning_job_is_the_same_sweep() -> None:
    model = boto3.client("sagemaker", region_name="us-east-1").meta.service_model
    described = model.operation_model("DescribeHyperParameterTuningJob").output_shape.members.keys()
    assert described - model.operation_model("CreateHyperParameterTuningJob").input_shape.members.keys() == DESCRIBED
    described_job = a_tuning_job() | dict.fromkeys(DESCRIBED, "x")
    assert convert_tuning_job(described_job) == convert_tuning_job(a_tuning_job())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"Strategy": "Hyperband"}, "Hyperband has no counterpart"),
        ({"Strategy": "Bayesian"}, "Optuna's storage is missing"),
        ({"HyperParameterTuningJobObjective": {"Type": "Best"}}, "objective is incomplete"),
        ({"ResourceLimits": []}, "ResourceLimits is not an object"),
        ({"ResourceLimits": {"MaxNumberOfTrainingJobs": "many"}}, "'many' is not a number"),
    ],
)
def test_what_a_sweep_cannot_do_is_refused_in_words(config: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        sweep_of_tuning_job(a_tuning_job(config))


def test_attributes_can_be_changed() -> None:
    changed = sweep_of_tuning_job(a_tuning_job({"Strategy": "Bayesian"}), strategy="random", trials=5, name="other")
    assert (changed.strategy, changed.trials, changed.name) == ("random", 5, "other")
