"""Image jobs on the command line; implements `cli.kinds.CliKind`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from trainmaster.cli.output.times import format_moment
from trainmaster.client.api.errors import Refused
from trainmaster.domain.requests.tag_names import OPTION_PREFIX
from trainmaster.images.client import wording
from trainmaster.images.client.requests import submit_image
from trainmaster.images.client.wording import details_of
from trainmaster.images.domain.request import SIZE_FIELD, is_image_request

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView, JobView

NAME = "image"
SUBMIT_HELP = (
    "A request in ModelRunner's form (imageUrls, imageProcessor) is for an image job, which also accepts --priority "
    "and --option share=NAME."
)
PLAN_HELP = "For an image job, --image-size is required."
PLAN_OPTIONS: Mapping[str, tuple[str, str]] = {
    "image-size": ("WIDTHxHEIGHT", "Size of an image job's image in pixels; the image is not read."),
}
ENTRY_HINT = (
    "Its image takes long to read, or it was refused: then it is in the image dead-letter queue, with the reason."
)
PARTS_HEADING = "Regions"
RESUME = "to continue with the remaining regions"
_OWN = "trainmaster"


def recognizes(request: Mapping[str, Any]) -> bool:
    """Return whether this is a request for an image job."""
    return is_image_request(request)


def name_in(request: Mapping[str, Any]) -> str:
    """Return the name that the job of a request will have."""
    return str(request.get("jobId"))


def with_options(request: Mapping[str, Any], priority: int | None, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the request with the options of the command line, which replace its own. Raises Refused."""
    new: dict[str, Any] = {name.removeprefix(OPTION_PREFIX): value for name, value in options.items()}
    if priority is not None:
        new["priority"] = priority
    if not new:
        return dict(request)
    own = request.get(_OWN) or {}
    if not isinstance(own, dict):
        hint = 'Use the form {"priority": 5, "share": "vision"}.'
        raise Refused("The member trainmaster is not an object.", type="InvalidRequest", field=_OWN, hint=hint)
    return {**request, _OWN: {**own, **new}}


def with_plan_options(request: Mapping[str, Any], options: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the request with the size of its image, given as `20480x20480`. Raises typer.BadParameter."""
    size = options.get("image_size")
    if size is None:
        return dict(request)
    width, _, height = size.partition("x")
    if not all(each.isascii() and each.isdecimal() for each in (width, height)):
        raise typer.BadParameter("write WIDTHxHEIGHT in pixels, such as 20480x20480", param_hint="'--image-size'")
    return {**request, SIZE_FIELD: [int(width), int(height)]}


def submit(api: ApiClient, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Submit a request. Raises ApiError."""
    return submit_image(api, request)


def received_sentence(answer: Mapping[str, Any]) -> str:
    """Return the answer to a submission as a sentence."""
    if answer["state"] == "received":
        return f"Received {answer['jobName']}: its image is read first; then the job waits in the queue."
    return f"{answer['jobName']} is there already: {answer['state']}."


def progress(job: JobView) -> str:
    """Return the number of regions that are done: `12/30 regions`."""
    regions = details_of(job)["regions"]
    failed = f", {regions['failed']} failed" if regions["failed"] else ""
    return f"{regions['done']}/{regions['total']} regions{failed}"


def parts(job: JobView) -> tuple[int, int]:
    """Return the number of regions that are done or failed, and of all."""
    regions = details_of(job)["regions"]
    return regions["done"] + regions["failed"], regions["total"]


def end_sentence(job: JobView, now: datetime) -> str:
    """Return when a running job is expected to be done; empty if nothing is expected."""
    end = details_of(job).get("expectedEnd")
    return f"It is expected to be done at {format_moment(end, now)}." if end else ""


def facts(job: JobDetailView, now: datetime) -> list[tuple[str, str]]:  # noqa: ARG001 -- see CliKind
    """Return names and values about an image job."""
    image = details_of(job)
    variant = f", variant {image['variant']}" if image["variant"] else ""
    return [
        ("Endpoint", image["endpoint"] + variant),
        ("Regions", f"{wording.progress(job)}, {image['tiles']} tiles in all"),
        ("Load", f"{image['load']} requests at once, {image['loadLeft']} of them left"),
        *_results(job["jobDetails"]),
    ]


def _results(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a warning about a request without outputs; a request sent to the image queue itself gets no answer."""
    kept = request.get("outputs") or request.get("outputBucket")
    return [] if kept else [("Results", "not stored: the request names no outputs")]
