"""The API Lambda: resolves requests to `routes`.

The log never contains the contents of a request, since hyperparameters and environment may be secrets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from inspect import getdoc
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from trainmaster import bootstrap
from trainmaster.domain.release import VERSION, VERSION_HEADER, client_problem
from trainmaster.handlers.api.errors import client_too_old, unexpected
from trainmaster.handlers.api.kinds import api_kinds
from trainmaster.handlers.api.operations import Operation, operations_of
from trainmaster.handlers.api.parameters import known_parameters_only
from trainmaster.handlers.api.resolver import Resolver, caller_of, permitted, request_id_of
from trainmaster.handlers.api.routes import Parts, Routes

OPERATIONS = operations_of(Routes)
"""Every operation of the API but those of other kinds of jobs."""

# The package's name, so that the lines of all its modules come out structured and with the correlation id.
logger = Logger(service="trainmaster")
metrics = Metrics(namespace="Trainmaster", service="api")

# At DEBUG they write down what they are given: requests with their hyperparameters and environment.
for _talkative in ("aws_lambda_powertools", "botocore", "urllib3"):
    logging.getLogger(_talkative).setLevel(logging.INFO)


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_REST, log_event=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Lambda entry point: a REST proxy event in, its answer out."""
    return answer(_app_of_this_environment, event, context)


def answer(app: Callable[[], Resolver], event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the app's response, also after an unexpected error, and log the request."""
    try:
        made = _too_old(event) or app().resolve(event, context)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the caller gets the one shape
        made = unexpected(error, request_id_of(event)).proxy_response()
    made.setdefault("multiValueHeaders", {})[VERSION_HEADER] = [VERSION]
    _note(event, made["statusCode"])
    return made


def _too_old(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer to a client that is too old for this service; None for any other caller."""
    headers = {name.lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    problem = client_problem(headers.get(VERSION_HEADER, ""), VERSION)
    return None if problem is None else client_too_old(problem).proxy_response()


@lru_cache(maxsize=1)
def _app_of_this_environment() -> Resolver:
    return build_app(bootstrap.application())


def build_app(application: Parts) -> Resolver:
    """Return the API over an application's parts: `resolve(event, context)` answers a REST proxy event."""
    kinds = api_kinds(application, lambda: caller_of(app.current_event.raw_event))
    operations = [*OPERATIONS.values(), *(found for kind in kinds for found in kind.operations.values())]
    app = Resolver([operation for _, operation in operations], lambda: application.api_context)
    _add(app, application, Routes(app, application, kinds), OPERATIONS)
    for kind in kinds:
        _add(app, application, kind, kind.operations, documented=kind.document is not None)
    return app


def _add(
    app: Resolver,
    application: Parts,
    routes: object,
    operations: Mapping[str, tuple[str, Operation]],
    *,
    documented: bool = True,
) -> None:
    """Add the routes that these methods of an object are."""
    for name, (method, operation) in operations.items():
        route = getattr(routes, method)
        app.route(
            operation.rule,
            operation.method,
            summary=operation.summary,
            description=getdoc(route),
            responses=operation.for_powertools(),
            operation_id=name,
            include_in_schema=documented,
            middlewares=[known_parameters_only, permitted(lambda: application.api_context, operation.action)],
        )(route)


def _note(event: dict[str, Any], status: int) -> None:
    """Log one line about the request, without its contents, and emit metrics."""
    method, path = event.get("httpMethod"), event.get("path")
    logger.info("answered", extra={"method": method, "path": path, "status": status, "caller": caller_of(event).arn})
    if status == HTTPStatus.ACCEPTED and path == "/add-job":
        metrics.add_metric(name="Submitted", unit=MetricUnit.Count, value=1)
        metrics.flush_metrics()
