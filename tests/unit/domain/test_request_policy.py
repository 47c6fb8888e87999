"""The request policy of a deployment: each rule, what breaks it, and what a deployment may state."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import IMAGE, a_request
from trainmaster.domain.access.request_policy import RequestPolicy

KEY = "arn:aws:kms:us-east-1:111122223333:key/good"
GOOD: dict[str, Any] = {
    "VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
    "OutputDataConfig": {"S3OutputPath": "s3://lab-output/a", "KmsKeyId": KEY},
    "CheckpointConfig": {"S3Uri": "s3://lab-checkpoints/a"},
    "EnableNetworkIsolation": True,
    "EnableInterContainerTrafficEncryption": True,
    "Tags": [{"Key": "team", "Value": "vision-1"}],
    "Environment": {"DATA": "s3://anywhere/else"},
}
STRICT = {
    "subnets": ["subnet-1", "subnet-2"],
    "securityGroups": ["sg-*"],
    "kmsKeys": ["arn:aws:kms:us-east-1:111122223333:key/*"],
    "images": [IMAGE.rpartition("/")[0] + "/*"],
    "buckets": ["lab-*"],
    "requiredTags": {"team": ["vision-*", "speech"]},
    "networkIsolation": True,
    "trafficEncryption": True,
}


def broken(request: dict[str, Any], **policy: Any) -> list[str | None]:
    """The fields of a request that break a policy."""
    return [each.field for each in RequestPolicy.parse(policy or STRICT).violations(request)]


def test_a_request_that_keeps_every_rule_is_allowed():
    assert broken(a_request("a", **GOOD)) == []


def test_without_a_policy_everything_is_allowed():
    assert list(RequestPolicy().violations(a_request("a"))) == []
    assert RequestPolicy.parse({}) == RequestPolicy()


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"VpcConfig": {"Subnets": ["subnet-3"], "SecurityGroupIds": ["sg-1"]}}, "VpcConfig.Subnets[0]"),
        ({"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["x"]}}, "VpcConfig.SecurityGroupIds[0]"),
        ({"OutputDataConfig": {"S3OutputPath": "s3://lab-output/a"}}, "OutputDataConfig.KmsKeyId"),
        (
            {"OutputDataConfig": {"S3OutputPath": "s3://lab-a", "KmsKeyId": "alias/other"}},
            "OutputDataConfig.KmsKeyId",
        ),
        (
            {"OutputDataConfig": {"S3OutputPath": "s3://mine/lab-a", "KmsKeyId": KEY}},
            "OutputDataConfig.S3OutputPath",
        ),
        (
            {"OutputDataConfig": {"S3OutputPath": "https://lab-a.s3.amazonaws.com/a", "KmsKeyId": KEY}},
            "OutputDataConfig.S3OutputPath",
        ),
        ({"CheckpointConfig": {"S3Uri": "s3://mine"}}, "CheckpointConfig.S3Uri"),
        (
            {"InputDataConfig": [{"DataSource": {"S3DataSource": {"S3Uri": "s3://mine/lab-"}}}]},
            "InputDataConfig[0].DataSource.S3DataSource.S3Uri",
        ),
        ({"AlgorithmSpecification": {"TrainingImage": "evil/image"}}, "AlgorithmSpecification.TrainingImage"),
        ({"AlgorithmSpecification": {"AlgorithmName": "bought"}}, "AlgorithmSpecification.TrainingImage"),
        ({"DebugRuleConfigurations": [{"RuleEvaluatorImage": "x"}]}, "DebugRuleConfigurations[0].RuleEvaluatorImage"),
        ({"EnableNetworkIsolation": False}, "EnableNetworkIsolation"),
        ({"EnableInterContainerTrafficEncryption": None}, "EnableInterContainerTrafficEncryption"),
        ({"Tags": []}, "Tags"),
        ({"Tags": [{"Key": "a", "Value": "b"}, {"Key": "team", "Value": "x"}]}, "Tags[1].Value"),
    ],
)
def test_each_rule_names_the_field_that_breaks_it(changed, path):
    (found,) = RequestPolicy.parse(STRICT).violations(a_request("a", **{**GOOD, **changed}))
    assert found.field == path
    assert "RequestPolicy" in (found.hint or "")


def test_a_request_without_a_vpc_lacks_both():
    request = a_request("a", **GOOD)
    del request["VpcConfig"]
    assert broken(request) == ["VpcConfig.Subnets", "VpcConfig.SecurityGroupIds"]


def test_a_volume_key_must_match_if_there_is_one():
    request = a_request("a", **GOOD)
    request["ResourceConfig"] = {**request["ResourceConfig"], "VolumeKmsKeyId": "other"}
    assert broken(request) == ["ResourceConfig.VolumeKmsKeyId"]


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"subnet": ["a"]},
        {"subnets": "a"},
        {"subnets": []},
        {"buckets": [1]},
        {"networkIsolation": "true"},
        {"requiredTags": ["team"]},
        {"requiredTags": {"team": "a"}},
    ],
)
def test_a_malformed_policy_is_refused(document):
    with pytest.raises(ValueError, match=r"subnet|buckets|networkIsolation|requiredTags|JSON object"):
        RequestPolicy.parse(document)


def test_every_rule_can_be_stated_and_is_documented():
    page = (Path(__file__).parents[3] / "docs/how-to/deploy.md").read_text()
    assert len(STRICT) == len(fields(RequestPolicy))
    assert [name for name in STRICT if f"`{name}`" not in page] == []


@given(st.text(max_size=12), st.text("ab*?[]", min_size=1, max_size=6))
def test_only_a_star_is_special_in_patterns(bucket, pattern):
    request = {"S3Uri": f"s3://{bucket}"}
    name = bucket.partition("/")[0]
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL)
    assert bool(broken(request, buckets=[pattern])) is (expected is None)
