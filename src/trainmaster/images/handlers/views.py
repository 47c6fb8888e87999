"""What an image job says of itself: its endpoint, its load, and how far its regions are.

It must not read anything, decide anything or know HTTP.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from trainmaster.domain.jobs.job import Job
from trainmaster.handlers.models.base import ResponseModel
from trainmaster.images.domain.work import image_work

Kind = Annotated[
    Literal["training", "image"],
    Field(description="training: instances of SageMaker's. image: requests to a model's endpoint."),
]


class Regions(ResponseModel):
    """The parts that an image is processed in."""

    total: int
    done: int
    failed: int


class Image(ResponseModel):
    """What an image job does at an endpoint, and how far it has come."""

    endpoint: Annotated[
        str, Field(description="Its name, behind the account where that is another; of a model behind a URL the URL.")
    ]
    variant: Annotated[
        str | None, Field(description="Chosen once, when the job entered; null of a model behind a URL.")
    ]
    load: Annotated[int, Field(description="Requests that all its regions make at once.")]
    load_left: Annotated[int, Field(description="The same of the regions that are not done.")]
    tiles: Annotated[int, Field(description="Of all regions.")]
    regions: Regions
    expected_end: Annotated[
        datetime | None,
        Field(description="When all is expected to be done, by the regions that are; null while it holds no requests."),
    ]


class Received(ResponseModel):
    """A request for an image job that was taken; its image is looked at next."""

    job_name: str
    state: Annotated[
        str,
        Field(description="`received`: its image is being looked at. Any other: the state of the job that is there."),
    ]
    warnings: Annotated[list[str], Field(description="What of the request is not honoured.")]


def kind_of(job: Job) -> Literal["training", "image"]:
    """What a job asks for: instances, or an endpoint's requests."""
    return "training" if job.work is None else "image"


def image_view(job: Job, expected_end: datetime | None = None) -> Image | None:
    """An image job's work, and when it is expected to be done where anybody can tell; None of any other job."""
    work = image_work(job)
    if work is None:
        return None
    return Image(
        endpoint=work.endpoint,
        variant=work.variant or None,
        load=work.load,
        load_left=work.left,
        tiles=work.tiles,
        regions=Regions(total=work.regions, done=work.done, failed=work.failed),
        expected_end=expected_end,
    )
