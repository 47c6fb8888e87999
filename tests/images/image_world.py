"""Outside world of the intake of image jobs: images, endpoints, queues, and batches as Lambda delivers them.

It must not hold any rule of the queue.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from api_world import Recorder, StillClock
from image_api_world import SentImages
from image_stores import MemoryImageStore
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.policy.settings import Policy
from trainmaster.images.domain.endpoint import Endpoint, Limits, Variant
from trainmaster.images.domain.tiling import Window
from trainmaster.images.handlers.intake import consume, metrics
from trainmaster.images.local.memory_refusals import MemoryRefusals
from trainmaster.images.ports import Header
from trainmaster.images.service.intake import Intake
from trainmaster.images.service.senders import Senders

BUCKET = "s3://images/"
API_ROLE = "AROAAPIAPIAPIAPIAPIA1"
SENT = 1_795_262_400_000
"""The `NOW` of builders, in SQS's milliseconds."""


def an_image_request(job: str = "harbour-7", **members: Any) -> dict[str, Any]:
    """A request for an image of one region; `members` replace or add members, None takes one away."""
    body = {
        "jobId": job,
        "imageUrls": [f"{BUCKET}small.tif"],
        "imageProcessor": {"name": "ships", "type": "SM_ENDPOINT"},
        "imageProcessorTileSize": 1024,
        "imageProcessorTileOverlap": 50,
        "outputs": [{"type": "S3", "bucket": "results", "prefix": "ships"}],
    } | members
    return {name: value for name, value in body.items() if value is not None}


def a_header(width: int = 2048, height: int = 2048) -> Header:
    """The header of an image, all of which is asked for."""
    return Header(width=width, height=height, part=Window(0, 0, width, height))


@dataclass
class Images:
    """Headers by URL; what is an exception is raised. `meet` makes that many reads wait for each other."""

    headers: dict[str, Header | Exception] = field(default_factory=lambda: {f"{BUCKET}small.tif": a_header()})
    reads: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    submitters: list[str] = field(default_factory=list)
    meet: threading.Barrier | None = None

    def read(self, url: str, *, role: str | None = None, interest: str | None = None, submitter: str = "") -> Header:
        self.reads.append((url, role, interest))
        self.submitters.append(submitter)
        if self.meet is not None:
            self.meet.wait(timeout=20)
        found = self.headers.get(url) or InvalidRequest(f"{url} cannot be read.", field="imageUrls[0]")
        if isinstance(found, Exception):
            raise found
        if interest is not None:
            return replace(found, part=Window(100, 100, found.width - 200, found.height - 200))
        return found


@dataclass
class Endpoints:
    """SageMaker's endpoints by key; what is an exception is raised."""

    known: dict[str, Endpoint | Exception] = field(
        default_factory=lambda: {"ships": an_endpoint("ships", Variant(name="AllTraffic", instances=2))}
    )
    described: list[tuple[str, str | None]] = field(default_factory=list)

    def describe(self, key: str, *, role: str | None = None) -> Endpoint:
        self.described.append((key, role))
        found = self.known.get(key) or InvalidRequest(f"There is no endpoint {key}.")
        if isinstance(found, Exception):
            raise found
        return found


def an_endpoint(key: str, *variants: Variant, **fields: Any) -> Endpoint:
    """An endpoint as AWS describes it; the time of the description is not set yet."""
    return Endpoint(key=key, variants=variants, **fields)


class Context:
    """The Lambda context that the intake looks at; `left` are the milliseconds that it has."""

    function_name = "sagemaker-queue-image-intake"

    def __init__(self, left: int = 60_000) -> None:
        self.left = left

    def get_remaining_time_in_millis(self) -> int:
        return self.left


def a_record(number: int, body: Any, sender: str = "AIDAUPLOADER", **attributes: str) -> dict[str, Any]:
    """An SQS message as Lambda delivers it; a body that is no text is sent as JSON."""
    return {
        "messageId": f"m{number}",
        "receiptHandle": f"r{number}",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"SentTimestamp": str(SENT), "SenderId": sender, "ApproximateReceiveCount": "1"},
        "messageAttributes": {name: {"stringValue": value, "dataType": "String"} for name, value in attributes.items()},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:111122223333:sagemaker-queue-images",
    }


class ImageWorld:
    """An intake, its store and all that it meets."""

    def __init__(self, *, policy: Policy | None = None, limits: Limits | None = None, now: datetime | None = None):
        self.clock = StillClock() if now is None else StillClock(now)
        pools = {"ml.p5.48xlarge": Pool("ml.p5.48xlarge", 2)}
        self.store = MemoryImageStore(default_pools=pools, policy=policy, now=self.clock.now)
        self.images, self.endpoints = Images(), Endpoints()
        self.image_queue, self.publisher = SentImages(), Recorder()
        self.refusals = MemoryRefusals(self.clock)
        self.unreachable: dict[str, Exception] = {}
        self.queue = "sagemaker-queue"
        self.intake = Intake(
            store=self.store,
            headers=self.images,
            endpoints=self.endpoints,
            known=self.store,
            clock=self.clock,
            limits=limits or Limits(),
            reachable=self.reach,
            account="111122223333",
            vouching=API_ROLE,
            senders=Senders(others=True),
        )

    def reach(self, url: str) -> None:
        """A model's URL is called by workers, unless it is said to be `unreachable`."""
        if url in self.unreachable:
            raise self.unreachable[url]

    def deliver(self, *bodies: Any, left: int = 60_000) -> list[str]:
        """Deliver these as one batch; identifiers of the messages that come again."""
        records = [
            body if isinstance(body, dict) and "messageId" in body else a_record(number, body)
            for number, body in enumerate(bodies)
        ]
        return self.consume({"Records": records}, left=left)

    def consume(self, event: Mapping[str, Any], *, left: int = 60_000) -> list[str]:
        """Deliver an event as it is."""
        try:
            done = consume(self, dict(event), Context(left))
        finally:
            metrics.clear_metrics()
        return [failure["itemIdentifier"] for failure in done["batchItemFailures"]]

    def names(self) -> Sequence[str]:
        """The jobs that wait."""
        return [job.name for job in self.store.read_snapshot().waiting]

    def reasons(self) -> list[tuple[str, str | None]]:
        """Of what was set aside: why, and the field."""
        return [(reason, attributes.get("Field")) for _, reason, attributes in self.image_queue.aside]
