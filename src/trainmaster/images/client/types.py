"""Types of the API's responses, member for member as in JSON. Times are ISO 8601 in UTC.

Written by scripts/client_types.py from docs/reference/openapi.json; do not edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    pass


class ImageDetailsView(TypedDict):
    """An image job's endpoint, load and progress: the member `details` of a job of kind `image`."""

    endpoint: str
    variant: str | None
    load: int
    loadLeft: int
    tiles: int
    regions: RegionsView
    expectedEnd: str | None


class ReceivedView(TypedDict):
    """An accepted request for an image job, whose image is read next."""

    jobName: str
    state: str
    warnings: list[str]


class RegionsView(TypedDict):
    """The parts that an image is processed in."""

    total: int
    done: int
    failed: int
