"""Trouble on the way to a real engine: lost answers or requests, throttling, conflicts, deaths, acts of others.

Hooked into botocore where it sends: it sees them as AWS's, and its own retries are part of what is tested.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

Fault = Callable[[Any, Callable[[], Any]], Any]
"""Given a request and how to send it: returns a response, raises, or returns None to let botocore send it."""


def answer_lost(request: Any, send: Callable[[], Any]) -> Any:
    """The call happened, and its answer is lost."""
    send()
    raise ReadTimeoutError(endpoint_url=request.url)


def request_lost(request: Any, send: Callable[[], Any]) -> Any:
    """It did not happen."""
    raise ConnectionClosedError(endpoint_url=request.url)


def trouble_after(request: Any, send: Callable[[], Any]) -> Any:
    """It happened, and the answer is a 500."""
    send()
    return _refusal(request, 500, {"__type": "com.amazonaws.dynamodb#InternalServerError", "message": "oops"})


def throttled(request: Any, send: Callable[[], Any]) -> Any:
    """It did not happen: ask again later."""
    return _refusal(request, 400, {"__type": "com.amazon.coral#ThrottlingException", "message": "slow down"})


def conflict(request: Any, send: Callable[[], Any]) -> Any:
    """It did not happen: another transaction is at one of the rows. Reads never meet that."""
    operation = request.headers["X-Amz-Target"].decode().partition(".")[2]
    if operation == "TransactWriteItems":
        reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
        body = {"__type": "x#TransactionCanceledException", "Message": "cancelled", "CancellationReasons": reasons}
        return _refusal(request, 400, body)
    if operation in {"PutItem", "UpdateItem", "DeleteItem"}:
        return _refusal(request, 400, {"__type": "x#TransactionConflictException", "message": "conflict"})
    return None


class Killed(BaseException):
    """The process ends here: nothing in it may catch this."""


def killed_before(request: Any, send: Callable[[], Any]) -> Any:
    """The caller dies before it has sent anything."""
    raise Killed


def killed_after(request: Any, send: Callable[[], Any]) -> Any:
    """It happened, and the caller dies before it hears of it."""
    send()
    raise Killed


class Disturbed:
    """Lets requests through, but for those whose number is given: these meet a fault."""

    def __init__(self, client: Any, fault: Fault, numbers: set[int]) -> None:
        self.sent = 0
        self.met = 0
        self._fault = fault
        self._numbers = numbers
        self._session = URLLib3Session()
        client.meta.events.register("before-send.dynamodb.*", self._meet)

    def _meet(self, request: Any, **_: Any) -> Any:
        self.sent += 1
        if self.sent not in self._numbers:
            return None
        self.met += 1
        return self._fault(request, lambda: self._session.send(request))


class Between:
    """A client that lets another writer act before its n-th request, and records its requests."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.sent = 0
        self.acts: dict[int, Callable[[], object]] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        client.meta.events.register("before-send.dynamodb.*", self._before)
        client.meta.events.register("provide-client-params.dynamodb.*", self._note)

    def _before(self, **_: Any) -> None:
        self.sent += 1
        act = self.acts.pop(self.sent, None)
        if act is not None:
            act()

    def _note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.asked.append((model.name, params))


class _Body:
    """The least of urllib3's response that botocore reads."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Any:
        yield self._content


def _refusal(request: Any, status: int, body: dict[str, Any]) -> AWSResponse:
    return AWSResponse(
        request.url, status, {"content-type": "application/x-amz-json-1.0"}, _Body(json.dumps(body).encode())
    )


# Every second request: each call's first one, the next one being the next try. botocore waits half a second for each
# that is throttled, so only a few are.
EVERY_CALL = range(1, 1_000, 2)
A_FEW = range(1, 14, 2)
AT_EVERY_CALL = (
    (answer_lost, EVERY_CALL),
    (request_lost, EVERY_CALL),
    (trouble_after, EVERY_CALL),
    (throttled, A_FEW),
    (conflict, EVERY_CALL),
)
"""Faults that the next try of a call heals, and the numbers of the requests that meet them."""
