"""Events that ask whoever hears them to change the size of a job, as `ports.ResizeRequester`.

They go to the default event bus of the account. It must not wait for an answer: an event has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.adapters.aws_errors import translated
from trainmaster.domain.errors import NotPermitted, ServiceTrouble, Throttled, Unavailable

SOURCE = "trainmaster"
DETAIL_TYPE = "Trainmaster Job Resize"
_KINDS: Mapping[str, type[ServiceTrouble]] = {
    "ThrottlingException": Throttled,
    "AccessDeniedException": NotPermitted,
    "NotAuthorizedForSourceException": NotPermitted,
}
"""What an entry's `ErrorCode` means (EventBridge API, PutEventsResultEntry); any other may pass a little later."""


class EventResizeRequester:
    """Puts events (`events:PutEvents`).

    Args:
        new_client: makes a boto3 EventBridge client; called when somebody is first asked.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def request_resize(self, target: str, question: Mapping[str, Any]) -> None:  # noqa: ARG002 -- whoever hears it
        """Put the question as the detail of an event; see `ports.ResizeRequester.ask`."""
        client = self._new_client()
        detail = json.dumps(question, separators=(",", ":"))
        with translated():
            answer = client.put_events(Entries=[{"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail}])
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode", "")
            raise _KINDS.get(code, Unavailable)(f"the event was not taken: {code}")
