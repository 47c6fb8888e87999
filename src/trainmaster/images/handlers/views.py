"""The shapes of the API's answers about image jobs."""

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
