"""Words of image jobs in the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobView
    from trainmaster.images.client.types import ImageDetailsView

STATES: Mapping[str, str] = {
    "preempted": "Preempted, waiting in the queue to continue with the remaining regions",
    "starting": "Starting: the queue dispatches its regions",
    "preempting": "Being preempted; it will continue with the remaining regions",
}


def progress(job: JobView) -> str:
    """Return the progress of the job's regions: `12 of 30 regions done, 1 failed`."""
    regions = details_of(job)["regions"]
    failed = f", {regions['failed']} failed" if regions["failed"] else ""
    return f"{regions['done']} of {regions['total']} regions done{failed}"


def details_of(job: JobView) -> ImageDetailsView:
    """Return the details of an image job."""
    return cast("ImageDetailsView", job["details"])
