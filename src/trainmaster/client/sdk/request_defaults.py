"""Adds a session's defaults to its requests: resources instead of a type, elastic options, tags.

A job's own tags win.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from trainmaster.client.sdk.elastic import TAGS, ElasticOptions
from trainmaster.domain.requests.tag_names import RESOURCES_TAG

_TYPE_LISTS = ("InstanceGroups", "InstancePreferences")
"""Members of `ResourceConfig` that list instance types; such requests keep them."""


def with_session_defaults(
    request: dict[str, Any],
    resources: str | None,
    elastic: ElasticOptions | None = None,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the request with the session's defaults.

    `resources` becomes the tag `trainmaster:resources` and replaces the instance type; the instance count stays.
    `elastic` becomes tags. Neither applies if the `ResourceConfig` has `InstanceGroups` or `InstancePreferences`.
    `tags` are added as they are. Each default applies only if the request has no such tag; the request is returned
    unchanged if there is nothing to add.
    """
    config, given = request.get("ResourceConfig") or {}, request.get("Tags") or []
    keys = {tag.get("Key") for tag in given}
    new = {key: value for key, value in tags.items() if key not in keys}
    if not any(config.get(member) for member in _TYPE_LISTS):
        new |= {} if elastic is None or keys & TAGS else elastic.tags
        if resources and RESOURCES_TAG not in keys:
            config = {member: value for member, value in config.items() if member != "InstanceType"}
            new = {RESOURCES_TAG: resources} | new
    if not new:
        return request
    added = [{"Key": key, "Value": value} for key, value in new.items()]
    changed = {} if new.keys() <= tags.keys() else {"ResourceConfig": config}
    return {**request, **changed, "Tags": [*given, *added]}
