"""Powertools' resolver, extended: errors have one form, a wrong method is a 405, and a 403 precedes a 400."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import WITHOUT_SUBJECT, Action
from trainmaster.domain.errors import JobNotFound, Refused, TrainmasterError
from trainmaster.handlers.api.body import as_json, parse_body
from trainmaster.handlers.api.errors import error_response, no_route
from trainmaster.handlers.api.operations import Operation
from trainmaster.handlers.api.parameters import is_name, wrong_name
from trainmaster.service.change import ApiContext, find_job

_FORM_ERRORS = (Refused, RequestValidationError, RequestUnsupportedContentType)
Middleware = Callable[[APIGatewayRestResolver, NextMiddleware], Response[Any]]

_DECIDED = "decided"
"""Member of Powertools' context: the form of the request is right, and the route decides about the caller."""


class Resolver(APIGatewayRestResolver):
    """Routes of a REST API whose every answer is JSON.

    Powertools reads a request before it calls a middleware. So errors in its form are held back from callers that may
    not take the action at all, which learn nothing from them.

    Args:
        operations: the operations.
        context: returns the dependencies of the use cases.
    """

    def __init__(self, operations: Sequence[Operation], context: Callable[[], ApiContext]) -> None:
        # debug=False: POWERTOOLS_DEV would otherwise print events, and with them bodies.
        super().__init__(enable_validation=True, json_body_deserializer=parse_body, debug=False)
        self._context = context
        self._operations = [(_pattern(each.rule), each) for each in operations]
        self.exception_handler(Exception)(self._error_response)
        self.exception_handler(NotFoundError)(self._no_route)

    def resolve(self, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Return the response to an API Gateway proxy event."""
        try:
            return super().resolve(as_json(event), context)
        except Refused as error:
            return error_response(self._denial(event) or error, request_id_of(event)).proxy_response()

    def _error_response(self, error: Exception) -> Response[str]:
        event = self.current_event.raw_event
        if isinstance(error, _FORM_ERRORS) and not self.context.get(_DECIDED):
            error = self._denial(event) or error
        return error_response(error, request_id_of(event)).response()

    def _denial(self, event: Mapping[str, Any]) -> Exception | None:
        """Return why the caller may not take the action of a request that is wrong in its form; None if they may."""
        method, path = str(event.get("httpMethod")).upper(), str(event.get("path"))
        for rule, operation in self._operations:
            if operation.method == method and (found := rule.fullmatch(path)):
                name = unquote(found.groupdict().get("name", ""))
                return _denial_of(self._context(), caller_of(event), operation.action, name)
        return None

    def _no_route(self, _: NotFoundError) -> Response[str]:
        method, path = self.current_event.http_method.upper(), self.current_event.path
        takes = tuple(operation.method for rule, operation in self._operations if rule.fullmatch(path))
        if method in takes:
            # Powertools knows no route for some of the characters that no name has.
            return self._error_response(wrong_name(path.rsplit("/", 1)[-1]))
        return no_route(takes).response()


def permitted(context: Callable[[], ApiContext], action: Action) -> Middleware:
    """Return the last middleware before a route, which raises `AccessDenied` for callers that may not take the action.

    Use cases decide about actions on a job or share, once they have read it.
    """

    def check(app: APIGatewayRestResolver, next_middleware: NextMiddleware) -> Response[Any]:
        app.context[_DECIDED] = True
        if action in WITHOUT_SUBJECT:
            context().require(caller_of(app.current_event.raw_event), action)
        return next_middleware(app)

    return check


def _pattern(rule: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", rule) + "/*")


def _denial_of(context: ApiContext, caller: Caller, action: Action, name: str) -> Exception | None:
    """Return the error for a caller that may not take an action, on the job of this name if it concerns one.

    Nothing is decided about submissions: the request names the share, on which the roles depend.
    """
    try:
        if action in WITHOUT_SUBJECT:
            context.require(caller, action)
        elif action is not Action.SUBMIT and is_name(name):
            find_job(context, caller, action, name)
        elif action is not Action.SUBMIT:
            context.require(caller, Action.READ)
    except JobNotFound:
        return None
    except TrainmasterError as error:
        return error
    return None


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
