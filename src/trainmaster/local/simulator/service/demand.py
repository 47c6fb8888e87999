"""Which instances a request asks for, and on which market. Pure readings of a request; it must not count anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

Units = Mapping[str, int]
"""Instances by type."""

_ACCELERATED = re.compile(r"ml\.(p|g|trn|inf)\d")


class Market(StrEnum):
    """SageMaker counts spot instances against quotas of their own."""

    ON_DEMAND = "training job usage"
    SPOT = "spot training job usage"


def alternatives(request: Mapping[str, Any]) -> tuple[Units, ...]:
    """What the job may run on, best first: any one of them, and of that one all instances together.

    Only `InstancePreferences` give more than one. A serverless job asks for nothing.
    """
    config = request.get("ResourceConfig", {})
    if preferences := config.get("InstancePreferences"):
        common = config.get("InstanceCount")
        return tuple({each["InstanceType"]: each.get("InstanceCount", common)} for each in preferences)
    if groups := config.get("InstanceGroups"):
        units: Counter[str] = Counter()
        for group in groups:
            units[group["InstanceType"]] += group["InstanceCount"]
        return (dict(units),)
    return ({config["InstanceType"]: config["InstanceCount"]},) if "InstanceType" in config else ({},)


def worst_case(choices: tuple[Units, ...]) -> Units:
    """What counts against the quotas while it is open which of the choices it will be: every type must have room."""
    worst: dict[str, int] = {}
    for units in choices:
        for instance_type, count in units.items():
            worst[instance_type] = max(count, worst.get(instance_type, 0))
    return worst


def market(request: Mapping[str, Any]) -> str:
    """Where the instances come from: a `Market`, or the training plan of this ARN, which has a capacity of its own."""
    plan: str | None = request.get("ResourceConfig", {}).get("TrainingPlanArn")
    return plan or (Market.SPOT if request.get("EnableManagedSpotTraining") else Market.ON_DEMAND)


def accelerated(choices: tuple[Units, ...]) -> bool:
    """Whether any type has accelerators: `MaxPendingTimeInSeconds` has no effect on others."""
    return any(_ACCELERATED.match(instance_type) for units in choices for instance_type in units)
