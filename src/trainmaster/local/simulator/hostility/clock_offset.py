"""Moves the times in answers, events and filters to SageMaker's clock and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

TIMES = frozenset({"CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime", "StartTime", "EndTime"})
NESTED = frozenset({"SecondaryStatusTransitions", "TrainingJobSummaries"})
FILTERS = frozenset({"CreationTimeAfter", "CreationTimeBefore", "LastModifiedTimeAfter", "LastModifiedTimeBefore"})


def shift(members: Mapping[str, Any], offset: timedelta) -> dict[str, Any]:
    """Return an answer, or the detail of an event, with its times moved by `offset`."""
    if not offset:
        return dict(members)
    return {name: _shifted(name, value, offset) for name, value in members.items()}


def shift_filters(request: Mapping[str, Any], offset: timedelta) -> Mapping[str, Any]:
    """Return a list request with its filters by time moved back from SageMaker's clock."""
    if not offset:
        return request
    return {name: value - offset if name in FILTERS else value for name, value in request.items()}


def _shifted(name: str, value: Any, offset: timedelta) -> Any:
    if name in NESTED:
        return [shift(member, offset) for member in value]
    if name not in TIMES:
        return value
    return value + offset if isinstance(value, datetime) else value + round(offset.total_seconds() * 1000)
