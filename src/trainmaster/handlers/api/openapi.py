"""The OpenAPI document, made of the routes and their models."""

from __future__ import annotations

import json
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayRestResolver

API_VERSION = "1.0.0"
_SCHEMAS = "#/components/schemas/"
_POWERTOOLS_OWN = ("HTTPValidationError", "ResponseValidationError", "ValidationError")
_DESCRIPTION = """\
A priority queue for Amazon SageMaker training jobs, and for image jobs on models' endpoints.

Every route needs a request signed by IAM (Signature Version 4, service `execute-api`). Bodies are JSON
objects in UTF-8; times are ISO 8601 in UTC. Every error response is an `Error`.
"""


def document(app: APIGatewayRestResolver) -> dict[str, Any]:
    """Return the OpenAPI document of the API with the routes of `app`."""
    text = app.get_openapi_json_schema(title="Trainmaster", version=API_VERSION, description=_DESCRIPTION)
    made: dict[str, Any] = json.loads(text)
    del made["servers"]
    made["info"]["license"] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    made["security"] = [{"sigv4": []}]
    made["paths"] = {path: _path_item(item) for path, item in sorted(made["paths"].items())}
    schemas = made["components"]["schemas"]
    made["components"]["schemas"] = {name: schemas[name] for name in sorted(schemas) if name not in _POWERTOOLS_OWN}
    made["components"]["securitySchemes"] = {"sigv4": _SIGV4}
    plain: dict[str, Any] = _plain(made)
    plain["info"]["title"] = "Trainmaster"
    return plain


_SIGV4 = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4, service `execute-api`.",
    "x-amazon-apigateway-authtype": "awsSigv4",
}


def _path_item(item: dict[str, Any]) -> dict[str, Any]:
    for operation in item.values():
        operation.pop("deprecated", None)
        # Powertools adds the answer of its own validation, which here is an Error of status 400.
        answers = operation["responses"]
        operation["responses"] = {
            status: answers[status] for status in sorted(answers) if not _is_powertools(answers[status])
        }
        for parameter in operation.get("parameters", []):
            if parameter["name"] == "state":
                parameter |= {"style": "form", "explode": False}
    return item


def _is_powertools(answer: dict[str, Any]) -> bool:
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return schema.get("$ref", "").removeprefix(_SCHEMAS) in _POWERTOOLS_OWN


def _plain(value: Any) -> Any:
    """Return the value without the titles that pydantic derives from names, and with whole numbers as integers."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != "title" or not isinstance(each, str)}
    return int(value) if isinstance(value, float) and value.is_integer() else value
