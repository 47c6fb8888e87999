"""The wake queue and its dead-letter queue on SQS, as `ports.Publisher`.

Only sends; Lambda's event source receives.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.text import MAX_REASON_LENGTH

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

GROUP = "manager"
"""One message group, so that passes are serial."""
MAX_MESSAGE_SIZE = 262_144
"""Bytes of body and attributes together that every queue accepts. Queues created since August 2025 accept 1 MiB, older
ones this (CreateQueue, `MaximumMessageSize`)."""
REASON = "reason"
_ATTRIBUTE_OVERHEAD = len(REASON) + len("String")
NOT_SQS = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that SQS rejects (SendMessage, `MessageBody`)."""


class SqsPublisher:
    """Sends to two FIFO queues.

    Args:
        client: a boto3 SQS client; it should retry in standard mode and time out early, because an API caller waits.
        wake_queue_url: the manager's queue.
        dead_letter_queue_url: the queue for messages that no handler can process.
    """

    def __init__(self, client: SQSClient, wake_queue_url: str, dead_letter_queue_url: str) -> None:
        self._client = client
        self._wake_queue_url = wake_queue_url
        self._dead_letter_queue_url = dead_letter_queue_url

    def wake(self, follows: int) -> None:
        """Request a pass that begins after pass `follows`.

        For five minutes SQS drops a message with the same deduplication id, even after the first one was received. That
        is safe: all callers read the same pass number after their own commit, and the pass that one of them triggers
        has a higher number. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        with translate_errors():
            self._client.send_message(
                QueueUrl=self._wake_queue_url,
                MessageBody=json.dumps({"kind": "wake", "follows": follows}, separators=(",", ":")),
                MessageGroupId=GROUP,
                MessageDeduplicationId=f"wake-{follows}",
            )

    def set_aside(self, message: str, reason: str) -> None:
        """Send a message unchanged to the dead-letter queue, with the reason as its attribute `reason`.

        SQS drops a copy of the same message within five minutes. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        with translate_errors():
            self._client.send_message(
                QueueUrl=self._dead_letter_queue_url,
                MessageBody=message,
                MessageGroupId=GROUP,
                MessageDeduplicationId=hashlib.sha256(message.encode(errors="replace")).hexdigest(),
                MessageAttributes=_attributes(message, reason),
            )


def _attributes(message: str, reason: str) -> dict[str, Any]:
    """Return the reason, cut to the room beside the message; empty if there is no room."""
    room = MAX_MESSAGE_SIZE - len(message.encode(errors="replace")) - _ATTRIBUTE_OVERHEAD
    clean = NOT_SQS.sub("?", reason) or "unknown"
    cut = clean.encode()[: min(MAX_REASON_LENGTH, max(0, room))].decode(errors="ignore")
    return {REASON: {"DataType": "String", "StringValue": cut}} if cut else {}
