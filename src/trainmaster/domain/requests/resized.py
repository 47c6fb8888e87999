"""An elastic job's request at another size, and that of one of its members.

It must not choose a size, nor name the training job: who launches does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.domain.requests.fields import part
from trainmaster.domain.requests.resources import CONFIG

_BASE_ONLY = ("CheckpointConfig", "DebugRuleConfigurations", "ProfilerRuleConfigurations")
"""What only the base's training job does: several that share one `CheckpointConfig.S3Uri` would overwrite each other's
files there and never see later ones, and every rule is a processing job of its own (developer guide)."""


def with_instances(request: Mapping[str, Any], instances: int) -> dict[str, Any]:
    """The request with this `InstanceCount`; for one whose pool the queue chooses, `for_pool` says so as well."""
    return {**request, CONFIG: {**part(request, CONFIG), "InstanceCount": instances}}


def member_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request of one member, made of that of the job's attempt: one instance, and no warm pool after it.

    It keeps the attempt's name and tags. It has no checkpoints of SageMaker's: see `_BASE_ONLY`.
    """
    made = with_instances({name: value for name, value in request.items() if name not in _BASE_ONLY}, 1)
    made[CONFIG].pop("KeepAlivePeriodInSeconds", None)
    return made
