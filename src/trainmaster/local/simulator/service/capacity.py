"""The account's limits and EC2's capacity, as counters per instance type and market (or training plan).

A limit counts every job from its creation until it has ended, and every warm pool; EC2 capacity counts only
instances that really run (facts/sagemaker.md 2.1). It must not know jobs: callers say what they take and give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from trainmaster.local.simulator.service.demand import Market, Units
from trainmaster.local.simulator.wire.errors import limit_exceeded

Key = tuple[str, str]
WARM_POOL = "training warm pool usage"


class Quotas:
    """What the account may use at once.

    Args:
        limits: instances by type for on-demand training jobs; other types have `default`.
        spot_limits: the same for spot, which AWS counts apart.
        warm_limits: the same for instances kept in warm pools or under jobs that will leave one; AWS grants none
            by default, the simulator sets no limit where it is given none.
        default: the limit for a type that is not named; None for no limit.
    """

    def __init__(
        self,
        limits: Mapping[str, int],
        spot_limits: Mapping[str, int],
        warm_limits: Mapping[str, int],
        default: int | None = None,
    ) -> None:
        self._limits: dict[str, dict[str, int]] = {Market.ON_DEMAND: dict(limits), Market.SPOT: dict(spot_limits)}
        self._warm_limits = dict(warm_limits)
        self._otherwise = default
        self._used: Counter[Key] = Counter()
        self._warm_used: Counter[str] = Counter()

    def set_limit(self, instance_type: str, limit: int, market: str = Market.ON_DEMAND) -> None:
        """Change a limit; what runs already goes on."""
        self._limits.setdefault(market, {})[instance_type] = limit

    def used(self, instance_type: str, market: str = Market.ON_DEMAND) -> int:
        """How many instances of the type count against the limit now."""
        return self._used[market, instance_type]

    def check(self, units: Units, market: str) -> None:
        """Raise `ApiError` (`ResourceLimitExceeded`) where a type has no room for so many more."""
        for instance_type, count in sorted(units.items()):
            limit = self._limits.get(market, {}).get(instance_type, self._otherwise)
            used = self.used(instance_type, market)
            if limit is not None and used + count > limit:
                raise limit_exceeded(f"{instance_type} for {market}", limit, used, count)

    def check_warm(self, units: Units) -> None:
        """The same for the instances that a job wants kept after its end."""
        for instance_type, count in sorted(units.items()):
            limit, used = self._warm_limits.get(instance_type), self._warm_used[instance_type]
            if limit is not None and used + count > limit:
                raise limit_exceeded(f"{instance_type} for {WARM_POOL}", limit, used, count)

    def charge(self, units: Units, market: str) -> None:
        """Count these."""
        self._used.update(_keyed(units, market))

    def release(self, units: Units, market: str) -> None:
        """Count these no longer."""
        self._used.subtract(_keyed(units, market))

    def charge_warm(self, units: Units) -> None:
        """Count these as to be kept."""
        self._warm_used.update(units)

    def release_warm(self, units: Units) -> None:
        """Count these as to be kept no longer."""
        self._warm_used.subtract(units)


class Ec2:
    """The instances that exist. A type without a figure is never short.

    Args:
        capacity: instances by type on demand.
        spot_capacity: instances by type on the spot market.
    """

    def __init__(self, capacity: Mapping[str, int], spot_capacity: Mapping[str, int]) -> None:
        self._capacity: dict[str, dict[str, int]] = {
            Market.ON_DEMAND: dict(capacity),
            Market.SPOT: dict(spot_capacity),
        }
        self._running: Counter[Key] = Counter()

    def set_capacity(self, instance_type: str, count: int | None, market: str = Market.ON_DEMAND) -> None:
        """Change what exists; None for never short. What runs already goes on."""
        if count is None:
            self._capacity.get(market, {}).pop(instance_type, None)
        else:
            self._capacity.setdefault(market, {})[instance_type] = count

    def running(self, instance_type: str, market: str = Market.ON_DEMAND) -> int:
        """How many instances of the type run now, warm pools included."""
        return self._running[market, instance_type]

    def has_capacity(self, units: Units, market: str) -> bool:
        """Whether all of these could be started at once."""
        capacity = self._capacity.get(market, {})
        return all(
            instance_type not in capacity or self.running(instance_type, market) + count <= capacity[instance_type]
            for instance_type, count in units.items()
        )

    def allocate(self, units: Units, market: str) -> None:
        """Start these."""
        self._running.update(_keyed(units, market))

    def release(self, units: Units, market: str) -> None:
        """Give these back."""
        self._running.subtract(_keyed(units, market))


def _keyed(units: Units, market: str) -> dict[Key, int]:
    return {(market, instance_type): count for instance_type, count in units.items()}
