"""What `template.yaml` lets its roles do, and what the clients of a session were asked for, both in IAM's words.

The template says what is permitted; it must not hold any permission itself.
"""

from __future__ import annotations

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
_LEADING_KEYS = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys"}}


@lru_cache(maxsize=1)
def template() -> dict[str, Any]:
    """`template.yaml`, its functions in their long form."""
    found, _ = decode(str(Path(__file__).parents[1] / "template.yaml"))
    return found


def statements(role: str) -> Iterator[dict[str, Any]]:
    """Every statement of a role, those under a condition too."""
    for _, each in conditional_statements(role):
        yield each


def conditional_statements(role: str) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Every statement of a role with the condition that its policy is under; None for none."""
    for policy in template()["Resources"][role]["Properties"]["Policies"]:
        condition, document = policy["Fn::If"][:2] if "Fn::If" in policy else (None, policy)
        for each in document["PolicyDocument"]["Statement"]:
            yield condition, each


def listed(value: Any) -> list[Any]:
    """What IAM takes as one value or as a list of them."""
    return value if isinstance(value, list) else [value]


def actions(role: str, service: str) -> set[str]:
    """All of a service that a role may do, wherever."""
    return {
        action for each in statements(role) for action in listed(each["Action"]) if action.startswith(f"{service}:")
    }


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
    """Whether a statement of the role allows it. Raises `ValueError` for a condition that nobody here can judge."""
    return any(
        call.action in listed(each["Action"]) and _covers(each, call) and _holds(each.get("Condition", {}), call)
        for each in statements(role)
    )


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
    if {operator: set(keys) for operator, keys in condition.items()} != _LEADING_KEYS:
        raise ValueError(f"nobody can judge {condition}")
    patterns = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    return call.key is not None and any(fnmatchcase(call.key, pattern) for pattern in patterns)


@dataclass
class Asked:
    """What the clients of a session are asked for, from now on.

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
