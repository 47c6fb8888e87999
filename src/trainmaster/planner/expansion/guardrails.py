"""Guardrails of expansion: how many instances of a type the manager may have in pools that it made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.policy.settings import Expansion

_SUFFIX = ".made"
_CENT = 1e-6
"""The rounding error, in dollars, that sums of prices may have."""


@dataclass(slots=True)
class ManagedPools:
    """The pools after expansion; the manager makes one pool a type, which all demands for that type share.

    Attributes:
        rules: the guardrails.
        pools: those in force, with the changes so far.
        catalogue: instance types, and the account's quotas.
        before: the pools in force.
        _own: names of made pools by type, best first; draining does not change during expansion.
        _configured: configured on-demand pools by type, best first. A queue may have hundreds, and each of thousands of
            demands looks its types up here.
    """

    rules: Expansion
    pools: dict[str, Pool]
    catalogue: Catalogue
    before: Mapping[str, Pool] = field(default_factory=dict)
    _own: dict[str, list[str]] = field(init=False, default_factory=dict)
    _configured: dict[str, list[Pool]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.before = dict(self.pools)
        for pool in sorted(self.before.values(), key=_usable_first):
            if pool.made_for:
                self._own.setdefault(pool.instance_type, []).append(pool.name)
            elif pool.kind is Kind.ON_DEMAND:
                self._configured.setdefault(pool.instance_type, []).append(pool)

    @property
    def made(self) -> Iterator[Pool]:
        """All made pools, including those that are being drained, in which jobs may still run."""
        return (self.pools[name] for names in self._own.values() for name in names)

    def pool_of(self, kind: InstanceType) -> Pool | None:
        """Return the made pool of a type; None if there is none."""
        names = self._own.get(kind.name)
        return self.pools[names[0]] if names else None

    def new(self, kind: InstanceType) -> Pool:
        """Return an empty pool of a type with an unused name; the type itself if that is unused."""
        name, number = kind.name, 1
        while name in self.pools:
            name, number = f"{kind.name}{_SUFFIX}{number if number > 1 else ''}", number + 1
        return Pool(name, 0, type_=kind.name, price=kind.price, accelerators_per_unit=kind.accelerators)

    def limit(self, kind: InstanceType) -> tuple[int, str]:
        """Return the most instances that the made pool of a type may have, and the guardrail; at least what it has.

        A pool that is beyond a guardrail that was tightened stays as it is.
        """
        own_pool = self.pool_of(kind)
        bound, guardrail = min(self._bounds(kind, own_pool), key=lambda bound: bound[0])
        return max(bound, 0 if own_pool is None else own_pool.cap), guardrail

    def refusal(self, kind: InstanceType, instances: int, pool: str) -> str:
        """Return why no made pool can have that many instances of a type; "" if one can.

        Args:
            kind: the type.
            instances: how many it must have at least.
            pool: the name that the pool must have; "" for any.
        """
        own_pool = self.pool_of(kind)
        if not self.rules.allows(kind.name):
            return f"the settings do not allow {kind.name} (expansion.types)"
        if own_pool is not None and own_pool.draining:
            return f"{own_pool.name}, the queue's pool of this type, is being drained"
        if own_pool is None and (drained := self._drained(kind)):
            return f"{drained}, a configured pool of this type, is being drained"
        if pool and pool != (own_pool or self.new(kind)).name:
            return (
                f"there is a configured pool {pool}"
                if pool in self.pools
                else f"the queue's pool of this type is {_name_of(own_pool)}"
            )
        if self.rules.dollars_per_hour is not None and not kind.price:
            return f"the price of {kind.name} is unknown"
        bound, guardrail = self.limit(kind)
        return "" if instances <= bound else f"{instances} x {kind.name} would exceed {guardrail}"

    def enlarge(self, kind: InstanceType, cap: int, made_for: str) -> Pool:
        """Enlarge the made pool of a type, as far as the guardrails allow; it never shrinks."""
        own_pool = self.pool_of(kind) or replace(self.new(kind), made_for=made_for)
        grown = replace(own_pool, cap=max(own_pool.cap, min(cap, self.limit(kind)[0])))
        self.pools[grown.name] = grown
        self._own.setdefault(kind.name, [grown.name])
        return grown

    def make_room(self, kind: InstanceType, instances: int, pool: str, floors: Mapping[str, int]) -> list[str]:
        """Shrink other made pools if that allows a pool of this type to have enough instances.

        As few pools as possible shrink, first those with most to give. Returns their names; empty if it would not help,
        and then all pools stay as they were.

        Args:
            kind: the type.
            instances: how many it must have at least.
            pool: the name that the pool must have; "" for any.
            floors: how small the others may become, by name; those that are not named stay.
        """
        able = [(entry, floors.get(entry.name, entry.cap)) for entry in self.made]
        giving = sorted(((entry, cap) for entry, cap in able if cap < entry.cap), key=_largest_giver_first)
        if not giving:
            return []
        before = self.pools
        self.pools = {**before, **{entry.name: replace(entry, cap=cap) for entry, cap in giving}}
        if self.refusal(kind, instances, pool):
            self.pools = before
            return []
        for entry, _ in giving:
            smaller, self.pools = self.pools, {**self.pools, entry.name: entry}
            if self.refusal(kind, instances, pool):
                self.pools = smaller
        return [entry.name for entry, _ in giving if self.pools[entry.name].cap < entry.cap]

    def shrink(self, name: str, cap: int) -> None:
        """Limit one of the made pools to this many instances."""
        self.pools[name] = replace(self.pools[name], cap=cap)

    def _bounds(self, kind: InstanceType, own_pool: Pool | None) -> Iterator[tuple[int, str]]:
        rules, others = self.rules, [pool for pool in self.made if own_pool is None or pool.name != own_pool.name]
        alike = sum(pool.cap for pool in others if pool.instance_type == kind.name)
        yield (
            rules.max_per_type - alike,
            f"the maximum instances of a type, {rules.max_per_type} (expansion.maxPerType)",
        )
        yield (
            rules.max_instances - sum(pool.cap for pool in others),
            f"the maximum instances in all, {rules.max_instances} (expansion.maxInstances)",
        )
        if (quota := self.catalogue.quotas.get(kind.name)) is not None:
            yield quota - self._quota_used(kind, own_pool), f"the remaining account quota of {quota}"
        if rules.dollars_per_hour is not None:
            spent = sum(pool.cap * self.catalogue.of_pool(pool).price for pool in others)
            price = kind.price if own_pool is None else self.catalogue.of_pool(own_pool).price
            left = rules.dollars_per_hour - spent + _CENT
            yield (
                math.floor(left / price) if price else 0,
                f"{rules.dollars_per_hour:g} dollars an hour (expansion.dollarsPerHour)",
            )

    def _drained(self, kind: InstanceType) -> str:
        """Return the first configured pool of a type if all of that type are being drained; else "".

        Nothing more of the type should start then, but a made pool of the type beside them would start it.
        """
        configured = self._configured.get(kind.name)
        return configured[0].name if configured and configured[0].draining else ""

    def _quota_used(self, kind: InstanceType, own_pool: Pool | None) -> int:
        """Return what other pools may hold of the same quota; spot and training plans have quotas of their own."""
        own = (self.pools[name] for name in self._own.get(kind.name, ()) if own_pool is None or name != own_pool.name)
        made = (pool.cap for pool in own if pool.kind is Kind.ON_DEMAND)
        return sum(made) + sum(pool.cap for pool in self._configured.get(kind.name, ()))


def _usable_first(pool: Pool) -> tuple[bool, str]:
    """Return a sort key that puts a pool first in which jobs can still start; there should be only one."""
    return pool.draining, pool.name


def _largest_giver_first(giving: tuple[Pool, int]) -> tuple[int, str]:
    """Return a sort key by which pools with least to give come first, and are the first to be spared."""
    return giving[0].cap - giving[1], giving[0].name


def _name_of(pool: Pool | None) -> str:
    return "" if pool is None else pool.name
