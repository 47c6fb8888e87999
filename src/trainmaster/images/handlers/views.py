"""Builds the API's responses about image jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from trainmaster.handlers.models.base import ResponseModel


class Regions(ResponseModel):
    """The parts that an image is processed in."""

    total: int
    done: int
    failed: int


class ImageDetails(ResponseModel):
    """An image job's endpoint, load and progress: the member `details` of a job of kind `image`."""

    endpoint: Annotated[
        str,
        Field(
            description=(
                "Name of the endpoint, after the account if it is in another one; for a model behind a URL, the URL."
            )
        ),
    ]
    variant: Annotated[
        str | None, Field(description="Chosen once, when the job entered; null for a model behind a URL.")
    ]
    load: Annotated[int, Field(description="Concurrent requests of all its regions.")]
    load_left: Annotated[int, Field(description="The same for the regions that are not done.")]
    tiles: Annotated[int, Field(description="Tiles of all regions.")]
    regions: Regions
    expected_end: Annotated[
        datetime | None,
        Field(description="Expected end, estimated from the regions done so far; null while it holds no requests."),
    ]


class Received(ResponseModel):
    """An accepted request for an image job, whose image is read next."""

    job_name: str
    state: Annotated[
        str,
        Field(description="`received`: its image is being read. Any other value is the state of the existing job."),
    ]
    warnings: Annotated[list[str], Field(description="Members of the request that are not honored.")]
