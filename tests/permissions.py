"""The permissions of the templates' roles, and the requests of a session's clients, both as IAM names them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from cfnlint.decode import decode

_SAME = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectsV2": "s3:ListBucket",
    "sqs:SendMessageBatch": "sqs:SendMessage",
}
"""Operations that IAM calls otherwise (service authorization reference)."""
_IN_TRANSACTION = {
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Delete": "dynamodb:DeleteItem",
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
}
"""TransactWriteItems is permitted by what is in it (DynamoDB developer guide, "Using IAM with transactions")."""
_LEADING_KEYS = "dynamodb:LeadingKeys"
_OPERATORS = {"ForAllValues:StringLike": True, "ForAnyValue:StringLike": True, "ForAllValues:StringNotLike": False}
"""Conditions on the partition key, and whether they hold for one that matches. A call has one key."""


ROOT = Path(__file__).parents[1]
Statement = dict[str, Any]


@lru_cache(maxsize=1)
def template() -> dict[str, Any]:
    """Return `template.yaml`, its functions in their long form."""
    found, _ = decode(str(ROOT / "template.yaml"))
    return found


@lru_cache(maxsize=1)
def images_template() -> dict[str, Any]:
    """Return `images/template.yaml`, with the values that `template.yaml` exports instead of its imports."""
    found, _ = decode(str(ROOT / "images" / "template.yaml"))
    outputs = [output for output in template()["Outputs"].values() if "Export" in output]
    return _resolved(found, {json.dumps(output["Export"]["Name"]): output["Value"] for output in outputs})


def _resolved(value: Any, exports: Mapping[str, Any]) -> Any:
    """Replace imports. Raises `KeyError` for an import that is not among the exports."""
    if isinstance(value, list):
        return [_resolved(item, exports) for item in value]
    if not isinstance(value, dict):
        return value
    if "Fn::ImportValue" in value:
        return exports[json.dumps(value["Fn::ImportValue"])]
    return {name: _resolved(item, exports) for name, item in value.items()}


def statements(role: str, *, images: bool = False) -> Iterator[Statement]:
    """Yield every statement of a role, those under a condition too."""
    for _, statement in conditional_statements(role, images=images):
        yield statement


def conditional_statements(role: str, *, images: bool = False) -> Iterator[tuple[str | None, Statement]]:
    """Yield every statement of a role with the condition of its policy; None for none.

    Args:
        role: a role of either template.
        images: include the policies that `images/template.yaml` attaches to roles of `template.yaml`.
    """
    own = template()["Resources"].get(role) or images_template()["Resources"][role]
    policies = [_conditional(policy) for policy in own["Properties"].get("Policies", [])]
    if images:
        resources = [each for each in images_template()["Resources"].values() if each["Type"] == "AWS::IAM::Policy"]
        policies += [(each.get("Condition"), each["Properties"]) for each in resources if _is_attached(each, role)]
    for condition, policy in policies:
        for statement in policy["PolicyDocument"]["Statement"]:
            yield condition, statement


def _conditional(policy: Any) -> tuple[str | None, dict[str, Any]]:
    return tuple(policy["Fn::If"][:2]) if "Fn::If" in policy else (None, policy)


def _is_attached(policy: Mapping[str, Any], role: str) -> bool:
    return {"Ref": role} in policy["Properties"]["Roles"]


def listed(value: Any) -> list[Any]:
    """Return a list of what IAM accepts as one value or as a list."""
    return value if isinstance(value, list) else [value]


def actions(role: str, service: str, *, images: bool = False) -> set[str]:
    """Return the actions of a service that a role may take, on any resource."""
    return {
        action
        for statement in statements(role, images=images)
        if statement["Effect"] == "Allow"
        for action in listed(statement["Action"])
        if action.startswith(f"{service}:")
    }


IAM_NAMES = {action: operation for operation, action in _SAME.items()}
"""The operations that IAM calls otherwise, by their actions."""


@dataclass(frozen=True, slots=True)
class Call:
    """One permission that was needed.

    Attributes:
        action: as IAM calls it.
        resource: the template's name of the table, of its index, or of a queue; None of other services' resources.
        key: the partition key; None where there is none.
    """

    action: str
    resource: str | None = None
    key: str | None = None


def permits(role: str, call: Call) -> bool:
    """Return whether a statement of the role allows a call and none denies it, in a queue with image jobs.

    Raises `ValueError` for an unknown kind of condition.
    """
    effects = {
        each["Effect"]
        for each in statements(role, images=True)
        if any(fnmatchcase(call.action, pattern) for pattern in listed(each["Action"]))
        and _covers(each, call)
        and _holds(each.get("Condition", {}), call)
    }
    return effects == {"Allow"}


def _covers(statement: Mapping[str, Any], call: Call) -> bool:
    return call.resource is None or call.resource in {_name(each) for each in listed(statement["Resource"])}


def _name(resource: Any) -> str | None:
    if not isinstance(resource, dict):
        return None
    return (
        resource.get("Fn::Sub", "").replace("${QueueTable.Arn}", "QueueTable") or resource.get("Fn::GetAtt", [None])[0]
    )


def _holds(condition: Mapping[str, Any], call: Call) -> bool:
    if not condition or not call.action.startswith("dynamodb:"):
        return True
    operators = {name: keys for name, keys in condition.items() if name != "Null"}
    if operators.keys() - _OPERATORS.keys() or any(keys.keys() != {_LEADING_KEYS} for keys in condition.values()):
        raise ValueError(f"unknown condition {condition}")
    key = call.key
    return key is not None and all(
        any(fnmatchcase(key, pattern) for pattern in keys[_LEADING_KEYS]) == _OPERATORS[name]
        for name, keys in operators.items()
    )


@dataclass
class RecordedCalls:
    """Calls of the clients of a session, from now on.

    Args:
        session: of boto3; clients that it makes later are heard.
        queues: the template's names of SQS queues, by URL.
    """

    session: Any
    queues: Mapping[str, str] = field(default_factory=dict)
    calls: set[Call] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.session.events.register("provide-client-params.*.*", self._note)

    def _note(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        action = f"{model.service_model.signing_name}:{model.name}"
        action = _SAME.get(action, action)
        if action.startswith("dynamodb:"):
            self.calls.update(_of_table(action, params))
        elif action.startswith("sqs:"):
            self.calls.add(Call(action, self.queues[params["QueueUrl"]]))
        else:
            self.calls.add(Call(action))


def _of_table(action: str, params: Mapping[str, Any]) -> Iterable[Call]:
    """The permissions that one request to DynamoDB needs."""
    if action == "dynamodb:TransactWriteItems":
        parts = [part for each in params["TransactItems"] for part in each.items()]
        return [Call(_IN_TRANSACTION[kind], "QueueTable", _key_in(each)) for kind, each in parts]
    if action == "dynamodb:BatchGetItem":
        keys = [key for wanted in params["RequestItems"].values() for key in wanted["Keys"]]
        return [Call(action, "QueueTable", key["pk"]["S"]) for key in keys]
    if action == "dynamodb:Query":
        values = params["ExpressionAttributeValues"]
        index = params.get("IndexName")
        where = "QueueTable" if index is None else f"QueueTable/index/{index}"
        return [Call(action, where, values[":pk" if index is None else ":in"]["S"])]
    return [Call(action, "QueueTable", _key_in(params))]


def _key_in(params: Mapping[str, Any]) -> str:
    key: str = (params.get("Item") or params["Key"])["pk"]["S"]
    return key
