"""SNS topics as `ports.Deliverer`: notifications as text for e-mail, and as JSON for chat programs and others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.events.notification import attributes, chat_message, email_text, subject
from trainmaster.ports.events import Detail, deliver_each


class Topic:
    """Publishes a message for each detail (`sns:Publish`); see `ports.Deliverer`.

    Args:
        new_client: makes a boto3 SNS client; called for each delivery.
        topic: ARN of the topic; "" drops what an earlier deployment with a topic has left.
        message: returns the call's further arguments for a detail; may raise `ServiceError`.
    """

    def __init__(
        self, new_client: Callable[[], Any], topic: str, message: Callable[[Detail], Mapping[str, Any]]
    ) -> None:
        self._new_client, self._topic, self._message = new_client, topic, message

    def deliver(self, details: Sequence[Detail]) -> list[bool]:
        """Publish the messages one by one; see `ports.Deliverer.deliver`. Throttling ends the round."""
        if not self._topic:
            return [True] * len(details)
        publish = partial(self._publish, self._new_client())
        return deliver_each(details, publish, f"a message is not published to {self._topic}")

    def _publish(self, client: Any, detail: Detail) -> None:
        message = self._message(detail)
        with translate_errors():
            client.publish(TopicArn=self._topic, **message)


def text_attributes(values: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Return a message's attributes, by which subscriptions filter."""
    return {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}


def notification_message(detail: Detail) -> dict[str, Any]:
    """Return the message of a notification: each protocol gets its own text."""
    texts = {"default": chat_message(detail), "email": email_text(detail), "sms": subject(detail)}
    return {
        "Subject": subject(detail).encode("ascii", "replace").decode(),
        "Message": json.dumps(texts),
        "MessageStructure": "json",
        "MessageAttributes": text_attributes(attributes(detail)),
    }
