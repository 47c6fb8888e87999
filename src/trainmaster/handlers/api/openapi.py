"""Generates the OpenAPI document from the routes and their models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayRestResolver
from pydantic import BaseModel

from trainmaster.domain.jobs.job import TRAINING

API_VERSION = "1.0.0"
_SCHEMAS = "#/components/schemas/"
_POWERTOOLS_OWN = ("HTTPValidationError", "ResponseValidationError", "ValidationError")
_DESCRIPTION = """\
A priority queue for Amazon SageMaker training jobs{others}.

Every route needs a request signed by IAM (Signature Version 4, service `execute-api`). Bodies are JSON
objects in UTF-8; times are ISO 8601 in UTC. Every error response is an `Error`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDocument:
    """The part of a kind of jobs in the document.

    Attributes:
        name: The kind's name.
        title: The name of such jobs.
        units: What their units are.
        details: Model of the member `details` of their views.
        plan: Description of the request that `POST /plan` takes for them.
        plan_members: Required members of that request.
        plan_example: An example of it.
    """

    name: str
    title: str
    units: str
    details: type[BaseModel]
    plan: str
    plan_members: Sequence[str]
    plan_example: Mapping[str, Any]


class Documented(Protocol):
    """A kind of jobs, as far as the document needs it."""

    @property
    def document(self) -> KindDocument | None:
        """Its part of the document; None for a kind that is left out."""


def document(app: APIGatewayRestResolver, kinds: Sequence[Documented] = ()) -> dict[str, Any]:
    """Return the OpenAPI document of the API with the routes of `app`."""
    parts = [kind.document for kind in kinds if kind.document is not None]
    description = _DESCRIPTION.format(others="".join(f", and for {part.title}" for part in parts))
    text = app.get_openapi_json_schema(title="Trainmaster", version=API_VERSION, description=description)
    made: dict[str, Any] = json.loads(text)
    del made["servers"]
    made["info"]["license"] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    made["security"] = [{"sigv4": []}]
    made["paths"] = {path: _path_item(item) for path, item in sorted(made["paths"].items())}
    schemas = made["components"]["schemas"]
    for part in parts:
        _add_plan(schemas["PlanRequest"], part)
    _add_details(schemas, parts)
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


def _add_plan(schema: dict[str, Any], part: KindDocument) -> None:
    """Add the request of a kind to those that `POST /plan` takes."""
    schema["description"] += f"\n\n{part.plan}"
    schema["anyOf"].append({"required": list(part.plan_members)})
    schema.setdefault("examples", []).append(dict(part.plan_example))


def _add_details(schemas: dict[str, Any], parts: Sequence[KindDocument]) -> None:
    """Add the kinds to the members `kind` and `details` of jobs, with the models of the details."""
    for part in parts:
        model = part.details.model_json_schema(mode="serialization", ref_template=_SCHEMAS + "{model}")
        schemas |= model.pop("$defs", {}) | {part.details.__name__: model}
    details = [{"$ref": _SCHEMAS + part.details.__name__} for part in parts]
    for name in _JOBS:
        members = schemas[name]["properties"]
        members["kind"]["enum"] = [TRAINING, *(part.name for part in parts)]
        members["kind"]["description"] += "".join(f" {part.name}: {part.units}." for part in parts)
        if details:
            members["details"]["anyOf"] = [*details, {"type": "null"}]


_JOBS = ("Job", "JobDetail", "Submission")
"""The models with the members of a job."""


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
