"""Refusals of well-formed requests, and warnings about them."""

from __future__ import annotations

from typing import Any

import pytest
from request_parts import a_channel, a_group, fields, resources, tagged

from builders import G5, P5, a_request
from trainmaster.domain.requests.training_job import meaning_problems
from trainmaster.domain.requests.warnings import warnings

SPOT = {"EnableManagedSpotTraining": True, "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}
TYPED = {"InstanceType": P5, "InstanceCount": 1}
TWO = [{"InstanceType": P5}, {"InstanceType": G5}]
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/mine"


class TestMeaning:
    @pytest.mark.parametrize(
        "request_",
        [
            a_request(),
            a_request(**SPOT),
            resources(**TYPED, KeepAlivePeriodInSeconds=600),
            a_request(**SPOT) | {"ResourceConfig": TYPED | {"KeepAlivePeriodInSeconds": 0}},
            # The guide says that keep-alive applies to whichever type is selected.
            resources(InstanceCount=1, InstancePreferences=TWO, KeepAlivePeriodInSeconds=600),
            resources(InstanceCount=1, InstancePreferences=TWO, TrainingPlanArn=PLAN),
            resources(InstanceGroups=[a_group("a"), a_group("b")]) | {"InputDataConfig": [a_channel("x", "a", "b")]},
            a_request(AlgorithmSpecification={"AlgorithmName": "mine", "TrainingInputMode": "File"}),
            a_request(StoppingCondition={"MaxRuntimeInSeconds": 28 * 86_400}),
            a_request("qstamp-1"),
        ],
    )
    def test_accepted(self, request_: dict[str, Any]) -> None:
        assert meaning_problems(request_) == []

    @pytest.mark.parametrize(
        ("request_", "field"),
        [
            (a_request("job1-qstamp-2"), "TrainingJobName"),
            (
                a_request(StoppingCondition={"MaxRuntimeInSeconds": 28 * 86_400 + 1}),
                "StoppingCondition.MaxRuntimeInSeconds",
            ),
            (
                a_request(StoppingCondition={"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 2}),
                "StoppingCondition.MaxWaitTimeInSeconds",
            ),
            (a_request(AlgorithmSpecification={"TrainingInputMode": "File"}), "AlgorithmSpecification"),
            (
                a_request(AlgorithmSpecification={"TrainingImage": "x", "AlgorithmName": "y"}),
                "AlgorithmSpecification.AlgorithmName",
            ),
            (
                a_request(InputDataConfig=[a_channel("x"), a_channel("y"), a_channel("x")]),
                "InputDataConfig[2].ChannelName",
            ),
            (
                a_request(InputDataConfig=[a_channel("x", "a")]),
                "InputDataConfig[0].DataSource.S3DataSource.InstanceGroupNames",
            ),
        ],
    )
    def test_refused(self, request_: dict[str, Any], field: str) -> None:
        assert fields(meaning_problems(request_)) == [field]

    @pytest.mark.parametrize(
        ("condition", "said"),
        [
            ({"MaxRuntimeInSeconds": 60}, "needs MaxWaitTimeInSeconds"),
            ({"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59}, "59, less than MaxRuntimeInSeconds, 60"),
            ({"MaxWaitTimeInSeconds": 3600}, "less than SageMaker's default for MaxRuntimeInSeconds, 86400"),
            ({}, "needs MaxWaitTimeInSeconds"),
        ],
    )
    def test_spot_waits_at_least_as_long_as_it_runs(self, condition: dict[str, int], said: str) -> None:
        (problem,) = meaning_problems(a_request(EnableManagedSpotTraining=True, StoppingCondition=condition))
        assert problem.field == "StoppingCondition.MaxWaitTimeInSeconds"
        assert said in problem.message

    @pytest.mark.parametrize(
        ("config", "field"),
        [
            (TYPED | {"InstanceCount": 0}, "InstanceCount"),
            (TYPED | {"SelectedInstanceType": P5}, "SelectedInstanceType"),
            (TYPED | {"SelectedInstanceCount": 1}, "SelectedInstanceCount"),
            ({"InstanceType": P5, "InstanceGroups": [a_group("a")]}, "InstanceType"),
            ({"InstanceCount": 1, "InstanceGroups": [a_group("a")]}, "InstanceCount"),
            ({"InstanceGroups": [a_group("a")], "InstancePreferences": TWO}, "InstancePreferences"),
            ({"InstanceGroups": [a_group("a"), a_group("a", G5)]}, "InstanceGroups[1].InstanceGroupName"),
            ({"InstanceGroups": [a_group("a", P5, 0)]}, "InstanceGroups[0].InstanceCount"),
            ({"InstanceGroups": [a_group("a")], "KeepAlivePeriodInSeconds": 1}, "KeepAlivePeriodInSeconds"),
            ({"InstanceCount": 1, "InstancePreferences": TWO, "InstanceType": P5}, "InstanceType"),
            (
                {"InstanceCount": 1, "InstancePreferences": TWO, "InstancePlacementConfig": {}},
                "InstancePlacementConfig",
            ),
            (
                {"InstanceCount": 1, "InstancePreferences": [*TWO, {"InstanceType": P5}]},
                "InstancePreferences[2].InstanceType",
            ),
            ({"InstanceCount": 0, "InstancePreferences": TWO}, "InstanceCount"),
            (
                {"InstanceCount": 1, "InstancePreferences": [TWO[0], TWO[1] | {"InstanceCount": 1}]},
                "InstancePreferences[1].InstanceCount",
            ),
            ({"InstancePreferences": [TWO[0], TWO[1] | {"InstanceCount": 1}]}, "InstancePreferences[0].InstanceCount"),
            (
                {
                    "InstanceCount": 1,
                    "TrainingPlanArn": PLAN,
                    "InstancePreferences": [TWO[0] | {"TrainingPlanArns": [PLAN]}],
                },
                "InstancePreferences[0].TrainingPlanArns",
            ),
        ],
    )
    def test_resources_refused(self, config: dict[str, Any], field: str) -> None:
        assert fields(meaning_problems(resources(**config))) == [f"ResourceConfig.{field}"]

    @pytest.mark.parametrize(
        ("config", "field"),
        [
            (TYPED | {"KeepAlivePeriodInSeconds": 60}, "KeepAlivePeriodInSeconds"),
            ({"InstanceCount": 1, "InstancePreferences": TWO}, "InstancePreferences"),
        ],
    )
    def test_spot_refused(self, config: dict[str, Any], field: str) -> None:
        assert fields(meaning_problems(resources(**config) | SPOT)) == [f"ResourceConfig.{field}"]

    def test_channels_go_to_groups_all_or_none_and_to_groups_that_exist(self) -> None:
        request = resources(InstanceGroups=[a_group("a"), a_group("b")])
        request["InputDataConfig"] = [a_channel("x", "a", "missing"), a_channel("y")]
        assert [problem.message for problem in meaning_problems(request)] == [
            "There is no instance group 'missing'.",
            "This channel is assigned to no instance group, while another one is.",
        ]

    def test_everything_wrong_is_told_at_once(self) -> None:
        request = resources(InstanceCount=0, KeepAlivePeriodInSeconds=60) | SPOT | {"TrainingJobName": "a-qstamp-b"}
        assert fields(meaning_problems(request)) == [
            "ResourceConfig.InstanceType",
            "ResourceConfig.InstanceCount",
            "TrainingJobName",
            "ResourceConfig.KeepAlivePeriodInSeconds",
        ]


class TestWarnings:
    def test_none_for_a_careful_job(self) -> None:
        assert warnings(a_request()) == []

    def test_no_checkpoint(self) -> None:
        (said,) = warnings(a_request(checkpoint=False))
        assert "set CheckpointConfig.S3Uri" in said

    @pytest.mark.parametrize("preemptible", [None, False])
    def test_no_checkpoint_does_not_matter_where_nothing_preempts(self, preemptible: bool | None) -> None:
        options = {"preemptible": "false"} if preemptible is None else {}
        assert warnings(a_request(checkpoint=False, options=options), preemptible=preemptible) == []

    def test_the_settings_may_overrule_the_tag(self) -> None:
        request = a_request(checkpoint=False, options={"preemptible": "false"})
        assert len(warnings(request, preemptible=True)) == 1

    def test_no_runtime(self) -> None:
        (said,) = warnings(a_request(StoppingCondition={}))
        assert "set it to the longest time" in said

    def test_keep_alive(self) -> None:
        (said,) = warnings(resources(**TYPED, KeepAlivePeriodInSeconds=60))
        assert "sets KeepAlivePeriodInSeconds to 0" in said
        assert warnings(resources(**TYPED, KeepAlivePeriodInSeconds=0)) == []

    @pytest.mark.parametrize("key", ["Priority", "PRIORITY", " priority"])
    def test_a_priority_tag_that_is_none(self, key: str) -> None:
        (said,) = warnings(tagged((key, "5")))
        assert "the queue reads 'priority'" in said
