"""Sends submissions of the intake to the manager; implements `images.ports.Submissions`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.adapters.sqs import GROUP, MAX_MESSAGE_SIZE, NOT_SQS
from trainmaster.domain.errors import TooLarge

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsSubmissions:
    """Sends to the FIFO queue of the image functions' reports.

    Args:
        client: a boto3 SQS client.
        queue_url: the queue that the manager consumes.
    """

    def __init__(self, client: SQSClient, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, submission: Mapping[str, Any], identifier: str) -> None:
        """Send a submission; see `images.ports.Submissions`."""
        message = {"kind": "image", "submission": submission}
        text = NOT_SQS.sub(_escaped, json.dumps(message, separators=(",", ":"), ensure_ascii=False))
        if len(text.encode()) > MAX_MESSAGE_SIZE:
            hint = "Most of it is usually in featureProperties or regionOfInterest: shorten those."
            raise TooLarge(f"The request and what was found about it exceed {MAX_MESSAGE_SIZE} bytes.", hint=hint)
        with translate_errors():
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageBody=text,
                MessageGroupId=GROUP,
                MessageDeduplicationId=f"submission-{hashlib.sha256(identifier.encode()).hexdigest()}",
            )


def _escaped(character: re.Match[str]) -> str:
    """Return a character as JSON escapes it; it occurs only inside strings, so the meaning does not change."""
    return json.dumps(character.group())[1:-1]
