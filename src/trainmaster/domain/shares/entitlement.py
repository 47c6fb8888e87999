"""Entitlements of shares in each pool: own units, reserved units, limits.

Own units are a guarantee and lent while idle, unless they are reserved (AWS Batch, "quota shares", resource sharing
strategies; Kueue, ClusterQueue `nominalQuota`, `lendingLimit`, `borrowingLimit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from trainmaster.domain.capacity.units import Pool, Units, in_settings, is_service_pool, total
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Lending, Policy, Share

UNRESERVED = "limit beside what other shares reserve"


class Bound(NamedTuple):
    """Maximum units of a pool for a share, and the rule that sets it (see `reasons.rules.ShareFull`)."""

    limit: int
    name: str


@dataclass(frozen=True, slots=True)
class Entitlement:
    """The entitlement of a share.

    Attributes:
        share: its settings.
        nominal: its own units, by pool.
    """

    share: Share
    nominal: Units

    def own(self, pool: str) -> int:
        """Return its own units of a pool, within its cap."""
        nominal = self.nominal.get(pool, 0)
        return min(nominal, self.share.max.get(pool, nominal))

    def kept(self, pool: str) -> int:
        """Return own units that others may not use even while idle."""
        own = self.own(pool)
        if self.share.lending is Lending.RESERVE:
            return own
        return max(own - self.share.lends.get(pool, own), 0)

    def bound(self, pool: str) -> Bound | None:
        """Return the tightest bound on the share's units of a pool; None if only the pool limits it.

        Services come and go, so settings need not divide them: a share that does not borrow uses services in which it
        owns nothing like all other shares.
        """
        bounds = []
        divided = pool in self.share.nominal or not is_service_pool(pool)
        if divided and self.share.lending is not Lending.LEND_AND_BORROW:
            bounds.append(Bound(self.own(pool), "own units"))
        elif pool in self.share.borrows:
            bounds.append(Bound(self.own(pool) + self.share.borrows[pool], "borrow limit"))
        if pool in self.share.max:
            bounds.append(Bound(self.share.max[pool], "cap"))
        return min(bounds, default=None)


@dataclass(slots=True)
class Entitlements:
    """The entitlements of all shares, by name.

    Shares without settings own nothing, lend and borrow.

    Attributes:
        policy: the settings in force.
        pools: the pools, by name.
        external: units that external training jobs hold.
    """

    policy: Policy
    pools: Mapping[str, Pool]
    external: Units = field(default_factory=dict)
    _known: dict[str, Entitlement] = field(default_factory=dict)
    _owners: dict[str, list[str]] = field(default_factory=dict)
    _keepers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {name: Entitlement(share, share.nominal) for name, share in self.policy.shares.items()}
        if DEFAULT_SHARE not in self._known:
            self._known[DEFAULT_SHARE] = Entitlement(Share(name=DEFAULT_SHARE), self._rest())
        for name, known in self._known.items():
            for pool in known.nominal:
                self._owners.setdefault(pool, []).append(name)

    def of(self, share: str) -> Entitlement:
        """Return the entitlement of a share."""
        if share not in self._known:
            self._known[share] = Entitlement(Share(name=share), {})
        return self._known[share]

    def keepers(self, pool: str) -> tuple[str, ...]:
        """Return the shares that reserve units of a pool; those without settings own none that they could reserve."""
        if pool not in self._keepers:
            owners = self._owners.get(pool, ())
            self._keepers[pool] = tuple(name for name in owners if self._known[name].kept(pool) > 0)
        return self._keepers[pool]

    def max_units(self, share: str, pool: str) -> int:
        """Return the units of a pool that one job of a share may hold if all lent units are idle."""
        mine, usable, kept = self.of(share), self._usable(pool), self._kept_by_others(share, pool)
        bound = mine.bound(pool)
        bounds = (usable if bound is None else bound.limit, mine.share.max_per_user.get(pool, usable))
        return min(max(usable - kept, min(mine.own(pool), usable)), *bounds)

    def exceeded(self, share: str, pool: str, count: int, held: int) -> Bound | None:
        """Return the bound that a share would exceed with one more job of these units; None without one.

        A job that needs what other shares reserve would exceed a bound too: it could never start.

        Args:
            share: name of the share.
            pool: name of the pool.
            count: units of the job there.
            held: what the share holds of the pool besides.
        """
        mine = self.of(share)
        bound = mine.bound(pool)
        if bound is not None and held + count > bound.limit:
            return bound
        if not self.keepers(pool):
            return None
        cap = self.pools[pool].cap if pool in self.pools else 0
        beside = max(cap - self._kept_by_others(share, pool), min(mine.own(pool), cap))
        return Bound(beside, UNRESERVED) if count > beside else None

    def overdrawn(self, pool: str) -> int:
        """Return by how much the shares' own units exceed a pool, whose cap was lowered or which others hold."""
        owned = sum(self._known[name].own(pool) for name in self._owners.get(pool, ()))
        return max(owned - self._usable(pool), 0)

    def _kept_by_others(self, share: str, pool: str) -> int:
        return sum(self.of(name).kept(pool) for name in self.keepers(pool) if name != share)

    def _usable(self, pool: str) -> int:
        cap = self.pools[pool].cap if pool in self.pools else 0
        return max(cap - self.external.get(pool, 0), 0)

    def _rest(self) -> dict[str, int]:
        """Return the units that no configured share owns; external jobs use these first, before any guarantee."""
        owned = total(share.nominal for share in self.policy.shares.values())
        pools = in_settings(self.pools)
        return {name: max(self._usable(name) - owned.get(name, 0), 0) for name in pools}
