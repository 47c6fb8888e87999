"""Notifications on an SNS topic, as `ports.Deliverer`: text for e-mail, JSON for chat programs and others."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.errors import ServiceError, Throttled
from trainmaster.domain.events.notification import attributes, chat_message, email_text, subject
from trainmaster.ports.events import Detail

log = logging.getLogger(__name__)


class NotificationTopic:
    """Publishes notifications (`sns:Publish`); see `ports.Deliverer`.

    Args:
        new_client: makes a boto3 SNS client; called for each delivery.
        topic: ARN of the topic; "" drops what an earlier deployment with a topic has left.
    """

    def __init__(self, new_client: Callable[[], Any], topic: str) -> None:
        self._new_client, self._topic = new_client, topic

    def deliver(self, details: Sequence[Detail]) -> list[bool]:
        """Publish the notifications one by one; see `ports.Deliverer.deliver`. Throttling ends the round."""
        if not self._topic:
            return [True] * len(details)
        client, accepted = self._new_client(), list[bool]()
        for detail in details:
            try:
                with translate_errors():
                    client.publish(TopicArn=self._topic, **_message(detail))
            except Throttled:
                break
            except ServiceError as error:
                log.warning("a notification is not published", extra={"cause": str(error)})
                accepted.append(False)
            else:
                accepted.append(True)
        return accepted + [False] * (len(details) - len(accepted))


def _message(detail: Detail) -> dict[str, Any]:
    """Return the arguments of the call: each protocol gets its own text, and subscriptions filter by the attributes."""
    texts = {"default": chat_message(detail), "email": email_text(detail), "sms": subject(detail)}
    return {
        "Subject": subject(detail).encode("ascii", "replace").decode(),
        "Message": json.dumps(texts),
        "MessageStructure": "json",
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes(detail).items()
        },
    }
