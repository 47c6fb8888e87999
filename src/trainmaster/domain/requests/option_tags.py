"""Options of the queue as an object, for callers whose requests have no convenient place for tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG


def with_options(request: Mapping[str, Any], options: object) -> dict[str, Any]:
    """Return the request with the members of an object as tags.

    `{"maxPreemptions": 2}` is the option `max-preemptions`. Lists become words with `+` between them. Admission checks
    the options. Raises `InvalidRequest` for a value that no option can have.
    """
    if not isinstance(options, Mapping):
        raise InvalidRequest("Queue should be an object.", field="Queue", hint='Such as {"priority": 5}.')
    if not options:
        return dict(request)
    tags = request.get("Tags", [])
    if not isinstance(tags, list):
        raise InvalidRequest("Tags should be a list.", field="Tags", hint='Such as [{"Key": "a", "Value": "b"}].')
    return {**request, "Tags": [*tags, *({"Key": _key(name), "Value": _text(name, options[name])} for name in options)]}


def _key(name: str) -> str:
    word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    return PRIORITY_TAG if word == PRIORITY_TAG else OPTION_PREFIX + word


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | str):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "+".join(value)
    wrong = "is no text, whole number, boolean or list of texts"
    raise InvalidRequest(f"Queue.{name} {wrong}.", field=f"Queue.{name}", hint="Write it as the tag's value.")
