"""The queue of image requests and its dead-letter queue on SQS; implements `images.ports.ImageIntake`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.adapters.sqs import MAX_MESSAGE_SIZE, NOT_SQS
from trainmaster.domain.errors import TooLarge
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.ports import CALLER, REASON

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MAX_REQUEST_SIZE = 253_952
"""Maximum bytes of a request's body and attributes, as the template sets it for the queue: 8 KiB less than the
dead-letter queue's, so that the reason always fits."""
_TYPE = "String"


class SqsImages:
    """Sends to two standard queues.

    Args:
        client: a boto3 SQS client.
        queue_url: the queue of requests.
        dead_letter_queue_url: the queue of rejected requests, and of those whose jobs failed.
    """

    def __init__(self, client: SQSClient, queue_url: str, dead_letter_queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url
        self._dead_letter_queue_url = dead_letter_queue_url

    def send(self, body: str, *, caller: str | None = None) -> None:
        """Send a request to the intake; see `images.ports.ImageIntake`."""
        attributes = {} if caller is None else _attributes({CALLER: caller}, MAX_REQUEST_SIZE)
        size = len(body.encode(errors="replace")) + _size(attributes)
        if size > MAX_REQUEST_SIZE:
            hint = "Most of it is usually in featureProperties or regionOfInterest: shorten those."
            raise TooLarge(f"The request has {size} bytes; its queue accepts {MAX_REQUEST_SIZE}.", hint=hint)
        with translate_errors():
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=body, MessageAttributes=attributes)

    def set_aside(self, body: str, reason: str, *, attributes: Mapping[str, str] | None = None) -> None:
        r"""Send a request to the dead-letter queue; see `images.ports.ImageIntake`.

        The reason is shortened to the space beside the body. Characters that SQS rejects (they arrive as escapes such
        as `\ud800`) are escaped again.
        """
        body = NOT_SQS.sub(_escaped, body)
        room = MAX_MESSAGE_SIZE - len(body.encode(errors="replace"))
        told = _attributes({REASON: reason or "unknown", **(attributes or {})}, room)
        with translate_errors():
            self._client.send_message(QueueUrl=self._dead_letter_queue_url, MessageBody=body, MessageAttributes=told)


def _escaped(character: re.Match[str]) -> str:
    """Return a character as JSON escapes it; it occurs only inside strings, so the meaning does not change."""
    return json.dumps(character.group())[1:-1]


def _attributes(texts: Mapping[str, str], room: int) -> dict[str, Any]:
    """Return the message attributes that fit, each shortened and without characters that SQS rejects."""
    told: dict[str, Any] = {}
    for name, text in texts.items():
        left = room - _size(told) - len(name) - len(_TYPE)
        cut = NOT_SQS.sub("?", text).encode()[: max(0, min(MAX_REASON_LENGTH, left))].decode(errors="ignore")
        if cut:
            told[name] = {"DataType": _TYPE, "StringValue": cut}
    return told


def _size(attributes: Mapping[str, Any]) -> int:
    return sum(len(name) + len(_TYPE) + len(each["StringValue"].encode()) for name, each in attributes.items())
