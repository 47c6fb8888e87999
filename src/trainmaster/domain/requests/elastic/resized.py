"""Requests of an elastic job at another size, and of one of its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.domain.requests.fields import part
from trainmaster.domain.requests.resources import CONFIG

_BASE_ONLY = ("CheckpointConfig", "DebugRuleConfigurations", "ProfilerRuleConfigurations")
"""Parts of a request that only the base's training job has.

Several jobs that share one `CheckpointConfig.S3Uri` would overwrite each other's files there, and every rule is a
processing job of its own (developer guide).
"""


def with_instances(request: Mapping[str, Any], instances: int) -> dict[str, Any]:
    """Return the request with this `InstanceCount`; if the queue chooses the pool, `for_pool` sets it as well."""
    return {**request, CONFIG: {**part(request, CONFIG), "InstanceCount": instances}}


def member_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request of one member, made of that of the job's attempt: one instance, and no warm pool after it.

    It keeps the attempt's name and tags, and has no checkpoints of SageMaker: see `_BASE_ONLY`.
    """
    made = with_instances({name: value for name, value in request.items() if name not in _BASE_ONLY}, 1)
    made[CONFIG].pop("KeepAlivePeriodInSeconds", None)
    return made
