"""Passes rows between callers and DynamoDB as they are, since both have the same form.

botocore compares each attribute with its model: it needs four times as long to write a request, and ten times as long
to read an answer.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_READS = ("BatchGetItem", "GetItem", "Query")
_OPERATIONS = (*_READS, "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem")
_SUCCESS = 200
_GIVEN = "trainmaster_params"
"""The arguments of a call, in its context."""


def take_values_as_they_are(client: DynamoDBClient) -> DynamoDBClient:
    """Return the client, which from now on leaves the types of arguments and of attributes that it reads unchecked.

    The client must not validate parameters, and each transaction needs a `ClientRequestToken`.
    """
    events: Any = client.meta.events
    for operation in _OPERATIONS:
        events.register(f"provide-client-params.dynamodb.{operation}", _keep, unique_id=f"keep-{operation}")
        events.register(f"before-call.dynamodb.{operation}", _write, unique_id=f"write-{operation}")
    for operation in _READS:
        events.register(f"before-parse.dynamodb.{operation}", _take_rows, unique_id=f"rows-{operation}")
    return client


def _keep(params: dict[str, Any], context: dict[str, Any], **_: object) -> dict[str, Any]:
    """Keep the arguments of a call for its body, and leave none to botocore, which asks for the names of tables."""
    context[_GIVEN] = params
    return {"RequestItems": {}} if "RequestItems" in params else {}


def _write(params: dict[str, Any], context: dict[str, Any], **_: object) -> None:
    """Write the arguments into the body of the request, whose parts botocore calls `params` here."""
    params["body"] = json.dumps(context.pop(_GIVEN), default=_encoded, separators=(",", ":")).encode()


def _encoded(value: bytes) -> str:
    return b64encode(value).decode()


def _take_rows(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    """Move the rows from an answer's text into the parsed answer; leave all but successful answers to botocore."""
    if response_dict["status_code"] != _SUCCESS:
        return
    try:
        answer = json.loads(response_dict["body"])
    except ValueError:
        return
    found = {name: answer.pop(name) for name in ("Item", "Items", "Responses") if name in answer}
    rows = [found["Item"]] if "Item" in found else found.get("Items", [])
    for row in (*rows, *(row for each in found.get("Responses", {}).values() for row in each)):
        for attribute in row.values():
            # Most are text or a number, for which a call takes longer than the look.
            if "S" not in attribute and "N" not in attribute:
                _decode(attribute)
    customized_response_dict.update(found)
    response_dict["body"] = json.dumps(answer).encode()


def _decode(attribute: dict[str, Any]) -> None:
    """Replace binary values by their bytes; in JSON they are text."""
    for kind, value in attribute.items():
        if kind == "B":
            attribute[kind] = b64decode(value)
        elif kind == "BS":
            attribute[kind] = [b64decode(part) for part in value]
        elif kind in {"L", "M"}:
            for part in value if kind == "L" else value.values():
                _decode(part)
