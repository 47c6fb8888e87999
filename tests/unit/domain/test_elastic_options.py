"""The options of elastic jobs: the bounds that they become, and every rule with its field."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from request_parts import a_group

from builders import P5, a_request
from samples import examples
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.elastic.sizes import Elastic, Hook, RestartBudget
from trainmaster.domain.requests.elastic.bounds import elastic_of
from trainmaster.domain.requests.elastic.rules import form_problems
from trainmaster.domain.requests.option_rules import option_problems
from trainmaster.domain.requests.tags import options_of, tag_problems
from trainmaster.service.attempt_request import environment

LAMBDA = "arn:aws:lambda:us-east-1:111122223333:function:resize-it:live"
VPC = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
SAYS_NOTHING = timedelta(seconds=60), timedelta(seconds=600), timedelta(seconds=30), timedelta(0)


def asking(count: int = 2, config: dict[str, Any] | None = None, members: Any = (), **texts: str) -> dict[str, Any]:
    request = a_request(count=count, options={name.replace("_", "-"): text for name, text in texts.items()})
    return request | {"ResourceConfig": config or request["ResourceConfig"]} | dict(members)


def elastic(count: int = 2, **texts: str) -> Elastic:
    request = asking(count, **texts)
    options = options_of(request)
    assert [*option_problems(request, options)] == []
    found = elastic_of(request, options)
    assert found is not None
    return found


def wrong(count: int = 2, config: dict[str, Any] | None = None, **texts: str) -> dict[str, str]:
    """Problems by option; those of a field of the request by its path."""
    request = asking(count, config, **texts)
    names = {f"Tags[{i}].Value": tag["Key"].partition(":")[2] for i, tag in enumerate(request["Tags"])}
    problems = [*option_problems(request, options_of(request))]
    assert all(problem.hint for problem in problems)
    return {names.get(problem.field, problem.field): problem.message for problem in problems}


class TestBounds:
    def test_the_most_alone_makes_a_job_elastic_from_what_it_has(self):
        found = elastic(2, max_instances="5")
        assert (found.min_instances, found.max_instances, found.sizes, found.hook) == (2, 5, (2, 3, 4, 5), Hook.RESTART)

    def test_steps(self):
        assert elastic(4, min_instances="2", max_instances="8", instance_step="2").sizes == (2, 4, 6, 8)

    def test_values(self):
        found = elastic(4, instance_values="1+4 16")
        assert (found.min_instances, found.max_instances, found.sizes, found.values) == (1, 16, (1, 4, 16), (1, 4, 16))

    def test_values_with_their_ends_said_again(self):
        assert elastic(8, min_instances="2", max_instances="8", instance_values="2+8").sizes == (2, 8)

    def test_one_size_is_a_size(self):
        assert elastic(3, max_instances="3").sizes == (3,)

    def test_without_a_most_or_values_a_job_is_not_elastic(self):
        request = asking()
        assert elastic_of(request, options_of(request)) is None

    def test_a_job_by_resources_has_its_number_from_its_tag(self):
        config = {"VolumeSizeInGB": 30}
        request = asking(config=config, resources="accelerators=8", instances="3", max_instances="6")
        found = elastic_of(request, options_of(request))
        assert found is not None
        assert (found.min_instances, found.max_instances) == (3, 6)

    def test_or_one_where_nothing_is_said(self):
        request = asking(config={"VolumeSizeInGB": 30}, resources="accelerators=8", max_instances="6")
        found = elastic_of(request, options_of(request))
        assert found is not None
        assert found.min_instances == 1


class TestTimesAndBudget:
    def test_are_hyperpods_where_nothing_is_said(self):
        found = elastic(max_instances="4")
        times = (
            found.scaling_timeout,
            found.graceful_shutdown_timeout,
            found.faulty_scale_down_timeout,
            found.scale_up_snooze,
        )
        assert times == SAYS_NOTHING
        assert found.budget == RestartBudget()

    def test_are_what_the_job_says(self):
        found = elastic(
            max_instances="4",
            scaling_timeout="2m",
            graceful_shutdown_timeout="100",
            faulty_scale_down_timeout="0",
            scale_up_snooze="1h",
            max_restarts="9",
            eval_period="6h",
            max_total_restarts="50",
            restarts_before_full="3",
            max_full_restarts="2",
            resize_by="custom",
            resize_target=LAMBDA,
        )
        assert found == Elastic(
            min_instances=2,
            max_instances=4,
            hook=Hook.CUSTOM,
            target=LAMBDA,
            scaling_timeout=timedelta(minutes=2),
            graceful_shutdown_timeout=timedelta(seconds=100),
            faulty_scale_down_timeout=timedelta(0),
            scale_up_snooze=timedelta(hours=1),
            budget=RestartBudget(
                max_restarts=9,
                period=timedelta(hours=6),
                max_total_restarts=50,
                restarts_before_full=3,
                max_full_restarts=2,
            ),
        )

    def test_a_full_restart_that_is_asked_for_is_granted_once(self):
        assert elastic(max_instances="4", restarts_before_full="3").budget.max_full_restarts == 1
        assert elastic(max_instances="4", restarts_before_full="3", max_full_restarts="0").budget.max_full_restarts == 0


class TestRules:
    def test_the_most_is_no_less_than_the_least(self):
        assert list(wrong(min_instances="4", max_instances="2")) == ["max-instances"]
        assert "the request's number of instances, 5" in wrong(5, max_instances="2")["max-instances"]
        found = wrong(4, min_instances="4", max_instances="2", instance_values="2+4")
        assert "less than min-instances" in found["max-instances"]

    @pytest.mark.parametrize("step", ["2", "5"])
    def test_the_step_leads_from_the_least_to_the_most(self, step):
        assert list(wrong(min_instances="2", max_instances="5", instance_step=step)) == ["instance-step"]

    def test_sizes_are_no_more_than_a_pass_can_look_at_and_nodes_can_be_told(self):
        assert wrong(1, max_instances="1000") == {}
        assert list(wrong(1, max_instances="1001")) == ["max-instances"]
        assert list(wrong(1, max_instances="100000")) == ["max-instances"]
        assert wrong(2, max_instances="280", instance_step="2") == {}
        assert list(wrong(2, max_instances="400", instance_step="2")) == ["max-instances"]

    def test_the_nodes_of_any_job_can_be_told_its_sizes(self):
        longest = "+".join(map(str, range(1, 89)))  # a tag's value has 256 characters
        found = elastic(1, instance_values=longest)
        assert len(environment(found, Run("run", ""), "table")["TRAINMASTER_SIZES"]) <= 512
        stepped = elastic(2, max_instances="280", instance_step="2")
        assert len(environment(stepped, Run("run", ""), "table")["TRAINMASTER_SIZES"]) <= 512

    def test_steps_and_values_are_two_ways(self):
        assert list(wrong(instance_values="2+4", instance_step="2")) == ["instance-step"]

    def test_values_are_within_the_bounds(self):
        assert "1 is less" in wrong(min_instances="2", instance_values="1+2+4")["instance-values"]
        assert "8 is more" in wrong(max_instances="4", instance_values="2+4+8")["instance-values"]

    def test_the_bounds_are_values(self):
        assert list(wrong(min_instances="1", instance_values="2+4")) == ["min-instances"]
        assert list(wrong(max_instances="8", instance_values="2+4")) == ["max-instances"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("4+2", "2 follows 4"),
            ("2+2", "2 appears twice"),
            ("2,4", "'2,4' is not a number of instances"),
            ("0+2", "'0' is not a number of instances"),
            ("-2", "'-2' is not a number of instances"),
            ("", "no size is specified"),
            ("+ ", "no size is specified"),
        ],
    )
    def test_values_are_sorted_and_distinct_numbers(self, text, message):
        (problem,) = tag_problems(asking(instance_values=text))
        assert problem.field == "Tags[0].Value"
        assert message in problem.message
        assert problem.hint

    @pytest.mark.parametrize(
        ("count", "texts"),
        [
            (3, {"min_instances": "2", "max_instances": "8", "instance_step": "2"}),
            (1, {"min_instances": "2", "max_instances": "8"}),
            (9, {"min_instances": "2", "max_instances": "8"}),
            (3, {"instance_values": "2+4+8"}),
        ],
    )
    def test_the_requests_own_number_is_a_size(self, count, texts):
        assert list(wrong(count, **texts)) == ["ResourceConfig.InstanceCount"]

    def test_so_is_that_of_a_job_by_resources(self):
        texts = {"resources": "accelerators=8", "instances": "3", "instance_values": "2+4"}
        assert list(wrong(config={"VolumeSizeInGB": 30}, **texts)) == ["instances"]
        listed = {"VolumeSizeInGB": 30, "InstancePreferences": [{"InstanceType": P5, "InstanceCount": 3}]}
        del texts["instances"]
        assert list(wrong(config=listed, **texts)) == ["ResourceConfig.InstancePreferences"]

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("min-instances", "2"),
            ("instance-step", "2"),
            ("resize-by", "members"),
            ("resize-target", "event"),
            ("scaling-timeout", "60"),
            ("graceful-shutdown-timeout", "60"),
            ("faulty-scale-down-timeout", "60"),
            ("scale-up-snooze", "60"),
            ("max-restarts", "3"),
            ("eval-period", "1h"),
            ("max-total-restarts", "3"),
            ("restarts-before-full", "3"),
            ("max-full-restarts", "3"),
        ],
    )
    def test_an_option_of_elastic_jobs_means_nothing_to_others(self, name, text):
        found = wrong(**{name.replace("-", "_"): text})
        assert list(found) == [name]
        assert "has no effect without 'trainmaster:max-instances'" in found[name]

    def test_the_period_is_of_restarts_that_are_counted(self):
        assert list(wrong(max_instances="4", eval_period="1h")) == ["eval-period"]
        assert list(wrong(max_instances="4", max_full_restarts="1")) == ["max-full-restarts"]

    @pytest.mark.parametrize("name", ["max_restarts", "max_total_restarts"])
    def test_a_full_restart_comes_before_the_job_fails(self, name):
        assert list(wrong(max_instances="4", restarts_before_full="4", **{name: "3"})) == ["restarts-before-full"]
        assert wrong(max_instances="4", restarts_before_full="3", **{name: "3"}) == {}

    @pytest.mark.parametrize("name", ["max_restarts", "restarts_before_full"])
    def test_restarts_are_bounded_by_no_more_than_are_counted(self, name):
        assert list(wrong(max_instances="4", **{name: "50"})) == [name.replace("_", "-")]
        assert wrong(max_instances="4", max_total_restarts="1000", **{name: "49"}) == {}

    def test_full_restarts_are_bounded_by_no_more_than_are_remembered(self):
        bounded = {"max_instances": "4", "restarts_before_full": "3"}
        assert list(wrong(**bounded, max_full_restarts="1001")) == ["max-full-restarts"]
        assert wrong(**bounded, max_full_restarts="1000") == {}

    def test_a_custom_resize_needs_its_target_and_no_other_has_one(self):
        assert list(wrong(max_instances="4", resize_by="custom")) == ["resize-by"]
        assert list(wrong(max_instances="4", resize_by="members", resize_target="event")) == ["resize-target"]
        assert wrong(max_instances="4", resize_by="custom", resize_target="event") == {}


class TestForm:
    @staticmethod
    def wrong(config: dict[str, Any] | None = None, resize_by: str = "restart", **members: Any) -> dict[str, str]:
        request = asking(config=config, members=members, max_instances="4", resize_by=resize_by)
        found = elastic_of(request, options_of(request))
        assert found is not None
        return {problem.field: f"{problem.message} {problem.hint}" for problem in form_problems(request, found)}

    def test_a_plain_request_is_as_it_should_be(self):
        assert self.wrong() == {}
        assert self.wrong(resize_by="members", VpcConfig=VPC) == {}

    def test_groups_cannot_be_resized(self):
        assert list(self.wrong({"InstanceGroups": [a_group("a")]})) == ["ResourceConfig.InstanceGroups"]

    def test_nor_what_sagemaker_chooses(self):
        found = self.wrong({"InstanceCount": 2, "InstancePreferences": [{"InstanceType": P5}]})
        assert list(found) == ["ResourceConfig.InstancePreferences"]

    def test_but_what_the_queue_chooses_can(self):
        config = {"InstancePreferences": [{"InstanceType": P5, "InstanceCount": 2}]}
        request = asking(config=config, max_instances="4", resources="accelerators=8")
        found = elastic_of(request, options_of(request))
        assert found is not None
        assert [*form_problems(request, found)] == []

    def test_nor_instances_with_a_place_each(self):
        placed = {"PlacementSpecifications": [{"UltraServerId": "u", "InstanceCount": 2}]}
        config = {"InstanceType": P5, "InstanceCount": 2, "InstancePlacementConfig": placed}
        assert list(self.wrong(config)) == ["ResourceConfig.InstancePlacementConfig"]

    def test_the_queue_needs_room_for_its_own_environment(self):
        assert self.wrong(Environment={f"V{n}": "" for n in range(84)}) == {}
        assert list(self.wrong(Environment={f"V{n}": "" for n in range(85)})) == ["Environment"]

    def test_members_need_a_network_in_which_they_reach_each_other(self):
        found = self.wrong(resize_by="members")
        assert list(found) == ["VpcConfig"]
        assert "a rule whose source is the same group" in found["VpcConfig"]
        assert list(self.wrong(resize_by="members", VpcConfig=VPC | {"Subnets": []})) == ["VpcConfig.Subnets"]
        no_group = VPC | {"SecurityGroupIds": []}
        assert list(self.wrong(resize_by="members", VpcConfig=no_group)) == ["VpcConfig.SecurityGroupIds"]

    def test_members_cannot_be_isolated(self):
        isolated = {"VpcConfig": VPC, "EnableNetworkIsolation": True}
        assert list(self.wrong(resize_by="members", **isolated)) == ["EnableNetworkIsolation"]
        assert self.wrong(**isolated) == {}

    def test_members_cannot_run_on_spot_a_job_that_restarts_can(self):
        spot = {"VpcConfig": VPC, "EnableManagedSpotTraining": True}
        assert list(self.wrong(resize_by="members", **spot)) == ["EnableManagedSpotTraining"]
        assert self.wrong(**spot) == {}


COUNTS = st.sampled_from([*"0123456789", "12", "16", "-1", "", "x"])
SIZES = st.lists(st.integers(0, 9), max_size=4).map(lambda sizes: "+".join(map(str, sizes)))
TIMES = st.sampled_from(["0", "60", "1h30m", "-1", "later", "29d"])
TEXTS = {
    **dict.fromkeys(("min-instances", "max-instances", "instance-step"), COUNTS),
    "instance-values": SIZES
    | st.lists(st.integers(1, 9), min_size=1, unique=True).map(sorted).map(lambda sizes: " ".join(map(str, sizes))),
    "resize-by": st.sampled_from(["restart", "members", "custom", "other"]),
    "resize-target": st.sampled_from(["event", LAMBDA, "else"]),
    **dict.fromkeys(("scaling-timeout", "graceful-shutdown-timeout", "scale-up-snooze", "eval-period"), TIMES),
    **dict.fromkeys(("max-restarts", "max-total-restarts", "restarts-before-full", "max-full-restarts"), COUNTS),
    "instances": COUNTS,
    "resources": st.just("accelerators=8"),
}


def fields_of(value: Any, path: str = "") -> set[str]:
    """The paths of all that is in a request."""
    if isinstance(value, dict):
        return {path}.union(*(fields_of(each, f"{path}.{key}" if path else key) for key, each in value.items()))
    if isinstance(value, list):
        return {path}.union(*(fields_of(each, f"{path}[{i}]") for i, each in enumerate(value)))
    return {path}


FEW_TEXTS = st.lists(st.sampled_from(sorted(TEXTS)), max_size=5, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: TEXTS[name] for name in names})
)


@examples(300)
@given(texts=FEW_TEXTS, count=st.integers(1, 9))
def test_any_tags_give_legal_sizes_or_are_refused_with_a_field_that_is_there(texts, count):
    request = a_request(count=count, options=texts)
    problems = tag_problems(request)
    if not problems:
        options = options_of(request)
        problems = [*option_problems(request, options)]
        found = None if problems else elastic_of(request, options)
        if found is not None:
            assert list(found.sizes) == sorted(set(found.sizes))
            assert (found.sizes[0], found.sizes[-1]) == (found.min_instances, found.max_instances)
            assert 1 <= found.min_instances <= found.max_instances
            assert count in found.sizes or "instances" in texts
            assert found.at_most(found.max_instances) == found.max_instances
        elif not problems:
            assert not {"max-instances", "instance-values"} & set(texts)
    for problem in problems:
        assert problem.field in fields_of(request)
        assert problem.message
        assert problem.hint
