"""The templates as CloudFormation would render them: parameters, conditions and intrinsic functions resolved.

Functions and types that no template uses raise `KeyError` or `ValueError`: no policy is evaluated half resolved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cfnlint.decode import decode

from permissions import ROOT, template

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
        return REGIONS[self.partition]

    def arn(self, service: str, resource: str, *, account: str = ACCOUNT, region: str | None = None) -> str:
        """Return an ARN of this partition, of this Region unless another (or none, "") is given."""
        of_region = self.region if region is None else region
        return f"arn:{self.partition}:{service}:{of_region}:{account}:{resource}"

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
        rules = [each for each in self.document["Rules"].values() if self._decided(each["RuleCondition"])]
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
        return _REFERENCES.get(self._type(name), Stack._physical_name)(self, name)

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

    def _physical_name(self, name: str) -> str:
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

    def _substituted(self, argument: Any) -> str:
        text, values = (argument, {}) if isinstance(argument, str) else argument

        def value_of(found: re.Match[str]) -> str:
            name = found[1]
            if name in values:
                return str(self.resolve(values[name]))
            return str(self.attribute(*name.split(".")) if "." in name else self.reference(name))

        return re.sub(r"\$\{([A-Za-z0-9:.]+)\}", value_of, text)

    def _split(self, argument: Any) -> list[str]:
        separator, text = argument
        return str(self.resolve(text)).split(separator)

    def _joined(self, argument: Any) -> str:
        separator, items = argument
        return str(separator).join(str(item) for item in self.resolve(items))

    def _chosen(self, argument: Any) -> Any:
        condition, yes, no = argument
        return self.resolve(yes if self.holds(condition) else no)

    def _selected(self, argument: Any) -> Any:
        index, items = argument
        return self.resolve(items)[int(index)]

    def _got(self, argument: Any) -> str:
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.attribute(name, attribute)


_FUNCTIONS: Mapping[str, Callable[[Stack, Any], Any]] = {
    "Ref": Stack.reference,
    "Fn::GetAtt": Stack._got,
    "Fn::If": Stack._chosen,
    "Fn::ImportValue": lambda stack, argument: stack.imports[stack.resolve(argument)],
    "Fn::Join": Stack._joined,
    "Fn::Select": Stack._selected,
    "Fn::Split": Stack._split,
    "Fn::Sub": Stack._substituted,
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
        resource = f"{prefix}{stack._physical_name(name)}{suffix}"
        return stack.arn(service, resource, region=None if of_region else "")

    return arn


_ATTRIBUTES: Mapping[tuple[str, str], Callable[[Stack, str], str]] = {
    ("AWS::DynamoDB::Table", "Arn"): _arn("dynamodb", "table/"),
    ("AWS::Events::Rule", "Arn"): _arn("events", "rule/"),
    ("AWS::IAM::Role", "Arn"): _arn("iam", "role/", of_region=False),
    ("AWS::IAM::Role", "RoleId"): lambda _, name: f"AROA{name.upper():0<17}"[:21],
    ("AWS::KMS::Key", "Arn"): _arn("kms", "key/"),
    ("AWS::Logs::LogGroup", "Arn"): _arn("logs", "log-group:", ":*"),
    ("AWS::Serverless::Api", "Stage"): lambda *_: "prod",
    ("AWS::Serverless::Function", "Arn"): _arn("lambda", "function:"),
    ("AWS::SQS::Queue", "Arn"): _arn("sqs"),
    ("AWS::SQS::Queue", "QueueName"): Stack._physical_name,
    ("AWS::WAFv2::WebACL", "Arn"): _arn("wafv2", "regional/webacl/", "/1"),
}
_REFERENCES: Mapping[str, Callable[[Stack, str], str]] = {
    "AWS::IAM::ManagedPolicy": _arn("iam", "policy/", of_region=False),
    "AWS::SQS::Queue": lambda stack, name: (
        f"https://sqs.{stack.region}.{URL_SUFFIXES[stack.partition]}/{ACCOUNT}/{stack._physical_name(name)}"
    ),
}

CORE_PARAMETERS = {
    "AllowedRoles": f"arn:aws:iam::{ACCOUNT}:role/training/*",
    "CheckpointBucketArns": "arn:aws:s3:::checkpoints",
    "Pools": "ml.p5.48xlarge=2",
    "ResizeFunctionArns": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:resize-*",
    "TrainingPlanArns": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/ours",
    "VolumeKmsKeyArns": f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555",
    "VpcEndpointIds": "vpce-0123456789abcdef0",
}
"""Every optional resource is named, so that every optional policy is there."""


def in_partition(parameters: Mapping[str, str], partition: str) -> dict[str, str]:
    """Return parameters with their ARNs in another partition."""
    return {
        name: value.replace("arn:aws:", f"arn:{partition}:").replace("us-east-1", REGIONS[partition])
        for name, value in parameters.items()
    }


def core_stack(partition: str = "aws", **parameters: str) -> Stack:
    """Return the stack of `template.yaml`, with every optional policy unless parameters say otherwise."""
    return Stack(template(), in_partition(CORE_PARAMETERS, partition) | parameters, partition)


def beside(core: Stack, document: Mapping[str, Any], **parameters: str) -> Stack:
    """Return a stack that imports what `core` exports."""
    return Stack(document, in_partition(parameters, core.partition), core.partition, core.exports)


def document_of(file: str) -> Mapping[str, Any]:
    """Return a template as it is written, functions in their long form."""
    document, _ = decode(str(ROOT / file))
    return document


def policies_of(role: str, *stacks: Stack) -> list[dict[str, Any]]:
    """Return the documents of a role's own policies and of those that stacks attach to it by its name."""
    owner = next(stack for stack in stacks if role in stack.document["Resources"])
    found = [policy["PolicyDocument"] for policy in owner.resources[role]["Properties"].get("Policies", [])]
    for stack in stacks:
        attached = (each["Properties"] for each in stack.resources.values() if each["Type"] in _ATTACHED)
        found += [each["PolicyDocument"] for each in attached if owner.reference(role) in each.get("Roles", [])]
    return found


_ATTACHED = {"AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"}
