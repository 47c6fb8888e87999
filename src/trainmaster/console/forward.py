"""Forwards a request of the page to the queue's API, signed with the user's own credentials."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotFound, Unreachable
from trainmaster.console.loopback import Refusal, Request, Response, json_response
from trainmaster.console.routes import Read, path_of

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient

_STATUSES: dict[type[ApiError], HTTPStatus] = {
    Forbidden: HTTPStatus.FORBIDDEN,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    Unreachable: HTTPStatus.BAD_GATEWAY,
}


_MAX_KNOWN: Final = 24
"""Answers that are kept: those of a few pages."""


class Forwarder:
    """Sends requests through the API client. The address is the client's: no request can name another."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._known: dict[Read, tuple[str, Any]] = {}

    def read(self, read: Read) -> Any:
        """Return the answer to a read: the same object as before if the API says that it still holds. Raises ApiError.

        Reads of several answers may go on at once.
        """
        tag, known = self._known.pop(read, (None, None))
        answer, new_tag = self._api.read_if_changed(path_of(read.segments), tag, query=dict(read.query))
        value = known if answer is None else answer
        if new_tag is not None:
            self._known[read] = (new_tag, value)
            for forgotten in list(self._known)[:-_MAX_KNOWN]:
                self._known.pop(forgotten, None)
        return value

    def send(self, request: Request, segments: tuple[str, ...]) -> Response:
        """Return the API's answer to a request, or its error with the status that the API gave it."""
        body = json_object(request.body)
        try:
            answer = self._api.call(request.method, path_of(segments), query=dict(request.query), body=body)
        except ApiError as error:
            return json_response(_status(error), {"error": error_body(error)})
        return json_response(HTTPStatus.OK, answer)


def error_body(error: ApiError) -> dict[str, Any]:
    """Return an error in the API's own shape."""
    return {"type": error.type, "message": error.message, "field": error.field, "hint": error.hint}


def _status(error: ApiError) -> int:
    if error.status >= HTTPStatus.BAD_REQUEST:
        return error.status
    kinds = (status for kind, status in _STATUSES.items() if isinstance(error, kind))
    return next(kinds, HTTPStatus.BAD_GATEWAY)


def json_object(body: bytes) -> Any:
    """Return the object in a body; None if it is empty. Raises Refusal."""
    if not body:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(HTTPStatus.BAD_REQUEST, "The body is not JSON.") from error
    if not isinstance(found, dict):
        raise Refusal(HTTPStatus.BAD_REQUEST, "The body is no JSON object.")
    return found
