"""Adds to requests what a session asks of the queue for all of its jobs: resources instead of a type, elastic sizes.

What a job says itself in its tags goes before. It must not check what is asked for: the queue does.
"""

from __future__ import annotations

from typing import Any

from trainmaster.client.sdk.elastic import TAGS, ElasticOptions
from trainmaster.domain.requests.tag_names import RESOURCES_TAG

_CHOOSES = ("InstanceGroups", "InstancePreferences")
"""Members of `ResourceConfig` whose jobs list types on purpose."""


def asking(request: dict[str, Any], resources: str | None, elastic: ElasticOptions | None = None) -> dict[str, Any]:
    """The request as the session's job.

    With the tag `trainmaster:resources` in the place of its instance type; how many instances stays. With the tags of
    an elastic job. The same where nothing is asked for, or its `ResourceConfig` has `InstanceGroups` or
    `InstancePreferences`; and each of the two only where the request has no such tag itself.
    """
    config, tags = request.get("ResourceConfig") or {}, request.get("Tags") or []
    keys = {tag.get("Key") for tag in tags}
    if any(config.get(member) for member in _CHOOSES):
        return request
    new = {} if elastic is None or keys & TAGS else elastic.tags
    if resources and RESOURCES_TAG not in keys:
        config = {member: value for member, value in config.items() if member != "InstanceType"}
        new = {RESOURCES_TAG: resources} | new
    if not new:
        return request
    added = [{"Key": key, "Value": value} for key, value in new.items()]
    return {**request, "ResourceConfig": config, "Tags": [*tags, *added]}
