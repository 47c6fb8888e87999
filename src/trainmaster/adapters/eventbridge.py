"""Resize requests as events on the account's default bus, as `ports.ResizeRequester`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.errors import NotPermitted, ServiceError, Throttled, Unavailable

SOURCE = "trainmaster"
DETAIL_TYPE = "Trainmaster Job Resize"
_KINDS: Mapping[str, type[ServiceError]] = {
    "ThrottlingException": Throttled,
    "AccessDeniedException": NotPermitted,
    "NotAuthorizedForSourceException": NotPermitted,
}
"""By an entry's `ErrorCode` (EventBridge API, PutEventsResultEntry); any other code counts as `Unavailable`."""


class EventResizeRequester:
    """Puts events (`events:PutEvents`).

    Args:
        new_client: makes a boto3 EventBridge client; called for each request.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def request_resize(self, target: str, question: Mapping[str, Any]) -> None:  # noqa: ARG002 -- rules match, not names
        """Put the request as the detail of an event; see `ports.ResizeRequester.request_resize`."""
        client = self._new_client()
        detail = json.dumps(question, separators=(",", ":"))
        with translate_errors():
            answer = client.put_events(Entries=[{"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail}])
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode", "")
            raise _KINDS.get(code, Unavailable)(f"EventBridge rejected the event: {code}")
