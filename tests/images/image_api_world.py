"""The API of a deployment with image jobs over the in-memory stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from api_world import ApiWorld
from image_stores import MemoryImageStore
from trainmaster.images.kind import image_parts
from trainmaster.images.local.memory_refusals import MemoryRefusals
from trainmaster.local.memory.store import MemoryStore

SQS = "https://sqs.us-east-1.amazonaws.com/111122223333/"
HOSTS = (
    "8.8.8.8,[2a00:1450:4001::1],no.such.host.invalid,10.1.2.3,169.254.169.254,127.0.0.1:9001,2130706433,[::1],"
    "[fe80::1],[fd00:ec2::254],localhost,a.localhost,models.example"
)
IMAGES = {"image": {"IMAGE_QUEUE_URL": f"{SQS}images", "MODEL_HOSTS": HOSTS}}


class SentImages:
    """An image queue that keeps what it was given."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str | None]] = []
        self.aside: list[tuple[str, str, Mapping[str, str]]] = []
        self.failing: Exception | None = None

    def send(self, body: str, *, caller: str | None = None) -> None:
        self.sent.append((body, caller))

    def set_aside(self, body: str, reason: str, *, attributes: Mapping[str, str] | None = None) -> None:
        if self.failing is not None:
            raise self.failing
        self.aside.append((body, reason, dict(attributes or {})))


@dataclass
class ImageApiWorld(ApiWorld):
    """An API with image jobs, its stores and its clock."""

    stores: ClassVar[type[MemoryStore]] = MemoryImageStore
    resources: str = ""

    def __post_init__(self) -> None:
        images = {"image": IMAGES["image"] | {"IMAGE_ACCESS": self.resources}}
        self.settings = {**self.settings, "job_kinds": images}
        super().__post_init__()
        parts = image_parts(self.application)
        self.image_queue, self.refusals = SentImages(), MemoryRefusals(self.clock)
        parts.__dict__ |= {
            "known_endpoints": self.memory,
            "image_queue": self.image_queue,
            "refusals": self.refusals,
        }
