"""The instances that a request asks for, and their market."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from trainmaster.domain.compat import StrEnum

Units = Mapping[str, int]
"""Instances by type."""

_ACCELERATED = re.compile(r"ml\.(p|g|trn|inf)\d")


class Market(StrEnum):
    """The market of instances; the values are the names of the quotas."""

    ON_DEMAND = "training job usage"
    SPOT = "spot training job usage"


def alternatives(request: Mapping[str, Any]) -> tuple[Units, ...]:
    """Return the alternatives of a request, best first: instances by type, all of which the job needs.

    Only `InstancePreferences` give more than one alternative. A serverless job needs no instances.
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
    """Return the units charged before an alternative is selected: every type must fit its quota."""
    worst: dict[str, int] = {}
    for units in choices:
        for instance_type, count in units.items():
            worst[instance_type] = max(count, worst.get(instance_type, 0))
    return worst


def market(request: Mapping[str, Any]) -> str:
    """Return the `Market` of a request, or the ARN of its training plan, which has a capacity of its own."""
    plan: str | None = request.get("ResourceConfig", {}).get("TrainingPlanArn")
    return plan or (Market.SPOT if request.get("EnableManagedSpotTraining") else Market.ON_DEMAND)


def accelerated(choices: tuple[Units, ...]) -> bool:
    """Return True if any type has accelerators: `MaxPendingTimeInSeconds` applies to these only."""
    return any(_ACCELERATED.match(instance_type) for units in choices for instance_type in units)
