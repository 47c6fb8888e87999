"""Conditional requests (RFC 9110, section 13): a caller that names the state that it knows learns if it is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import Response
from pydantic import BaseModel

from trainmaster.handlers.api.resolver import json_response
from trainmaster.service.change import ApiContext

_UNCHANGED = (
    "Nothing has changed since the answer with the `ETag` that `If-None-Match` names; estimates may have moved by the "
    "time that has passed."
)
UNCHANGED = (_UNCHANGED, None)
"""Response of an operation whose answers have an `ETag`."""


def unless_unchanged(context: ApiContext, event: Mapping[str, Any], answer: Callable[[], BaseModel]) -> Response[str]:
    """Return the answer with its `ETag`, or 304 if the caller has it; the caller may read the queue.

    The state is read before the answer, so that the answer is at least as new. Within seconds of a change there is no
    `ETag`, as the answer may not have the change yet.
    """
    changes = context.store.changes()
    if not changes.settled(context.clock.now()):
        return json_response(answer())
    tag = f'W/"{changes.token}"'
    if tag in _asked(event):
        return Response(HTTPStatus.NOT_MODIFIED.value, "application/json", headers={"ETag": tag}, body="")
    response = json_response(answer())
    response.headers["ETag"] = tag
    return response


def _asked(event: Mapping[str, Any]) -> list[str]:
    headers = {name.lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    return [tag.strip() for tag in headers.get("if-none-match", "").split(",")]
