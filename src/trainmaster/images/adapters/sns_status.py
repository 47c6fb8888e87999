"""Status messages of image jobs on an SNS topic, as `ports.events.Deliverer`, in the form of ModelRunner."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.errors import JobNotFound, ServiceError, Throttled, UnreadableRow
from trainmaster.images.service.status import status_message
from trainmaster.ports.events import Detail
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)


class StatusTopic:
    """Publishes status messages (`sns:Publish`).

    Args:
        new_client: makes a boto3 SNS client; called for each delivery.
        topic: ARN of the topic; "" drops what an earlier deployment with a topic has left.
        store: returns the store, which has the jobs and their requests.
    """

    def __init__(self, new_client: Callable[[], Any], topic: str, store: Callable[[], Store]) -> None:
        self._new_client, self._topic, self._store = new_client, topic, store

    def deliver(self, details: Sequence[Detail]) -> list[bool]:
        """Publish the messages one by one; see `ports.Deliverer.deliver`. Throttling ends the round."""
        if not self._topic:
            return [True] * len(details)
        client, accepted = self._new_client(), list[bool]()
        for detail in details:
            try:
                self._publish(client, detail)
            except Throttled:
                break
            except ServiceError as error:
                extra = {"job": detail["jobName"], "cause": str(error)}
                log.warning("a status message is not published; the next tick tries again", extra=extra)
                accepted.append(False)
            else:
                accepted.append(True)
        return accepted + [False] * (len(details) - len(accepted))

    def _publish(self, client: Any, detail: Detail) -> None:
        store, name = self._store(), detail["jobName"]
        text, attributes = status_message(detail, store.find(name), _request_of(store, name))
        typed = {key: {"DataType": "String", "StringValue": value} for key, value in attributes.items()}
        with translate_errors():
            client.publish(TopicArn=self._topic, Message=text, MessageAttributes=typed)


def _request_of(store: Store, name: str) -> Mapping[str, Any]:
    """Return the request of a job; empty if it was purged or cannot be read."""
    try:
        return store.request_of(name)
    except (JobNotFound, UnreadableRow):
        return {}
