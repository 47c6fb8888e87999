"""The queue of image requests and its dead-letter queue on SQS, as `ports.image.ImageIntake`.

It must not receive anything: Lambda's event source does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.adapters.sqs import LARGEST_MESSAGE, NOT_SQS
from trainmaster.domain.errors import TooLarge
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.ports import CALLER, REASON

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

LARGEST_REQUEST = 253_952
"""Bytes of body and attributes of a request, which the template sets for its queue: 8 KiB less than the dead-letter
queue's, so that there is always room for the reason."""
_TYPE = "String"


class SqsImages:
    """Sends to two standard queues.

    Args:
        client: a boto3 SQS client.
        queue_url: where requests wait to be read.
        dead_letter_queue_url: where those go that cannot be, and those of jobs that have failed.
    """

    def __init__(self, client: SQSClient, queue_url: str, dead_letter_queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url
        self._dead_letter_queue_url = dead_letter_queue_url

    def send(self, body: str, *, caller: str | None = None) -> None:
        """Have a request taken in; see `ports.image.ImageIntake`."""
        attributes = {} if caller is None else _attributes({CALLER: caller}, LARGEST_REQUEST)
        size = len(body.encode(errors="replace")) + _size(attributes)
        if size > LARGEST_REQUEST:
            hint = "Most of it is usually in featureProperties or regionOfInterest: shorten those."
            raise TooLarge(f"The request has {size} bytes; its queue takes {LARGEST_REQUEST}.", hint=hint)
        with translate_errors():
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=body, MessageAttributes=attributes)

    def set_aside(self, body: str, reason: str, *, attributes: Mapping[str, str] | None = None) -> None:
        r"""Put a request where people find it; see `ports.image.ImageIntake`.

        The reason is cut to what there is room for beside the body. A body with characters that SQS does not take (they
        come with escapes, such as `\ud800`) is written with escapes again.
        """
        body = NOT_SQS.sub(_escaped, body)
        room = LARGEST_MESSAGE - len(body.encode(errors="replace"))
        told = _attributes({REASON: reason or "unknown", **(attributes or {})}, room)
        with translate_errors():
            self._client.send_message(QueueUrl=self._dead_letter_queue_url, MessageBody=body, MessageAttributes=told)


def _escaped(character: re.Match[str]) -> str:
    """As JSON has it; outside of its strings such a character cannot stand, so the text means what it did."""
    return json.dumps(character.group())[1:-1]


def _attributes(texts: Mapping[str, str], room: int) -> dict[str, Any]:
    """Message attributes as far as there is room for them, each cut and without what SQS does not take."""
    told: dict[str, Any] = {}
    for name, text in texts.items():
        left = room - _size(told) - len(name) - len(_TYPE)
        cut = NOT_SQS.sub("?", text).encode()[: max(0, min(MAX_REASON_LENGTH, left))].decode(errors="ignore")
        if cut:
            told[name] = {"DataType": _TYPE, "StringValue": cut}
    return told


def _size(attributes: Mapping[str, Any]) -> int:
    return sum(len(name) + len(_TYPE) + len(each["StringValue"].encode()) for name, each in attributes.items())
