"""Parameters are checked against the template before anything is built, and kept where they are not given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainmaster.client.api.errors import Refused
from trainmaster.deployment.bundle import Sources
from trainmaster.deployment.parameters import (
    as_members,
    check,
    missing,
    own_runtime,
    problem_of,
    read_config,
    read_options,
)

DECLARED: dict[str, Any] = Sources.here().document()["Parameters"]
NEEDED = {"Pools": "ml.g5.xlarge=2", "AllowedRoles": "arn:aws:iam::111122223333:role/t-*", "EndpointType": "REGIONAL"}


def test_all_defaults_are_accepted() -> None:
    defaults = {name: str(one["Default"]) for name, one in DECLARED.items() if "Default" in one}
    check(DECLARED, defaults | NEEDED)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("Pools", "p5=2", "instance types"),
        ("AllowedRoles", "arn:aws:iam::111122223333:role/a,nonsense", "role ARNs"),
        ("EndpointType", "PUBLIC", "use PRIVATE, REGIONAL"),
        ("JobRetentionDays", "0", "from 1 to 3650"),
        ("JobRetentionDays", "long", "a number"),
        ("Pool", "ml.g5.xlarge=2", "Did you mean Pools"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_reason(name: str, value: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        check(DECLARED, {name: value})


def test_only_what_has_no_default_is_missing_and_an_update_keeps_all() -> None:
    assert missing(DECLARED, {}, {}) == ["Pools", "AllowedRoles", "VpcEndpointIds"]
    assert missing(DECLARED, NEEDED, {}) == []
    assert missing(DECLARED, {}, {"Pools": "p", "AllowedRoles": "r", "EndpointType": "PRIVATE"}) == []


def test_parameters_that_are_not_given_keep_their_values() -> None:
    members = as_members({"A": {}, "B": {}, "C": {}}, {"A": "1"}, {"A": "0", "B": "2"})
    assert members == [
        {"ParameterKey": "A", "ParameterValue": "1"},
        {"ParameterKey": "B", "UsePreviousValue": True},
    ]


def test_a_file_has_lists_booleans_and_objects(tmp_path: Path) -> None:
    path = tmp_path / "queue.yaml"
    path.write_text("Pools: [ml.g5.xlarge=2, ml.p5.48xlarge=1]\nLearn: true\nRoleMapping: {a: [b]}\nN: 3\n")
    assert read_config(str(path)) == {
        "Pools": "ml.g5.xlarge=2,ml.p5.48xlarge=1",
        "Learn": "true",
        "RoleMapping": '{"a": ["b"]}',
        "N": "3",
    }


@pytest.mark.parametrize("text", ["- a", "{", "text"])
def test_a_file_without_an_object_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(Refused):
        read_config(str(tmp_path / "c"))


def test_a_config_that_is_not_there_is_told_without_an_error_number(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        read_config(str(tmp_path / "absent.yaml"))
    assert refused.value.message == f"{tmp_path / 'absent.yaml'} cannot be read: No such file or directory."
    assert refused.value.hint == "Check the path."


def test_options_are_pairs() -> None:
    assert read_options(["A=b=c", "B="]) == {"A": "b=c", "B": ""}
    with pytest.raises(Refused):
        read_options(["A"])


def test_a_new_stack_runs_on_this_python_if_lambda_has_it() -> None:
    assert own_runtime(DECLARED, (3, 12)) == "python3.12"
    assert own_runtime(DECLARED, (3, 10)) == DECLARED["Runtime"]["Default"]
    assert problem_of(DECLARED["Runtime"], own_runtime(DECLARED)) is None
