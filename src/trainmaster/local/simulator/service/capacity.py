"""Account quotas and EC2 capacity, as counters by instance type and market (or training plan).

A quota counts every job from its creation to its end, and every warm pool. EC2 capacity counts only running instances.
Sources: "Amazon SageMaker AI endpoints and quotas" (AWS General Reference), "SageMaker AI Managed Warm Pools"
(SageMaker developer guide).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from trainmaster.local.simulator.service.demand import Market, Units
from trainmaster.local.simulator.wire.errors import limit_exceeded

Key = tuple[str, str]
WARM_POOL = "training warm pool usage"


class Quotas:
    """Account quotas and their use.

    Args:
        limits: instances by type for on-demand training jobs; other types have `default`.
        spot_limits: the same for spot, which has quotas of its own.
        warm_limits: the same for instances in warm pools, or of jobs that will leave one. AWS's default is 0; the
            simulator sets no limit for types that are not named.
        default: limit of other types; None for no limit.
    """

    def __init__(
        self,
        limits: Mapping[str, int],
        spot_limits: Mapping[str, int],
        warm_limits: Mapping[str, int],
        default: int | None = None,
    ) -> None:
        self._limits: dict[str, dict[str, int | None]] = {
            Market.ON_DEMAND: dict(limits),
            Market.SPOT: dict(spot_limits),
        }
        self._warm_limits = dict(warm_limits)
        self._otherwise = default
        self._used: Counter[Key] = Counter()
        self._warm_used: Counter[str] = Counter()

    def set_limit(self, instance_type: str, limit: int | None, market: str = Market.ON_DEMAND) -> None:
        """Change a limit, None for no limit; running jobs continue."""
        self._limits.setdefault(market, {})[instance_type] = limit

    def used(self, instance_type: str, market: str = Market.ON_DEMAND) -> int:
        """Return the number of instances that count against the limit now."""
        return self._used[market, instance_type]

    def check(self, units: Units, market: str) -> None:
        """Raise `ApiError` (`ResourceLimitExceeded`) if a type has no room for these instances."""
        for instance_type, count in sorted(units.items()):
            limit = self._limits.get(market, {}).get(instance_type, self._otherwise)
            used = self.used(instance_type, market)
            if limit is not None and used + count > limit:
                raise limit_exceeded(f"{instance_type} for {market}", limit, used, count)

    def check_warm(self, units: Units) -> None:
        """Raise `ApiError` (`ResourceLimitExceeded`) if the warm pool quota has no room for these instances."""
        for instance_type, count in sorted(units.items()):
            limit, used = self._warm_limits.get(instance_type), self._warm_used[instance_type]
            if limit is not None and used + count > limit:
                raise limit_exceeded(f"{instance_type} for {WARM_POOL}", limit, used, count)

    def charge(self, units: Units, market: str) -> None:
        """Count these instances."""
        self._used.update(_keyed(units, market))

    def release(self, units: Units, market: str) -> None:
        """Stop counting these instances."""
        self._used.subtract(_keyed(units, market))

    def charge_warm(self, units: Units) -> None:
        """Count these instances against the warm pool quota."""
        self._warm_used.update(units)

    def release_warm(self, units: Units) -> None:
        """Stop counting these instances against the warm pool quota."""
        self._warm_used.subtract(units)


class Ec2:
    """EC2 instances; a type without a figure is always available.

    Args:
        capacity: on-demand instances by type.
        spot_capacity: spot instances by type.
    """

    def __init__(self, capacity: Mapping[str, int], spot_capacity: Mapping[str, int]) -> None:
        self._capacity: dict[str, dict[str, int]] = {
            Market.ON_DEMAND: dict(capacity),
            Market.SPOT: dict(spot_capacity),
        }
        self._running: Counter[Key] = Counter()

    def set_capacity(self, instance_type: str, count: int | None, market: str = Market.ON_DEMAND) -> None:
        """Change the capacity of a type; None for unlimited. Running instances continue."""
        if count is None:
            self._capacity.get(market, {}).pop(instance_type, None)
        else:
            self._capacity.setdefault(market, {})[instance_type] = count

    def running(self, instance_type: str, market: str = Market.ON_DEMAND) -> int:
        """Return the number of running instances of the type, warm pools included."""
        return self._running[market, instance_type]

    def has_capacity(self, units: Units, market: str) -> bool:
        """Return True if all these instances can be started at once."""
        capacity = self._capacity.get(market, {})
        return all(
            instance_type not in capacity or self.running(instance_type, market) + count <= capacity[instance_type]
            for instance_type, count in units.items()
        )

    def allocate(self, units: Units, market: str) -> None:
        """Start these instances."""
        self._running.update(_keyed(units, market))

    def release(self, units: Units, market: str) -> None:
        """Terminate these instances."""
        self._running.subtract(_keyed(units, market))


def _keyed(units: Units, market: str) -> dict[Key, int]:
    return {(market, instance_type): count for instance_type, count in units.items()}
