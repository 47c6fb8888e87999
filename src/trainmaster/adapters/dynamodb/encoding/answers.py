"""Takes rows from DynamoDB's answers as they are: botocore needs ten times as long to check each attribute's type."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_OPERATIONS = ("BatchGetItem", "GetItem", "Query")
_SUCCESS = 200


def take_rows_as_they_are(client: DynamoDBClient) -> DynamoDBClient:
    """Return the client, whose reads from now on leave the types of attributes unchecked."""
    for operation in _OPERATIONS:
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _take_rows, unique_id=f"rows-{operation}")
    return client


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
