"""Tags of jobs that wait: those of the request, and the priority, which can change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainmaster.domain.requests.tag_names import PRIORITY_TAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainmaster.client.views.types import JobDetailView

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_ONLY_PRIORITY = (
    f"Of its tags, only `{PRIORITY_TAG}` can change, alone and to an integer: the other tags are part of its request. "
    "Cancel it and submit it again under another name to change them."
)


def tags_of(job: JobDetailView) -> list[dict[str, str]]:
    """Return the tags of the job's request, with its current priority."""
    tags: list[dict[str, str]] = job["jobDetails"].get("Tags", [])
    priority = {"Key": PRIORITY_TAG, "Value": str(job["priority"])}
    return [priority if tag.get("Key") == PRIORITY_TAG else tag for tag in tags]


def priority_in(tags: Sequence[dict[str, str]]) -> int | str:
    """Return the priority that tags to add set; a message if they set anything else."""
    if [tag.get("Key") for tag in tags] == [PRIORITY_TAG] and _INTEGER.fullmatch(tags[0].get("Value", "")):
        return int(tags[0]["Value"])
    return _ONLY_PRIORITY
