"""An elastic job's request at another size, and that of a member."""

from __future__ import annotations

from copy import deepcopy

from builders import a_request
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.requests.elastic.resized import member_request, with_instances


def test_another_size_changes_nothing_but_the_count():
    request = a_request(count=2)
    before = deepcopy(request)
    sized = with_instances(request, 5)
    assert sized["ResourceConfig"] == before["ResourceConfig"] | {"InstanceCount": 5}
    assert {**sized, "ResourceConfig": None} == {**before, "ResourceConfig": None}
    assert request == before


def test_a_member_is_one_instance_and_keeps_no_warm_pool():
    request = a_request(count=4, VpcConfig={"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]})
    request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600
    before = deepcopy(request)
    member = member_request(request)
    assert member["ResourceConfig"]["InstanceCount"] == 1
    assert "KeepAlivePeriodInSeconds" not in member["ResourceConfig"]
    assert member["VpcConfig"] == before["VpcConfig"]
    assert (member["TrainingJobName"], member["Tags"]) == (before["TrainingJobName"], before["Tags"])
    assert request == before
    assert not list(problems(member))


def test_only_the_base_has_checkpoints_and_rules_of_sagemakers():
    rule = {"RuleConfigurationName": "r", "RuleEvaluatorImage": "image"}
    member = member_request(a_request(ProfilerRuleConfigurations=[rule], DebugRuleConfigurations=[rule]))
    assert not {"CheckpointConfig", "ProfilerRuleConfigurations", "DebugRuleConfigurations"} & set(member)
