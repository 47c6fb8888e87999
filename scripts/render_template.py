"""Render the templates as CloudFormation would: parameters, conditions and intrinsic functions resolved.

As a program it writes both templates with every part of the hardened profile to a folder, for checkov, which reads
no conditions. Functions and types that no template uses raise `KeyError` or `ValueError`: nothing stays half resolved.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cfnlint.decode import decode

ROOT = Path(__file__).parents[1]
ACCOUNT = "111122223333"
URL_SUFFIXES = {"aws": "amazonaws.com", "aws-us-gov": "amazonaws.com", "aws-cn": "amazonaws.com.cn"}
REGIONS = {"aws": "us-east-1", "aws-us-gov": "us-gov-west-1", "aws-cn": "cn-north-1"}
NO_VALUE = object()
"""The value of `!Ref AWS::NoValue`: the member or item is left out."""


@dataclass
class Stack:
    """One template with its parameters, in one account and Region.

    Args:
        document: the template.
        parameters: values other than the defaults. A list parameter takes its text.
        partition: the partition of AWS.
        imports: values of exports of other stacks, by name.
    """

    document: Mapping[str, Any]
    parameters: Mapping[str, str] = field(default_factory=dict)
    partition: str = "aws"
    imports: Mapping[str, Any] = field(default_factory=dict)

    @property
    def region(self) -> str:
        """The Region, one of the partition."""
        return REGIONS[self.partition]

    def arn(self, service: str, resource: str, *, account: str = ACCOUNT, region: str | None = None) -> str:
        """Return an ARN of this partition, of this Region unless another (or none, "") is given."""
        of_region = self.region if region is None else region
        return f"arn:{self.partition}:{service}:{of_region}:{account}:{resource}"

    @property
    def template(self) -> dict[str, Any]:
        """The template of what is deployed: without parameters, conditions and functions."""
        written = self.document["Resources"]
        resources = {
            name: {key: each for key, each in written[name].items() if key != "Condition"} for name in self.resources
        }
        kept = {name: self.document[name] for name in ("AWSTemplateFormatVersion", "Transform", "Globals")}
        return dict(self.resolve({**kept, "Resources": resources}))

    @cached_property
    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources whose condition holds, resolved."""
        return {
            name: self.resolve({key: each[key] for key in ("Type", "Properties") if key in each})
            for name, each in self.document["Resources"].items()
            if "Condition" not in each or self.holds(each["Condition"])
        }

    @cached_property
    def exports(self) -> dict[str, Any]:
        """The values of the outputs that other stacks import, by their names."""
        outputs = [
            output
            for output in self.document["Outputs"].values()
            if "Export" in output and ("Condition" not in output or self.holds(output["Condition"]))
        ]
        return {self.resolve(output["Export"]["Name"]): self.resolve(output["Value"]) for output in outputs}

    def attribute(self, name: str, attribute: str = "Arn") -> str:
        """Return an attribute of a resource. Raises `KeyError` for one that no template uses."""
        return _ATTRIBUTES[self._type(name), attribute](self, name)

    @property
    def objections(self) -> list[str]:
        """The descriptions of the assertions with which the template's rules refuse these parameters."""
        rules = [each for each in self.document.get("Rules", {}).values() if self._decided(each["RuleCondition"])]
        assertions = [each for rule in rules for each in rule["Assertions"]]
        return [each["AssertDescription"] for each in assertions if not self._decided(each["Assert"])]

    def holds(self, condition: str) -> bool:
        """Return whether a condition of the template holds."""
        return bool(self._decided(self.document["Conditions"][condition]))

    def resolve(self, value: Any) -> Any:
        """Return a value with its intrinsic functions resolved."""
        if isinstance(value, list):
            items = [self.resolve(item) for item in value]
            return [item for item in items if item is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name in _FUNCTIONS:
                return _FUNCTIONS[name](self, argument)
            if name.startswith("Fn::"):
                raise ValueError(f"unknown function {name}")
        members = {key: self.resolve(member) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not NO_VALUE}

    def reference(self, name: str) -> Any:
        """Return what `!Ref` gives of a parameter, a pseudo parameter or a resource."""
        if name.startswith("AWS::"):
            return self._pseudo[name]
        if name in self.document["Parameters"]:
            return self._parameter(name)
        return _REFERENCES.get(self._type(name), Stack.physical_name)(self, name)

    @property
    def _pseudo(self) -> Mapping[str, Any]:
        return {
            "AWS::AccountId": ACCOUNT,
            "AWS::NoValue": NO_VALUE,
            "AWS::Partition": self.partition,
            "AWS::Region": self.region,
            "AWS::StackId": self.arn("cloudformation", "stack/trainmaster/1"),
            "AWS::StackName": "trainmaster",
            "AWS::URLSuffix": URL_SUFFIXES[self.partition],
        }

    def _parameter(self, name: str) -> Any:
        declared = self.document["Parameters"][name]
        given = self.parameters[name] if name in self.parameters else declared["Default"]
        is_list = declared["Type"].startswith(("CommaDelimitedList", "List<"))
        return str(given).split(",") if is_list else given

    def _type(self, name: str) -> str:
        return str(self.document["Resources"][name]["Type"])

    def physical_name(self, name: str) -> str:
        """Return a resource's own name, or such as CloudFormation generates."""
        resource = self.document["Resources"][name]
        properties = resource.get("Properties", {})
        key = next((key for key in _NAMES.get(resource["Type"], ()) if key in properties), None)
        return str(self.resolve(properties[key])) if key else f"trainmaster-{name}-1ABCDEF"

    def _decided(self, condition: Any) -> bool:
        ((name, argument),) = condition.items()
        if name == "Fn::Equals":
            first, second = (self.resolve(each) for each in argument)
            return bool(str(first) == str(second))
        if name == "Fn::Not":
            return not self._decided(argument[0])
        if name in {"Fn::And", "Fn::Or"}:
            return (all if name == "Fn::And" else any)(self._decided(each) for each in argument)
        if name == "Condition":
            return self.holds(argument)
        raise ValueError(f"unknown condition {name}")

    def substituted(self, argument: Any) -> str:
        """Return the text of `Fn::Sub`."""
        text, values = (argument, {}) if isinstance(argument, str) else argument

        def value_of(found: re.Match[str]) -> str:
            name = found[1]
            if name in values:
                return str(self.resolve(values[name]))
            return str(self.attribute(*name.split(".")) if "." in name else self.reference(name))

        return re.sub(r"\$\{([A-Za-z0-9:.]+)\}", value_of, text)

    def split(self, argument: Any) -> list[str]:
        """Return the parts of `Fn::Split`."""
        separator, text = argument
        return str(self.resolve(text)).split(separator)

    def joined(self, argument: Any) -> str:
        """Return the text of `Fn::Join`."""
        separator, items = argument
        return str(separator).join(str(item) for item in self.resolve(items))

    def chosen(self, argument: Any) -> Any:
        """Return the value of `Fn::If` whose condition holds."""
        condition, yes, no = argument
        return self.resolve(yes if self.holds(condition) else no)

    def selected(self, argument: Any) -> Any:
        """Return the item of `Fn::Select`."""
        index, items = argument
        return self.resolve(items)[int(index)]

    def got(self, argument: Any) -> str:
        """Return an attribute of a resource."""
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.attribute(name, attribute)


_FUNCTIONS: Mapping[str, Callable[[Stack, Any], Any]] = {
    "Ref": Stack.reference,
    "Fn::GetAtt": Stack.got,
    "Fn::If": Stack.chosen,
    "Fn::ImportValue": lambda stack, argument: stack.imports[stack.resolve(argument)],
    "Fn::Join": Stack.joined,
    "Fn::Select": Stack.selected,
    "Fn::Split": Stack.split,
    "Fn::Sub": Stack.substituted,
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "AWS::DynamoDB::Table": ("TableName",),
    "AWS::IAM::Role": ("RoleName",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::Serverless::Function": ("FunctionName",),
    "AWS::SQS::Queue": ("QueueName",),
}


def _arn(service: str, prefix: str = "", suffix: str = "", *, of_region: bool = True) -> Callable[[Stack, str], str]:
    """Return what gives the ARN of a resource of one type."""

    def arn(stack: Stack, name: str) -> str:
        resource = f"{prefix}{stack.physical_name(name)}{suffix}"
        return stack.arn(service, resource, region=None if of_region else "")

    return arn


_ATTRIBUTES: Mapping[tuple[str, str], Callable[[Stack, str], str]] = {
    ("AWS::CloudWatch::Alarm", "Arn"): _arn("cloudwatch", "alarm:"),
    ("AWS::DynamoDB::Table", "Arn"): _arn("dynamodb", "table/"),
    ("AWS::Events::Rule", "Arn"): _arn("events", "rule/"),
    ("AWS::IAM::Role", "Arn"): _arn("iam", "role/", of_region=False),
    ("AWS::IAM::Role", "RoleId"): lambda _, name: f"AROA{name.upper()}",
    ("AWS::KMS::Key", "Arn"): _arn("kms", "key/"),
    ("AWS::Logs::LogGroup", "Arn"): _arn("logs", "log-group:", ":*"),
    ("AWS::Serverless::Api", "Stage"): lambda *_: "prod",
    ("AWS::Serverless::Function", "Arn"): _arn("lambda", "function:"),
    ("AWS::SQS::Queue", "Arn"): _arn("sqs"),
    ("AWS::SQS::Queue", "QueueName"): Stack.physical_name,
    ("AWS::WAFv2::WebACL", "Arn"): _arn("wafv2", "regional/webacl/", "/1"),
}
_REFERENCES: Mapping[str, Callable[[Stack, str], str]] = {
    "AWS::IAM::ManagedPolicy": _arn("iam", "policy/", of_region=False),
    "AWS::SQS::Queue": lambda stack, name: (
        f"https://sqs.{stack.region}.{URL_SUFFIXES[stack.partition]}/{ACCOUNT}/{stack.physical_name(name)}"
    ),
}


def in_partition(parameters: Mapping[str, str], partition: str) -> dict[str, str]:
    """Return parameters with their ARNs in another partition."""
    return {
        name: value.replace("arn:aws:", f"arn:{partition}:").replace("us-east-1", REGIONS[partition])
        for name, value in parameters.items()
    }


def document_of(file: str) -> Mapping[str, Any]:
    """Return a template as it is written, functions in their long form."""
    document, _ = decode(str(ROOT / file))
    return document


def beside(core: Stack, document: Mapping[str, Any], **parameters: str) -> Stack:
    """Return a stack that imports what `core` exports."""
    return Stack(document, in_partition(parameters, core.partition), core.partition, core.exports)


HARDENED = {
    "CustomerManagedKey": "true",
    "LogRetentionDays": "400",
    "PermissionsBoundaryArn": f"arn:aws:iam::{ACCOUNT}:policy/boundary",
    "SecurityGroupIds": "sg-0123456789abcdef0",
    "SubnetIds": "subnet-0123456789abcdef0,subnet-0fedcba9876543210",
}
"""The hardened profile that both templates have (docs/how-to/deploy.md)."""
HARDENED_CORE = HARDENED | {
    "AllowedRoles": f"arn:aws:iam::{ACCOUNT}:role/training/*",
    "ApiAccessLogs": "true",
    "ApiReservedConcurrency": "20",
    "CreateApiLogRole": "true",
    "ManagerReservedConcurrency": "2",
    "Pools": "ml.p5.48xlarge=2",
    "RequestsPerMinuteOfAddress": "300",
    "RequestsPerMinuteOfCaller": "60",
    "RequestsPerSecond": "10",
    "SageMakerPipelines": "true",
    "StepFunctions": "true",
    "VpcEndpointIds": "vpce-0123456789abcdef0",
}
HARDENED_IMAGES = HARDENED | {"IntakeReservedConcurrency": "10", "RegionReservedConcurrency": "100"}


def hardened() -> dict[str, Stack]:
    """Return the stacks of both templates with every part of the hardened profile, by the template's path."""
    core = Stack(document_of("template.yaml"), HARDENED_CORE)
    images = beside(core, document_of("images/template.yaml"), **HARDENED_IMAGES)
    return {"template.yaml": core, "images/template.yaml": images}


def main() -> None:
    """Write the hardened stacks as templates to the folder that the command line names."""
    folder = Path(sys.argv[1])
    for name, stack in hardened().items():
        path = (folder / name).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(stack.template, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
