"""The demand and the options of a request, and that no JSON value breaks what reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from request_parts import a_group, fields, resources, tagged

from builders import G5, P5, a_request
from trainmaster.domain.errors import InvalidRequest, UnknownOption
from trainmaster.domain.requests.fields import Problem
from trainmaster.domain.requests.options import OPTIONS, Options
from trainmaster.domain.requests.resources import demand_of
from trainmaster.domain.requests.tag_names import ATTEMPT_TAGS
from trainmaster.domain.requests.tags import options_of, tag_problems
from trainmaster.domain.requests.training_job import meaning_problems
from trainmaster.domain.requests.warnings import warnings

P4 = "ml.p4d.24xlarge"


class TestDemand:
    def test_plain(self) -> None:
        assert demand_of(a_request(instance_type=P5, count=3)) == ({P5: 3},)

    def test_groups_of_one_type_add_up_and_are_needed_together(self) -> None:
        groups = [a_group("a", P5, 2), a_group("b", G5, 4), a_group("c", P5, 1)]
        assert demand_of(resources(InstanceGroups=groups)) == ({P5: 3, G5: 4},)

    def test_preferences_with_one_count_are_alternatives_in_order(self) -> None:
        request = resources(InstanceCount=2, InstancePreferences=[{"InstanceType": P5}, {"InstanceType": G5}])
        assert demand_of(request) == ({P5: 2}, {G5: 2})

    def test_preferences_with_a_count_each(self) -> None:
        preferences = [{"InstanceType": P5, "InstanceCount": 1}, {"InstanceType": G5, "InstanceCount": 8}]
        assert demand_of(resources(InstancePreferences=preferences)) == ({P5: 1}, {G5: 8})

    @pytest.mark.parametrize(
        ("request_", "field"),
        [
            (a_request(ServerlessJobConfig={"BaseModelArn": "x", "JobType": "FineTuning"}), "ServerlessJobConfig"),
            (
                {key: value for key, value in a_request().items() if key != "ResourceConfig"},
                "ResourceConfig.InstanceType",
            ),
            (resources(InstanceType=P5), "ResourceConfig.InstanceCount"),
            (resources(InstanceCount=1), "ResourceConfig.InstanceType"),
        ],
    )
    def test_none_is_a_typed_error(self, request_: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidRequest) as refused:
            demand_of(request_)
        assert refused.value.field == field
        assert refused.value.hint


class TestOptions:
    @pytest.mark.parametrize(
        ("text", "priority"),
        [("0", 0), ("100", 100), ("-5", -5), ("+5", 5), ("007", 7), ("1000000", 10**6), ("-1000000", -(10**6))],
    )
    def test_priority(self, text: str, priority: int) -> None:
        assert options_of(tagged(("priority", text))) == Options(priority=priority)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "1.5",
            " 7 ",
            "7 ",
            "1e3",
            "1_000",
            "\u0663",
            "\uff17",
            "high",
            "1000001",
            "-1000001",
            "9" * 255,
            "--1",
            "0x1",
            "\n7",
        ],
    )
    def test_priority_refused(self, text: str) -> None:
        with pytest.raises(InvalidRequest) as refused:
            options_of(tagged(("team", "x"), ("priority", text)))
        assert refused.value.field == "Tags[1].Value"

    def test_priority_of_endless_zeros_is_refused_and_not_converted(self) -> None:
        assert fields(tag_problems(tagged(("priority", "0" * 10_000 + "1")))) == ["Tags[0].Value"]

    def test_defaults(self) -> None:
        assert options_of({}) == options_of(a_request()) == Options(priority=0, preemptible=True)

    @pytest.mark.parametrize(("text", "preemptible"), [("true", True), ("false", False)])
    def test_preemptible(self, text: str, preemptible: bool) -> None:
        assert options_of(tagged(("trainmaster:preemptible", text))).preemptible is preemptible

    @pytest.mark.parametrize("text", ["", "True", "no", "0"])
    def test_preemptible_takes_two_words(self, text: str) -> None:
        with pytest.raises(InvalidRequest) as refused:
            options_of(tagged(("trainmaster:preemptible", text)))
        assert refused.value.field == "Tags[0].Value"
        assert not isinstance(refused.value, UnknownOption)
        assert "'true' or 'false'" in str(refused.value.hint)

    @pytest.mark.parametrize(
        "key",
        ["trainmaster:preemptable", "trainmaster:Preemptible", "Trainmaster:preemptible", "TRAINMASTER:PREEMPTIBLE"],
    )
    def test_unknown_option_with_its_likely_meaning(self, key: str) -> None:
        with pytest.raises(UnknownOption) as refused:
            options_of(tagged((key, "false")))
        assert refused.value.field == "Tags[0].Key"
        assert "Did you mean 'trainmaster:preemptible'?" in str(refused.value.hint)

    @pytest.mark.parametrize("key", ["trainmaster:zzz", "trainmaster:", "trainmaster:" + "x" * 500])
    def test_unknown_option_lists_the_known_ones(self, key: str) -> None:
        with pytest.raises(UnknownOption) as refused:
            options_of(tagged((key, "false")))
        assert "The options are: trainmaster:after, " in str(refused.value.hint)
        assert len(str(refused.value)) < 150

    @pytest.mark.parametrize("key", ATTEMPT_TAGS)
    def test_the_queues_own_tags_cannot_be_set(self, key: str) -> None:
        with pytest.raises(InvalidRequest, match="set by the queue") as refused:
            options_of(tagged((key, "x")))
        assert not isinstance(refused.value, UnknownOption)

    @pytest.mark.parametrize("key", ["aws:x", "AWS:x", "Aws:cloudformation:stack"])
    def test_prefix_of_aws(self, key: str) -> None:
        assert fields(tag_problems(tagged((key, "x")))) == ["Tags[0].Key"]

    def test_keys_that_only_look_like_it_pass(self) -> None:
        assert tag_problems(tagged(("awsome", "x"), ("trainmasters", "x"), ("my:aws:x", "y"), ("Priority", "x"))) == []

    def test_a_key_given_twice(self) -> None:
        request = tagged(("priority", "1"), ("team", "x"), ("priority", "2"))
        assert fields(tag_problems(request)) == ["Tags[2].Key"]

    def test_room_is_left_for_the_queues_tags(self) -> None:
        share = ("trainmaster:share", "vision")
        for tags, own in [([], 6), ([share], 5)]:
            room = 50 - own
            tags += [(f"k{number}", "v") for number in range(room - len(tags))]
            assert tag_problems(tagged(*tags)) == []
            problem = tag_problems(tagged(*tags, ("another", "v")))[0]
            assert problem.field == "Tags"
            assert f"{own} of its own" in problem.hint


numbers = st.integers() | st.floats() | st.just(10**400)
scalars = st.none() | st.booleans() | numbers | st.text(st.characters()) | st.just("\ud800")
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
NAMES = [
    "ResourceConfig", "InstanceType", "InstanceCount", "InstanceGroups", "InstanceGroupName", "InstancePreferences",
    "TrainingPlanArn", "TrainingPlanArns", "KeepAlivePeriodInSeconds", "StoppingCondition", "MaxRuntimeInSeconds",
    "MaxWaitTimeInSeconds", "EnableManagedSpotTraining", "Tags", "Key", "Value", "InputDataConfig", "ChannelName",
    "DataSource", "S3DataSource", "InstanceGroupNames", "TrainingJobName", "AlgorithmSpecification", "CheckpointConfig",
    "ServerlessJobConfig",
]  # fmt: skip
keys = ["priority", "trainmaster:x", "aws:x", *(f"trainmaster:{option}" for option in OPTIONS)]
words = st.sampled_from([*keys, P5, "a", "true", "5", "2h", "2026-11-22T08:00:00Z", "a+b", "run"])
objects = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=25,
)
requests = st.dictionaries(st.sampled_from(NAMES), objects, max_size=10)


class TestAnyValue:
    @given(requests | st.dictionaries(st.text(), json_values, max_size=5))
    @example(resources(InstanceType="\ud800", InstanceCount=float("nan")))
    def test_never_raises_anything_but_refusals(self, request_: dict[str, Any]) -> None:
        found = [*tag_problems(request_), *meaning_problems(request_)]
        for problem in found:
            assert problem.field
            assert len(problem.message) < 400
            # Text that a response body has to carry.
            json.dumps([problem.field, problem.message, problem.hint]).encode()
        assert all(isinstance(said, str) for said in warnings(request_))

    @pytest.mark.parametrize("hostile", ["deep", "huge"])
    def test_depth_and_size_do_not_matter(self, hostile: str) -> None:
        value: Any = 10**5000
        for _ in range(5000 if hostile == "deep" else 0):
            value = {"ResourceConfig": value, "Tags": [value]}
        config = dict.fromkeys(("InstanceType", "InstanceCount", "InstanceGroups", "InstancePreferences"), value)
        request = {"ResourceConfig": config, "Tags": [{"Key": "priority", "Value": value}], "StoppingCondition": config}
        assert fields(tag_problems(request)) == ["Tags[0].Value"]
        assert "ResourceConfig.InstanceType" in fields(meaning_problems(request | {"TrainingJobName": value}))

    @given(requests)
    def test_no_problem_means_a_demand_and_options(self, request_: dict[str, Any]) -> None:
        for problems, read in ((meaning_problems, demand_of), (tag_problems, options_of)):
            whole = a_request() | request_
            found = problems(whole)
            if not found:
                assert read(whole)

    @given(
        st.lists(st.tuples(st.sampled_from([P5, G5, P4]), st.integers(1, 9)), min_size=1, max_size=5),
        st.sampled_from(["groups", "preferences"]),
    )
    def test_demands_have_every_type_and_at_least_one_of_it(self, parts: list[tuple[str, int]], kind: str) -> None:
        if kind == "groups":
            groups = [a_group(str(index), name, count) for index, (name, count) in enumerate(parts)]
            (units,) = demand_of(resources(InstanceGroups=groups))
            assert sum(units.values()) == sum(count for _, count in parts)
            assert set(units) == {name for name, _ in parts}
        else:
            entries = [{"InstanceType": name, "InstanceCount": count} for name, count in dict(parts).items()]
            assert demand_of(resources(InstancePreferences=entries)) == tuple(
                {name: count} for name, count in dict(parts).items()
            )

    def test_refusals_keep_field_and_hint(self) -> None:
        refusal = Problem("Tags", "wrong", "mend it", UnknownOption).refusal()
        assert isinstance(refusal, UnknownOption)
        assert (refusal.field, refusal.message, refusal.hint) == ("Tags", "wrong", "mend it")
