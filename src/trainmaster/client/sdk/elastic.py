"""The sizes, times and restarts of elastic jobs, for all jobs of a session: as options here, as tags to the queue.

It must not check what they say together: the queue does, the same for every client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from trainmaster.domain.requests.tag_names import OPTION_PREFIX

Span = timedelta | int | str
"""A time: seconds, or a text such as `2h30m`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticOptions:
    """Within which bounds jobs may be resized, and how; None where the queue's own rule holds.

    One of `max_instances` and `instance_values` makes a job elastic. See docs/reference/tags.md for what each means.
    """

    min_instances: int | None = None
    max_instances: int | None = None
    instance_step: int | None = None
    instance_values: Sequence[int] | str | None = None
    resize_by: str | None = None
    resize_target: str | None = None
    scaling_timeout: Span | None = None
    graceful_shutdown_timeout: Span | None = None
    faulty_scale_down_timeout: Span | None = None
    scale_up_snooze: Span | None = None
    max_restarts: int | None = None
    eval_period: Span | None = None
    max_total_restarts: int | None = None
    restarts_before_full: int | None = None
    max_full_restarts: int | None = None

    @property
    def tags(self) -> dict[str, str]:
        """What is given, as tags by their keys."""
        given = {name: value for name in NAMES if (value := getattr(self, name)) is not None}
        return {OPTION_PREFIX + name.replace("_", "-"): _text(value) for name, value in given.items()}


NAMES = tuple(each.name for each in fields(ElasticOptions))
"""All options; each with `-` for `_` is the tag's name."""
TAGS = frozenset(OPTION_PREFIX + name.replace("_", "-") for name in NAMES)


def makes_elastic(request: Mapping[str, Any]) -> bool:
    """Whether a request's tags make its job elastic, as far as they can be read."""
    tags = request.get("Tags")
    keys = [tag.get("Key") for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    return any(OPTION_PREFIX + name in keys for name in ("max-instances", "instance-values"))


def _text(value: object) -> str:
    """As a tag says it: no commas, whole seconds."""
    if isinstance(value, timedelta):
        return str(int(value.total_seconds()))
    if isinstance(value, str):
        return value.replace(",", "+")
    return "+".join(map(str, value)) if isinstance(value, Sequence) else str(value)
