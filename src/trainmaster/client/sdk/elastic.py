"""Options of elastic jobs for all jobs of a session, as tags. The queue validates their combination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from trainmaster.domain.requests.tag_names import OPTION_PREFIX

Duration = timedelta | int | str
"""A duration: seconds, or a string such as `2h30m`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticOptions:
    """Bounds, sizes, timeouts and restart limits of elastic jobs; None takes the queue's default.

    Either `max_instances` or `instance_values` makes a job elastic. See docs/reference/tags.md for their meaning.
    """

    min_instances: int | None = None
    max_instances: int | None = None
    instance_step: int | None = None
    instance_values: Sequence[int] | str | None = None
    resize_by: str | None = None
    resize_target: str | None = None
    scaling_timeout: Duration | None = None
    graceful_shutdown_timeout: Duration | None = None
    faulty_scale_down_timeout: Duration | None = None
    scale_up_snooze: Duration | None = None
    max_restarts: int | None = None
    eval_period: Duration | None = None
    max_total_restarts: int | None = None
    restarts_before_full: int | None = None
    max_full_restarts: int | None = None

    @property
    def tags(self) -> dict[str, str]:
        """The options that are set, as tags by key."""
        given = {name: value for name in NAMES if (value := getattr(self, name)) is not None}
        return {OPTION_PREFIX + name.replace("_", "-"): _text(value) for name, value in given.items()}


NAMES = tuple(option.name for option in fields(ElasticOptions))
"""All options; a tag's name has `-` for `_`."""
TAGS = frozenset(OPTION_PREFIX + name.replace("_", "-") for name in NAMES)


def makes_elastic(request: Mapping[str, Any]) -> bool:
    """Return whether a request's tags make its job elastic, as far as the tags are readable."""
    tags = request.get("Tags")
    keys = [tag.get("Key") for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    return any(OPTION_PREFIX + name in keys for name in ("max-instances", "instance-values"))


def _text(value: object) -> str:
    """Format a tag value: no commas, whole seconds."""
    if isinstance(value, timedelta):
        return str(int(value.total_seconds()))
    if isinstance(value, str):
        return value.replace(",", "+")
    return "+".join(map(str, value)) if isinstance(value, Sequence) else str(value)
