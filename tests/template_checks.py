"""Checks that hold for every template: permissions against the code's calls, parameters, reasons, alarms, builds."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore import xform_name
from cfnlint.api import lint as find_faults

from permissions import actions, listed, statements

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trainmaster"
Template = Mapping[str, Any]

NETWORK = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}
"""Actions of Lambda itself for functions in a VPC, which it checks on all resources (Lambda developer guide)."""
WITHOUT_RESOURCE = NETWORK | {
    "cloudwatch:GetMetricData",
    "ec2:DescribeInstanceTypes",
    "pricing:GetProducts",
    "sagemaker:ListTrainingJobs",
    "states:SendTaskFailure",
    "states:SendTaskHeartbeat",
    "states:SendTaskSuccess",
    "servicequotas:ListServiceQuotas",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}
"""Actions for which IAM knows no resource (service authorization reference)."""
IMPLIED = {
    "sagemaker:AddTags",  # CreateTrainingJob with Tags
    "dynamodb:ConditionCheckItem",  # TransactWriteItems is allowed by the actions within
    "sqs:ReceiveMessage",  # Lambda's own polling of the queues
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "iam:PassRole",
    *NETWORK,
}
PLATFORM = "platforms/${Runtime}-${Architecture}"
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}


def of_type(template: Template, kind: str) -> dict[str, Any]:
    """Return the resources of a type."""
    return {name: each for name, each in template["Resources"].items() if each["Type"] == kind}


def calls_of(*modules: str, folders: Collection[str] = ("adapters",)) -> set[str]:
    """Return the AWS operations that adapters call, by the names of their client methods."""
    paths = [path for module in modules for folder in folders for path in (SOURCE / folder).glob(module)]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text()))]
    methods = {node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_client(node.value)}
    paged = {
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_paginator"
    }
    return methods - {"get_paginator", "exceptions"} | paged


def _is_client(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lstrip("_") in {"client", "iam"}


def as_methods(permitted: set[str]) -> set[str]:
    """Return the client methods of actions."""
    return {xform_name(action.split(":")[1]) for action in permitted - IMPLIED}


def methods_of(role: str, service: str, *, images: bool = False) -> set[str]:
    """Return the client methods of a service that a role may call."""
    return as_methods(actions(role, service, images=images))


def sent_to(role: str, *, images: bool = False) -> list[str]:
    """Return the queues that a role may send to."""
    all_of_role = statements(role, images=images)
    sends = [each["Resource"] for each in all_of_role if "sqs:SendMessage" in listed(each["Action"])]
    return [queue["Fn::GetAtt"][0] for queues in sends for queue in listed(queues)]


def lint(file: str) -> list[str]:
    """Return the findings of cfn-lint in one Region of each partition; the conditions are too many for all Regions."""
    matches = find_faults((ROOT / file).read_text(), regions=["us-east-1", "us-gov-west-1", "cn-north-1"])
    return [str(match) for match in matches if match.rule.severity != "informational"]


def check_permissions(role: str, *, images: bool = False) -> None:
    """Check that what a role is allowed names actions, and resources wherever IAM supports them."""
    allowed = [each for each in statements(role, images=images) if each["Effect"] == "Allow"]
    assert allowed
    for each in allowed:
        assert not [action for action in listed(each["Action"]) if "*" in action]
        if "*" in listed(each["Resource"]):
            assert set(listed(each["Action"])) <= WITHOUT_RESOURCE


def check_parameter(template: Template, name: str, any_arn: Collection[str]) -> None:
    """Check that a parameter is described, limited and part of one group."""
    parameter = template["Parameters"][name]
    assert parameter["Description"].endswith(".")
    limits = {"AllowedPattern", "AllowedValues", "MinValue"}
    assert limits & parameter.keys() or name in any_arn, "any ARN pattern is one that IAM matches"
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert [each for group in groups for each in group["Parameters"]].count(name) == 1


def check_skipped(template: Template) -> None:
    """Check that every skipped check of checkov has a reason."""
    resources = template["Resources"].values()
    skipped = [skip for each in resources for skip in each.get("Metadata", {}).get("checkov", {}).get("skip", [])]
    assert skipped
    assert not [skip["id"] for skip in skipped if len(skip["comment"]) < 30]


def check_event_sources_are_bounded(template: Template) -> None:
    """Check that every queue that invokes a function has a limit of invocations."""
    for name, each in of_type(template, "AWS::Serverless::Function").items():
        sources = [source for source in each["Properties"].get("Events", {}).values() if source["Type"] == "SQS"]
        assert all("MaximumConcurrency" in source["Properties"]["ScalingConfig"] for source in sources), name


def check_samconfig(template: Template, folder: str) -> dict[str, str]:
    """Return the parameters of samconfig's environment `local`, after a check that the template accepts them."""
    samconfig = tomllib.loads((ROOT / folder / "samconfig.toml").read_text())
    for name in ("default", "local"):
        settings = samconfig[name]["deploy"]["parameters"]
        assert (settings["confirm_changeset"], settings["fail_on_empty_changeset"]) == (False, False), "it asks nothing"
    given = dict(pair.split("=", 1) for pair in samconfig["local"]["deploy"]["parameters"]["parameter_overrides"])
    for name, value in given.items():
        parameter = template["Parameters"][name]
        assert value in [str(each) for each in parameter.get("AllowedValues", [value])]
        items = value.split(",") if parameter["Type"] == "CommaDelimitedList" else [value]
        assert all(re.fullmatch(parameter.get("AllowedPattern", ".*"), each) for each in items)
    needed = {name for name, parameter in template["Parameters"].items() if "Default" not in parameter}
    assert needed <= given.keys()
    assert not given["EventSource"].startswith("aws.")
    return given


def watched_by(template: Template) -> set[tuple[str, str]]:
    """Return the metrics with an alarm, each with its first dimension."""
    return {
        (alarm["Properties"]["MetricName"], json.dumps(alarm["Properties"]["Dimensions"][0]["Value"]))
        for alarm in of_type(template, "AWS::CloudWatch::Alarm").values()
        if "MetricName" in alarm["Properties"]
    }


def check_alarms_of_queues_and_functions(template: Template, *, queues: int, functions: int) -> None:
    """Check that so many dead-letter queues, and so many functions, have an alarm each."""
    dead = [name for name in of_type(template, "AWS::SQS::Queue") if "DeadLetter" in name]
    deployed = list(of_type(template, "AWS::Serverless::Function"))
    assert (len(dead), len(deployed)) == (queues, functions)
    for queue in dead:
        arn = json.dumps({"Fn::GetAtt": [queue, "QueueName"]})
        assert ("ApproximateNumberOfMessagesVisible", arn) in watched_by(template)
    for function in deployed:
        assert ("Throttles", json.dumps({"Ref": function})) in watched_by(template)


def alarms_on_shared_metrics(template: Template) -> set[tuple[str, str]]:
    """Return the alarms on metrics that say nothing of the deployment, each with its namespace."""
    shared = set()
    for name, alarm in of_type(template, "AWS::CloudWatch::Alarm").items():
        for metric in (alarm["Properties"], *(each["MetricStat"]["Metric"] for each in _math_of(alarm))):
            values = [each["Value"] for each in metric.get("Dimensions", [])]
            if values and not any(isinstance(value, dict) for value in values):
                shared.add((name, metric["Namespace"]))
    return shared


def _math_of(alarm: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the metrics that an alarm compares with each other."""
    return (each for each in alarm["Properties"].get("Metrics", []) if "MetricStat" in each)


def platforms_of(template: Template) -> list[tuple[str, str, str]]:
    """Return the folder, the Python version and the machine of each platform of a template's functions."""
    return [
        (f"platforms/{runtime}-{architecture}", runtime.removeprefix("python"), MACHINES[architecture])
        for runtime in template["Parameters"]["Runtime"]["AllowedValues"]
        for architecture in template["Parameters"]["Architecture"]["AllowedValues"]
    ]


def made(makefile: str, part: str, folder: str) -> str:
    """Return what make would do for a part of a template, in the folder where SAM runs it."""
    command = ["make", "--dry-run", "--makefile", ROOT / makefile / "Makefile", f"build-{part}", "ARTIFACTS_DIR=/a"]
    # These tests run below a make of their own, whose flags would have this one announce its folder.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    made_by = subprocess.run(command, cwd=ROOT / folder, check=True, capture_output=True, text=True, env=environment)
    return made_by.stdout


def check_bundle_is_built_for(function: str, platform: tuple[str, str, str]) -> None:
    """Check that make builds the bundle of a function for a platform."""
    makefile, version, machine = platform
    assert made(makefile, function, "src").split()[1:] == [
        "build_bundle.py", function, "--python", version, "--machine", machine, "--into", '"/a"',
    ]  # fmt: skip
