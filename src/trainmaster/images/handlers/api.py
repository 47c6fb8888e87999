"""Requests for image jobs that come through the API: checked here, looked at and entered by the intake function.

It must not read an image: that may take longer than somebody who asks waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from trainmaster.domain.errors import NotOffered
from trainmaster.images.handlers.models import read_request
from trainmaster.images.handlers.views import Received
from trainmaster.images.ports import ImageIntake
from trainmaster.images.service.intake import Asked, receive
from trainmaster.images.service.url_check import Reachable
from trainmaster.ports.store import Store


def received(
    store: Store, queue: ImageIntake | None, reachable: Reachable, body: Mapping[str, Any], caller: str | None
) -> tuple[Received, HTTPStatus]:
    """The answer to a request, and its status. Raises `NotOffered`, and what `receive` raises."""
    queue = offered(queue)
    reading = read_request(body)
    asked = Asked(reading.request, body, caller)
    there = receive(store, queue, reachable, asked, store.settings(catalogue=False).policy)
    state = "received" if there is None else there.state.value
    answer = Received(job_name=reading.request.job_id, state=state, warnings=list(reading.warnings))
    return answer, HTTPStatus.ACCEPTED if there is None else HTTPStatus.OK


def offered(queue: ImageIntake | None) -> ImageIntake:
    """The queue of image requests. Raises `NotOffered` where the deployment has none."""
    if queue is None:
        hint = "Deploy images/template.yaml, and this queue with its JobKindSettings (docs/how-to/image-jobs.md)."
        raise NotOffered("This queue takes no image jobs.", hint=hint)
    return queue
