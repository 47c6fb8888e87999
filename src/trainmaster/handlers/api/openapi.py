"""What the API offers, as a table of operations, and the OpenAPI document made of it and of the routes' own types.

It must not do what an operation does: `api.py` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayRestResolver
from pydantic import BaseModel

from trainmaster.handlers.models import elastic as elastic_models
from trainmaster.handlers.models import forecast as forecast_models
from trainmaster.handlers.models import jobs as job_models
from trainmaster.handlers.models import pools as pool_models
from trainmaster.handlers.models.settings import SettingsInForce
from trainmaster.images.handlers import views

API_VERSION = "1.0.0"
_SCHEMAS = "#/components/schemas/"
_POWERTOOLS_OWN = ("HTTPValidationError", "ResponseValidationError", "ValidationError")
_DESCRIPTION = """\
A priority queue for Amazon SageMaker training jobs, and for image jobs on models' endpoints.

Every route needs a request signed by IAM (Signature Version 4, service `execute-api`). Bodies and answers are JSON
objects in UTF-8; times are ISO 8601 in UTC. Every answer that is no success has the shape `Error`.
"""


@dataclass(frozen=True, slots=True)
class Operation:
    """One route.

    Attributes:
        method: the HTTP method.
        rule: the path, its parameters in angle brackets.
        summary: what it does, in a few words.
        answers: by status, what a success means and looks like; no model for any JSON object.
        refusals: statuses of the errors that it may answer, besides those that every route may.
    """

    method: str
    rule: str
    summary: str
    answers: Mapping[int, tuple[str, type[BaseModel] | None]]
    refusals: tuple[int, ...] = ()

    def responses(self) -> dict[int, Any]:
        """Every answer, in the form that Powertools takes."""
        successes = {status: _response(words, model) for status, (words, model) in self.answers.items()}
        return successes | {status: _refusal(status) for status in (*self.refusals, *_ANY)}


_ANY = (400, 429, 500, 503)
_REFUSALS = {
    400: "`InvalidRequest`: a value of the wrong type, form or meaning; `field` names it.",
    403: "`RoleNotAllowed`, `ShareNotAllowed`: the caller may not pass this role, or not use this share.",
    404: "`JobNotFound`, `PoolNotFound`: the queue knows no job, or has no pool, of this name.",
    409: (
        "`NameTaken`, `IllegalTransition`, `VersionConflict`, `PoolInUse`, `BudgetExhausted` or `NotOffered`: "
        "what is there does not allow it."
    ),
    413: "`TooLarge`: more than the queue can store.",
    415: "`UnsupportedMediaType`: the body is not declared as JSON.",
    422: "`NeverFits`: no pool could ever meet the demand. `UnknownOption`: a `trainmaster:` tag that means nothing.",
    429: "`Throttled`: nothing was done; ask again after the seconds in `Retry-After`.",
    500: "`InternalError`: an unexpected error; the hint has the request's id.",
    503: "`Unavailable` or `ServiceTrouble`: it may or may not have been done; every request can be repeated.",
}
_SUBMIT = (403, 409, 413, 415, 422)

OPERATIONS: Mapping[str, Operation] = {
    "addJob": Operation(
        "POST",
        "/add-job",
        "Submit a training job",
        {
            202: ("It waits in the queue from now on.", job_models.Submission),
            200: ("The same request had been submitted before; this is how it stands.", job_models.Submission),
        },
        _SUBMIT,
    ),
    "addImageJob": Operation(
        "POST",
        "/image-jobs",
        "Submit an image job",
        {
            202: ("Its image is looked at, and then it waits in the queue.", views.Received),
            200: ("The same request had been submitted before; this is how it stands.", views.Received),
        },
        (403, 409, 413, 415),
    ),
    "listJobs": Operation("GET", "/jobs", "List jobs", {200: ("One page.", job_models.JobsPage)}),
    "getJob": Operation("GET", "/jobs/<name>", "Show a job", {200: ("The job.", job_models.JobDetail)}, (404,)),
    "getRendezvous": Operation(
        "GET",
        "/jobs/<name>/rendezvous",
        "Show how the nodes of a job stand to each other",
        {200: ("As the nodes say it.", elastic_models.Rendezvous)},
        (404,),
    ),
    "answerResize": Operation(
        "POST",
        "/jobs/<name>/resize",
        "Say that a job has been resized, or will not be",
        {200: ("The job as it stands now.", job_models.Job)},
        (404, 409, 415),
    ),
    "cancelJob": Operation(
        "DELETE",
        "/jobs/<name>",
        "Cancel or stop a job",
        {
            200: ("It was waiting, and is cancelled.", job_models.Job),
            202: ("It holds capacity; it will be stopped and not be resumed.", job_models.Job),
        },
        (404, 409),
    ),
    "changeJob": Operation(
        "PATCH",
        "/jobs/<name>",
        "Change a job's priority, hold it, or release it",
        {200: ("The job as changed.", job_models.Job)},
        (404, 409, 415),
    ),
    "getQueue": Operation(
        "GET", "/queue", "Show who waits for what, in order", {200: ("One page of waiting jobs.", job_models.QueuePage)}
    ),
    "getPools": Operation("GET", "/pools", "Show the pools", {200: ("All pools.", pool_models.Pools)}),
    "setPools": Operation(
        "PUT", "/pools", "Replace the pools", {200: ("All pools as they are now.", pool_models.Pools)}, (409, 415)
    ),
    "setPool": Operation(
        "PUT",
        "/pools/<name>",
        "Make or replace a pool",
        {200: ("The pool as it is now.", pool_models.Pool)},
        (409, 415),
    ),
    "changePool": Operation(
        "PATCH",
        "/pools/<name>",
        "Change a pool, drain it, or end that",
        {200: ("The pool as it is now.", pool_models.Pool)},
        (404, 409, 415),
    ),
    "removePool": Operation(
        "DELETE", "/pools/<name>", "Remove a pool", {200: ("It is gone.", pool_models.Removal)}, (404, 409)
    ),
    "getSettings": Operation(
        "GET", "/settings", "Show the settings", {200: ("The settings in force.", SettingsInForce)}
    ),
    "setSettings": Operation(
        "PUT",
        "/settings",
        "Replace the settings",
        {200: ("The settings as they are now.", SettingsInForce)},
        (409, 415),
    ),
    "plan": Operation(
        "POST", "/plan", "Say what would happen to a job", {200: ("Nothing was stored.", forecast_models.Plan)}, _SUBMIT
    ),
    "openapi": Operation("GET", "/openapi.json", "This document", {200: ("An OpenAPI 3.1 document.", None)}),
}


def methods_by_rule() -> dict[str, tuple[str, ...]]:
    """Which methods each path takes."""
    rules = dict.fromkeys(each.rule for each in OPERATIONS.values())
    return {rule: tuple(each.method for each in OPERATIONS.values() if each.rule == rule) for rule in rules}


def document(app: APIGatewayRestResolver) -> dict[str, Any]:
    """The OpenAPI document of the API whose routes `app` has."""
    text = app.get_openapi_json_schema(title="Trainmaster", version=API_VERSION, description=_DESCRIPTION)
    made: dict[str, Any] = json.loads(text)
    del made["servers"]
    made["info"]["license"] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    made["security"] = [{"sigv4": []}]
    made["paths"] = {path: _path_item(made["paths"][path]) for path in _paths()}
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


def _paths() -> list[str]:
    return [rule.replace("<", "{").replace(">", "}") for rule in methods_by_rule()]


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
    """Without the titles that pydantic makes of members' names, and with whole numbers as such."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != "title" or not isinstance(each, str)}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _response(words: str, model: type[BaseModel] | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"schema": {"type": "object"}} if model is None else {"model": model}
    return {"description": words, "content": {"application/json": schema}}


def _refusal(status: int) -> dict[str, Any]:
    response = _response(_REFUSALS[status], job_models.Error)
    return response | {"headers": {"Retry-After": _RETRY_AFTER}} if status in _PASSING else response


_PASSING = (429, 503)
_RETRY_AFTER = {"description": "Seconds to wait before asking again.", "schema": {"type": "integer"}}
