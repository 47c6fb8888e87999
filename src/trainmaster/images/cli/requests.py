"""Image jobs on the command line: their requests, their endpoint, and how far their regions are.

It must not ask the API or decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from trainmaster.cli.output.times import format_moment
from trainmaster.client.api.errors import Refused
from trainmaster.client.views.wording import regions_of
from trainmaster.domain.requests.tag_names import OPTION_PREFIX
from trainmaster.images.domain.request import SIZE_FIELD

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.views.types import JobDetailView, JobView, ReceivedView

_OURS = "trainmaster"


def with_wishes(request: Mapping[str, Any], priority: int | None, options: Mapping[str, str]) -> dict[str, Any]:
    """The request with what the command line asks for, which replaces what it has itself. Raises Refused."""
    new: dict[str, Any] = {name.removeprefix(OPTION_PREFIX): value for name, value in options.items()}
    if priority is not None:
        new["priority"] = priority
    if not new:
        return dict(request)
    own = request.get(_OURS) or {}
    if not isinstance(own, dict):
        hint = 'Write it so: {"priority": 5, "share": "vision"}.'
        raise Refused("The request's wishes are no object.", type="InvalidRequest", field=_OURS, hint=hint)
    return {**request, _OURS: {**own, **new}}


def with_size(request: Mapping[str, Any], size: str | None) -> dict[str, Any]:
    """The request with the size of its image, `20480x20480`, as a plan takes it. Raises typer.BadParameter."""
    if size is None:
        return dict(request)
    width, _, height = size.partition("x")
    if not all(each.isascii() and each.isdecimal() for each in (width, height)):
        raise typer.BadParameter("write WIDTHxHEIGHT in pixels, such as 20480x20480", param_hint="'--image-size'")
    return {**request, SIZE_FIELD: [int(width), int(height)]}


def received_sentence(received: ReceivedView) -> str:
    """What has become of an image request."""
    if received["state"] == "received":
        return f"Received {received['jobName']}: its image is looked at, then it waits in the queue."
    return f"{received['jobName']} is there already: {received['state']}."


def done_of(job: JobView) -> str:
    """How many of an image job's regions are done: `12/30 regions`; empty for other jobs."""
    image = job.get("image")
    if image is None:
        return ""
    regions = image["regions"]
    failed = f", {regions['failed']} failed" if regions["failed"] else ""
    return f"{regions['done']}/{regions['total']} regions{failed}"


def end_sentence(job: JobView, now: datetime) -> str:
    """When a running image job is expected to be done; empty of any other."""
    image = job.get("image")
    end = None if image is None else image.get("expectedEnd")
    return f"It is expected to be done at {format_moment(end, now)}." if end else ""


def image_facts(job: JobDetailView, now: datetime) -> list[tuple[str, str]]:
    """Names and values about an image job; none of any other."""
    image = job.get("image")
    if image is None:
        return []
    variant = f", variant {image['variant']}" if image["variant"] else ""
    return [
        ("Endpoint", image["endpoint"] + variant),
        ("Regions", f"{regions_of(job)}, {image['tiles']} tiles in all"),
        ("Load", f"{image['load']} requests at once, {image['loadLeft']} of them left"),
        ("Expected End", format_moment(end, now) if (end := image.get("expectedEnd")) else ""),
        *_kept_nowhere(job["jobDetails"]),
    ]


def _kept_nowhere(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who has sent a request to the queue itself has seen no warning."""
    kept = request.get("outputs") or request.get("outputBucket")
    return [] if kept else [("Results", "kept nowhere: the request names no outputs")]
