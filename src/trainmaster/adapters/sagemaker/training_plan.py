"""Reads training plans from Describe answers into values of the domain.

A plan may have several reserved capacities, one after another, with gaps between them (SageMaker developer guide,
"View training plan details"). Raises nothing but `InvalidRequest` for any input.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from trainmaster.domain.capacity.units import PlanStatus, PlanWindow
from trainmaster.domain.compat import UTC
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.fields import entries, shown, text, whole

Object = Mapping[str, object]

_STATUSES = frozenset(PlanStatus)
_TO_COME = (PlanStatus.SCHEDULED, PlanStatus.PENDING)


def window_of_answer(answer: Object) -> PlanWindow:
    """Return the window in a DescribeTrainingPlan answer: the capacity usable now, else the next one.

    Falls back to the plan's own times if the answer lists no such capacity. Raises `InvalidRequest` if it is
    unreadable.
    """
    status = text(answer, "Status")
    if status not in _STATUSES:
        raise InvalidRequest(f"Status is {shown(answer.get('Status'))}, not a training plan's.", field="Status")
    capacity = _usable(entries(answer, "ReservedCapacitySummaries")) or answer
    return PlanWindow(
        status=PlanStatus(status),
        starts_at=_time(capacity.get("StartTime")),
        ends_at=_time(capacity.get("EndTime")),
        instances=whole(answer, "TotalInstanceCount"),
    )


def _usable(capacities: list[Object]) -> Object | None:
    """Return the active capacity that ends first, because a job may get its instances from it, else the next one.

    Else the one that begins next.
    """
    active = [capacity for capacity in capacities if capacity.get("Status") == PlanStatus.ACTIVE]
    if active:
        return min(active, key=lambda capacity: _time(capacity.get("EndTime")) or _NEVER)
    coming = [
        capacity for capacity in capacities if capacity.get("Status") in _TO_COME and _time(capacity.get("StartTime"))
    ]
    return min(coming, key=lambda capacity: _time(capacity.get("StartTime")) or _NEVER, default=None)


_NEVER = datetime.max.replace(tzinfo=UTC)


def _time(value: object) -> datetime | None:
    """Return a time in UTC, to the second, so that equal answers give equal values; None for anything else."""
    if not isinstance(value, datetime):
        return None
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(microsecond=0)
