"""From what SageMaker says of a training plan to a value of the domain.

A plan may have several reserved capacities, one after another, and gaps between them (SageMaker developer guide, "View
training plan details"). Pure. It must not raise anything but `InvalidRequest`, whatever it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from trainmaster.domain.capacity.units import PlanStatus, PlanWindow
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.fields import entries, shown, text, whole

Object = Mapping[str, object]

_STATUSES = frozenset(PlanStatus)
_TO_COME = (PlanStatus.SCHEDULED, PlanStatus.PENDING)


def window_of_answer(answer: Object) -> PlanWindow:
    """What a DescribeTrainingPlan answer says: the reserved capacity that is usable now, else the next one.

    Where it lists none that is there or to come, the plan's own times are taken. Raises `InvalidRequest` where it
    cannot be read.
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
    """The reserved capacity that is active, of several the one that ends first: a job may get its instances from it.

    Else the one that begins next.
    """
    active = [each for each in capacities if each.get("Status") == PlanStatus.ACTIVE]
    if active:
        return min(active, key=lambda each: _time(each.get("EndTime")) or _NEVER)
    coming = [each for each in capacities if each.get("Status") in _TO_COME and _time(each.get("StartTime"))]
    return min(coming, key=lambda each: _time(each.get("StartTime")) or _NEVER, default=None)


_NEVER = datetime.max.replace(tzinfo=UTC)


def _time(value: object) -> datetime | None:
    """A time in UTC, to the second, so that the same answer gives the same value; None for anything else."""
    if not isinstance(value, datetime):
        return None
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(microsecond=0)
