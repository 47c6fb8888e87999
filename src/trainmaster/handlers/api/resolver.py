"""Powertools' resolver, extended: all errors have the same body, and a wrong method is a 405 instead of a 404."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import WITHOUT_SUBJECT, Action
from trainmaster.domain.errors import Refused
from trainmaster.handlers.api.body import as_json, parse_body
from trainmaster.handlers.api.errors import error_response, no_route
from trainmaster.handlers.api.parameters import wrong_name
from trainmaster.service.change import ApiContext

Middleware = Callable[[APIGatewayRestResolver, NextMiddleware], Response[Any]]


class Resolver(APIGatewayRestResolver):
    """Routes of a REST API whose every answer is JSON.

    Args:
        methods: which methods each rule takes, such as `{"/jobs/<name>": ("GET", "DELETE")}`.
    """

    def __init__(self, methods: Mapping[str, tuple[str, ...]]) -> None:
        # debug=False: POWERTOOLS_DEV would otherwise print events, and with them bodies.
        super().__init__(enable_validation=True, json_body_deserializer=parse_body, debug=False)
        self._methods = [(re.compile(re.sub(r"<\w+>", "[^/]+", rule) + "/*"), takes) for rule, takes in methods.items()]
        self.exception_handler(Exception)(self._error_response)
        self.exception_handler(NotFoundError)(self._no_route)

    def resolve(self, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Return the response to an API Gateway proxy event."""
        try:
            return super().resolve(as_json(event), context)
        except Refused as error:
            return error_response(error, request_id_of(event)).proxy_response()

    def _error_response(self, error: Exception) -> Response[str]:
        return error_response(error, request_id_of(self.current_event.raw_event)).response()

    def _no_route(self, _: NotFoundError) -> Response[str]:
        method, path = self.current_event.http_method.upper(), self.current_event.path
        takes = next((takes for rule, takes in self._methods if rule.fullmatch(path)), ())
        if method in takes:
            # Powertools knows no route for some of the characters that no name has.
            return self._error_response(wrong_name(path.rsplit("/", 1)[-1]))
        return no_route(takes).response()


def permitted(context: Callable[[], ApiContext], action: Action) -> Middleware:
    """Return a middleware that raises `AccessDenied` for callers that may not take the action.

    Use cases decide about actions on a job or share, once they have read it.
    """

    def check(app: APIGatewayRestResolver, next_middleware: NextMiddleware) -> Response[Any]:
        if action in WITHOUT_SUBJECT:
            context().require(caller_of(app.current_event.raw_event), action)
        return next_middleware(app)

    return check


def json_response(view: BaseModel, status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    """Return a view as the response of a route."""
    # Unset are only the members that a reason of this type does not have.
    return Response(status.value, "application/json", view.model_dump_json(by_alias=True, exclude_unset=True))


def request_id_of(event: Mapping[str, Any]) -> str:
    """Return API Gateway's id of the request, which it also gives to the caller as `x-amzn-RequestId`."""
    return str((event.get("requestContext") or {}).get("requestId") or "unknown")


def caller_of(event: Mapping[str, Any]) -> Caller:
    """Return the caller, as IAM authorisation gave it to API Gateway."""
    context = event.get("requestContext") or {}
    identity = context.get("identity") or {}
    return Caller(
        arn=identity.get("userArn") or None,
        source_ip=str(identity.get("sourceIp") or ""),
        user_agent=str(identity.get("userAgent") or ""),
        request_id=str(context.get("requestId") or ""),
    )
