"""Requests against SageMaker's service model: examples, hostile ones, and the model itself."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from builders import IMAGE, P5, a_request
from trainmaster.adapters.sagemaker.request_model import (
    _CHECKS,
    _MAX_MATCHED_LENGTH,
    MAX_PROBLEMS,
    _check,
    problems,
)
from trainmaster.adapters.sagemaker.service_model import shape
from trainmaster.domain.java_patterns import _compiled
from trainmaster.domain.java_patterns import matches as pattern_matches

INPUT = shape("CreateTrainingJobRequest")


def shapes(whole: Any) -> Iterator[Any]:
    """The shape and all that it is made of."""
    yield whole
    children: dict[str, Any] = {"structure": "members", "list": ("member",), "map": ("key", "value")}
    names = children.get(whole.type_name, ())
    for child in whole.members.values() if names == "members" else [getattr(whole, name) for name in names]:
        yield from shapes(child)


def patterns() -> list[str]:
    return sorted({shape.metadata["pattern"] for shape in shapes(INPUT) if "pattern" in shape.metadata})


def with_(path: str, value: Any) -> dict[str, Any]:
    """A valid request but for the value at a path such as `Tags.0.Key`; the path's parts exist or are made."""
    request = a_request(
        priority=1,
        Environment={"A": "b"},
        HyperParameters={"a": "b"},
        InputDataConfig=[
            {"ChannelName": "x", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b"}}}
        ],
    )
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = request
    for part in parents:
        place = place[part] if isinstance(part, int) else place.setdefault(part, {})
    place[last] = value
    return request


ACCEPTED = [
    ("TrainingJobName", "a" * 63),
    ("TrainingJobName", "a--b"),
    ("Tags.0.Key", "é中ß 9²_.:/=+-@"),
    ("Tags.0.Value", "\u2003Ⅷ\u00a0"),
    ("HyperParameters.a", ""),
    ("HyperParameters.a", "\t\0é\U0001f600"),
    ("Environment.A", "two\nlines\r\u2028"),
    ("RoleArn", "arn:aws-us-gov:iam::111122223333:role/service-role/x"),
    ("OutputDataConfig.S3OutputPath", "s3://bucket"),
    ("OutputDataConfig.S3OutputPath", "https://bucket/a.b//c"),
    ("AlgorithmSpecification.AlgorithmName", "arn:aws:sagemaker:us-east-1:111122223333:algorithm/mine"),
    ("ResourceConfig.KeepAlivePeriodInSeconds", 0),
    ("ResourceConfig.InstancePreferences", [{"InstanceType": P5, "InstanceCount": 2}]),
    ("ResourceConfig.InstanceGroups", []),
    ("EnableManagedSpotTraining", False),
    ("InputDataConfig.0.ShuffleConfig", {"Seed": 2**40}),
    ("VpcConfig", {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}),
    ("RetryStrategy", {"MaximumRetryAttempts": 30}),
    ("AlgorithmSpecification.TrainingImageConfig", {
        "TrainingRepositoryAccessMode": "Vpc",
        "TrainingRepositoryAuthConfig": {
            "TrainingRepositoryCredentialsProviderArn": "arn:aws-cn:lambda:cn-north-1:111122223333:function:x"
        },
    }),
]  # fmt: skip
REFUSED = [
    ("TrainingJobName", "a" * 64, "", "At most 63"),
    ("TrainingJobName", "", "", "At least 1"),
    ("TrainingJobName", "a-", "", "letters, digits and hyphens"),
    ("TrainingJobName", "job\n", "", "Remove the line breaks."),
    ("TrainingJobName", None, "", "Omit the field"),
    ("TrainingJobName", 5, "", "Specify a string."),
    ("RoleArn", "arn:aws:iam::1:role/xxxxxxxxx", "", "match the pattern"),
    ("RoleArn", "arn:aws:iam::" + "\u0661" * 12 + ":role/x", "", "match the pattern"),
    ("ResourceConfig", [], "", "Specify an object."),
    ("ResourceConfig.InstanceCount", True, "", "Specify a whole number."),
    ("ResourceConfig.InstanceCount", 1.0, "", "Specify a whole number."),
    ("ResourceConfig.InstanceCount", float("nan"), "", "Specify a whole number."),
    ("ResourceConfig.InstanceCount", "1", "", "Specify a whole number."),
    ("ResourceConfig.InstanceCount", -1, "", "from 0 to 2147483647"),
    ("ResourceConfig.InstanceCount", 2**31, "", "from 0 to 2147483647"),
    ("ResourceConfig.InstanceCount", 10**400, "", "from 0 to 2147483647"),
    ("ResourceConfig.KeepAlivePeriodInSeconds", 21_601, "", "from 0 to 21600"),
    ("ResourceConfig.InstanceType", "ml.p5.48xlrage", "", "Did you mean 'ml.p5.48xlarge'?"),
    ("ResourceConfig.InstanceType", "p5.48xlarge", "", "Did you mean 'ml.p5.48xlarge'?"),
    ("ResourceConfig.InstanceType", "x" * 100_000, "", "The values are: ml."),
    ("ResourceConfig.instanceCount", 1, "", "Did you mean 'InstanceCount'?"),
    ("ResourceConfig.InstancePreferences", [{"InstanceType": P5, "X": 1}], "[0].X", "members are: InstanceType"),
    ("ResourceConfig.InstancePreferences", [{}], "[0].InstanceType", "Add it; it is a string."),
    ("ResourceConfig.InstancePreferences", [], "", "At least 1"),
    ("ResourceConfig.InstancePreferences", [{"InstanceType": P5}] * 6, "", "At most 5"),
    ("EnableManagedSpotTraining", "true", "", "Specify true or false."),
    ("EnableManagedSpotTraining", 1, "", "Specify true or false."),
    ("InputDataConfig.0.ShuffleConfig", {"Seed": 2**63}, ".Seed", "from -9223372036854775808 to 9223372036854775807"),
    ("InputDataConfig.0.ChannelName", "a b", "", "match the pattern"),
    ("InputDataConfig.0.InputMode", "file", "", "Did you mean 'File'? The values are: "),
    ("InputDataConfig", {}, "", "Specify a list."),
    ("OutputDataConfig.S3OutputPath", "ftp://bucket", "", "match the pattern"),
    ("Tags.0.Key", "#", "", "match the pattern"),
    ("Tags.0.Value", "\U0001f600", "", "match the pattern"),
    ("Tags.0.Value", "\ud800", "", "Send valid Unicode."),
    ("HyperParameters.a", 0.1, "", "Specify a string."),
    ("HyperParameters.a", "x" * 2501, "", "At most 2500"),
    ("HyperParameters.a", "two\u2028lines", "", "Remove the line breaks."),
    ("HyperParameters." + "k" * 257, "", None, "At most 256"),
    ("HyperParameters", {f"k{number}": "" for number in range(101)}, "", "At most 100"),
    ("Environment", {"1a": "x"}, "['1a'] (key)", "match the pattern"),
    ("Environment", {"\ud800": "x"}, "['\\ud800'] (key)", "Send valid Unicode."),
    ("hyperparameters", {}, "", "Did you mean 'HyperParameters'?"),
    ("ServerlessJobConfig", {"BaseModelArn": "x", "JobType": "FineTuning", "EvaluatorArn": "x" * 8193}, None, "8192"),
]  # fmt: skip


class TestTable:
    def test_a_plain_request_has_no_problem(self) -> None:
        assert problems(a_request()) == []

    @pytest.mark.parametrize(("path", "value"), ACCEPTED)
    def test_accepted(self, path: str, value: Any) -> None:
        assert problems(with_(path, value)) == []

    @pytest.mark.parametrize(("path", "value", "below", "hint"), REFUSED)
    def test_refused(self, path: str, value: Any, below: str | None, hint: str) -> None:
        found = problems(with_(path, value))
        assert hint in " ".join(problem.hint for problem in found)
        if below is not None:
            (problem,) = found
            assert problem.field == path.replace(".0", "[0]") + below
            assert problem.field in problem.message or problem.field.split(".")[-1] in problem.message
            assert len(problem.message) < 250
            assert len(problem.hint) < 350

    @pytest.mark.parametrize("value", [None, [], "x", 3, 1.5, True])
    def test_a_request_that_is_no_object(self, value: Any) -> None:
        (problem,) = problems(value)
        assert (problem.field, problem.hint) == ("request", "Specify an object.")

    def test_all_are_collected_missing_ones_first(self) -> None:
        request = a_request(RoleArn=1, Tags={}, Nonsense=1)
        del request["OutputDataConfig"]
        assert [problem.field for problem in problems(request)] == ["OutputDataConfig", "RoleArn", "Tags", "Nonsense"]

    def test_as_large_as_sagemaker_takes_passes_quickly(self) -> None:
        parameters = {f"{number:03d}" + "k" * 253: "v" * 2500 for number in range(100)}
        environment = {f"K{number:03d}" + "k" * 508: "é\n" * 256 for number in range(100)}
        request = a_request(HyperParameters=parameters, Environment=environment)
        problems(request)
        began = time.process_time()
        assert problems(request) == []
        assert time.process_time() - began < 0.1


class TestHostile:
    def test_a_number_that_python_itself_will_not_print(self) -> None:
        (problem,) = problems(with_("ResourceConfig.InstanceCount", 10**5000))
        assert problem.message == "ResourceConfig.InstanceCount is a huge number."

    def test_endless_nonsense_costs_no_more_than_the_first_problems(self) -> None:
        request = a_request() | {f"Training{number:06d}": {} for number in range(200_000)}
        began = time.process_time()
        assert len(problems(request)) == MAX_PROBLEMS
        assert time.process_time() - began < 1

    @pytest.mark.parametrize(
        "member", ["Tags", "HyperParameters", "InputDataConfig", "ResourceConfig", "TrainingJobName"]
    )
    def test_depth_does_not_matter(self, member: str) -> None:
        value: Any = "x"
        for _ in range(50_000):
            value = [value]
        assert problems(a_request(**{member: value}))
        for _ in range(50_000):
            value = {"Key": value}
        assert problems(a_request(**{member: value}))
        # Python would free such a depth by recursion.
        while isinstance(value, list | dict):
            value = value[0] if isinstance(value, list) else value["Key"]

    @pytest.mark.parametrize("pattern", patterns())
    def test_no_pattern_can_be_made_to_backtrack_for_long(self, pattern: str) -> None:
        longest = max(
            shape.metadata.get("max", _MAX_MATCHED_LENGTH)
            for shape in shapes(INPUT)
            if shape.metadata.get("pattern") == pattern
        )
        starts = [
            "",
            "arn:aws:sagemaker:us-east-1:111122223333:",
            "arn:aws:sagemaker:us-",
            "https://",
            "s3://a/",
            "fs-",
        ]
        began = time.process_time()
        for start in starts:
            for unit in ("a", "-", "a-", "/", "1", "0/", ".", "é", ":", "K"):
                for end in ("", "!", "\n", "\n!"):
                    pattern_matches(pattern, (start + unit * longest)[: longest - len(end)] + end)
        assert time.process_time() - began < 3


class TestModel:
    def test_every_kind_of_shape_is_known_and_none_is_special(self) -> None:
        found = list(shapes(INPUT))
        assert {shape.type_name for shape in found} <= set(_CHECKS)
        assert not any(shape.type_name == "structure" and shape.is_document_type for shape in found)

    def test_every_list_and_map_has_a_greatest_length(self) -> None:
        boundless = [s.name for s in shapes(INPUT) if s.type_name in {"list", "map"} and "max" not in s.metadata]
        assert boundless == []

    @pytest.mark.parametrize("pattern", patterns())
    def test_every_pattern_is_understood(self, pattern: str) -> None:
        _compiled(pattern)

    def test_a_union_has_exactly_one_member(self) -> None:
        model = {
            "metadata": {},
            "operations": {},
            "shapes": {
                "U": {"type": "structure", "union": True, "members": {"A": {"shape": "S"}, "B": {"shape": "S"}}},
                "S": {"type": "string"},
            },
        }
        shape = ServiceModel(model, "test").shape_for("U")
        assert list(_check(shape, {"A": "x"}, "u")) == []
        for value in ({}, {"A": "x", "B": "y"}):
            (problem,) = _check(shape, value, "u")
            assert problem.hint == "Specify exactly one of: A, B."

    @pytest.mark.parametrize(
        ("pattern", "text", "matches"),
        [
            (".", "\n", False),
            (".", "\r", False),
            (".", "\u0085", False),
            ("[.]", "x", False),
            ("[.]", ".", True),
            (r"\.", ".", True),
            (r"\.", "x", False),
            (r"\d", "\u0661", False),
            (r"\w", "é", False),
            (r"[\S\s]", "\n", True),
            (r"[\p{L}]", "é", True),
            (r"\p{L}", "é", True),
            (r"\p{L}", "1", False),
            (r"[\p{N}]", "Ⅷ", True),
            (r"[\p{Z}]", "\u3000", True),
            (r"[\p{L}\p{N}\p{Z}]", "€", False),
            (r"[\p{Alnum}\-]+", "a-1", True),
            (r"[^/]", "/", False),
            ("a", "ab", False),
        ],
    )
    def test_patterns_mean_what_they_mean_to_java(self, pattern: str, text: str, matches: bool) -> None:
        assert pattern_matches(pattern, text) is matches

    def test_importing_it_does_not_import_botocore(self) -> None:
        code = "import sys, trainmaster.adapters.sagemaker.request_model as m; sys.exit('botocore' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_builders_request_is_one_that_botocore_would_send() -> None:
    assert IMAGE in json.dumps(a_request())
    assert not ParamValidator().validate(a_request(), INPUT).has_errors()
