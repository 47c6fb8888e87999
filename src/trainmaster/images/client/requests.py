"""Sends requests for image jobs to the queue's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.images.client.types import ReceivedView


def submit_image(api: ApiClient, request: Mapping[str, Any]) -> ReceivedView:
    """Send a request for an image job (ModelRunner's JSON); it becomes a job once the intake has read its image.

    Raises Refused (InvalidRequest, TooLarge), Forbidden (ShareNotAllowed), Conflict (NameTaken, NotOffered).
    """
    return cast("ReceivedView", api.submit_kind("image", request))
