"""Status messages of image jobs on an SNS topic, in the form of ModelRunner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.adapters.sns import Topic, text_attributes
from trainmaster.domain.errors import JobNotFound, UnreadableRow
from trainmaster.images.service.status import status_message
from trainmaster.ports.events import Detail
from trainmaster.ports.store import Store


def status_topic(new_client: Callable[[], Any], topic: str, store: Callable[[], Store]) -> Topic:
    """Return the topic of status messages.

    Args:
        new_client: makes a boto3 SNS client; called for each delivery.
        topic: ARN of the topic; "" drops what an earlier deployment with a topic has left.
        store: returns the store, which has the jobs and their requests.
    """

    def message(detail: Detail) -> dict[str, Any]:
        name = detail["jobName"]
        text, attributes = status_message(detail, store().find(name), _request_of(store(), name))
        return {"Message": text, "MessageAttributes": text_attributes(attributes)}

    return Topic(new_client, topic, message)


def _request_of(store: Store, name: str) -> Mapping[str, Any]:
    """Return the request of a job; empty if it was purged or cannot be read."""
    try:
        return store.request_of(name)
    except (JobNotFound, UnreadableRow):
        return {}
