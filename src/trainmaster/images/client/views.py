"""The shapes of the API's answers about image jobs, member for member as they travel in JSON.

This module holds types only, and must not do anything.
"""

from __future__ import annotations

from typing import TypedDict


class RegionsView(TypedDict):
    """The parts that an image is processed in."""

    total: int
    done: int
    failed: int


class ImageView(TypedDict):
    """What an image job does at an endpoint; `variant` is null of a model behind a URL.

    `expectedEnd` is null while it holds no requests.
    """

    endpoint: str
    variant: str | None
    load: int
    loadLeft: int
    tiles: int
    regions: RegionsView
    expectedEnd: str | None


class Received(TypedDict):
    """The answer to an image request: `state` is `received`, or the state of the job that it had made before."""

    jobName: str
    state: str
    warnings: list[str]
