"""Turns a request that names an instance type into one that asks for resources: SDKs insist on a type.

What a job says itself in its tags goes before. It must not check what is asked for: the queue does.
"""

from __future__ import annotations

from typing import Any

RESOURCES_TAG = "trainmaster:resources"
_CHOOSES = ("InstanceGroups", "InstancePreferences")
"""Members of `ResourceConfig` whose jobs list types on purpose."""


def asking(request: dict[str, Any], resources: str | None) -> dict[str, Any]:
    """The request with the tag `trainmaster:resources` in the place of its instance type; how many instances stays.

    The same where nothing is asked for, the request has that tag itself, or its `ResourceConfig` has `InstanceGroups`
    or `InstancePreferences`.
    """
    config, tags = request.get("ResourceConfig") or {}, request.get("Tags") or []
    listed = any(config.get(member) for member in _CHOOSES)
    if not resources or listed or any(tag.get("Key") == RESOURCES_TAG for tag in tags):
        return request
    kept = {member: value for member, value in config.items() if member != "InstanceType"}
    return {**request, "ResourceConfig": kept, "Tags": [*tags, {"Key": RESOURCES_TAG, "Value": resources}]}
