"""Which ML instance types there are, and what is known of each: what ships with us, with what was learned since.

It must not ask AWS: `adapters/catalogue/ec2.py` does, beside the passes, and the table keeps what it said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from math import inf
from typing import Any

from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Pool


@dataclass(frozen=True)
class Catalogue:
    """All known instance types.

    Attributes:
        learned: types as EC2 described them, where that differs from what ships with us, by name.
        quotas: instances that the account may have of a type at once in training jobs, by type (Service Quotas,
            "<type> for training job usage"); a type that is absent has no known bound.
        learned_at: when EC2 was asked last, UTC; None where it never answered.
        prices: US dollars an hour on demand in this Region, by type, as AWS's price list has them; they go before
            those that ship with us.
        priced_at: when that list was asked last, UTC; None where it never answered.
    """

    learned: Mapping[str, InstanceType] = field(default_factory=dict)
    quotas: Mapping[str, int] = field(default_factory=dict)
    learned_at: datetime | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    priced_at: datetime | None = None

    def type_of(self, name: str) -> InstanceType | None:
        """What is known of an instance type; None where nothing is."""
        return self._priced.get(name) or self.learned.get(name) or SHIPPED.get(name)

    @cached_property
    def types(self) -> tuple[InstanceType, ...]:
        """All types that training jobs can have, by name."""
        return tuple(each for _, each in sorted({**SHIPPED, **self.learned, **self._priced}.items()))

    @cached_property
    def _priced(self) -> Mapping[str, InstanceType]:
        """The types of which a price was learned; a price alone makes no type known."""
        known = ((self.learned.get(name) or SHIPPED.get(name), price) for name, price in self.prices.items())
        return {kind.name: replace(kind, price=price) for kind, price in known if kind is not None}

    def of_pool(self, pool: Pool) -> InstanceType:
        """What an instance of a pool has: what its settings say, and of the rest what is known of its type."""
        if pool not in self._of_pools:
            self._of_pools[pool] = self._told_of(pool)
        return self._of_pools[pool]

    @cached_property
    def _of_pools(self) -> dict[Pool, InstanceType]:
        """What has been asked of pools: every pass asks it of each."""
        return {}

    def _told_of(self, pool: Pool) -> InstanceType:
        known = self.type_of(pool.instance_type) or InstanceType(name=pool.instance_type)
        said: dict[str, Any] = {
            "vcpus": pool.vcpus,
            "memory_gib": pool.memory_gib,
            "accelerators": pool.accelerators_per_unit,
            "accelerator": pool.accelerator,
            "accelerator_memory_gib": pool.accelerator_memory_gib,
            "price": pool.price,
        }
        given = {name: value for name, value in said.items() if value}
        return replace(known, **given) if given else known

    def price_at_most(self, kind: InstanceType) -> float:
        """What a type costs an hour; where nobody knows that, the least price of those with as much of everything.

        Infinite where there are none such.
        """
        return kind.price or self._ceilings.get(kind.name, inf)

    @cached_property
    def _ceilings(self) -> Mapping[str, float]:
        """The least price of a type that has as much of everything, for the types without one that have such."""
        priced = sorted((each for each in self.types if each.price), key=lambda each: (each.price, each.name))
        found = ((each.name, next((n.price for n in priced if n.has_all_of(each)), inf)) for each in self.types)
        return dict(found)

    def covering(self, asked: Resources) -> Iterator[InstanceType]:
        """The types that cover a demand, by name."""
        return (each for each in self.types if asked.covered_by(each))


AS_SHIPPED = Catalogue()
"""Where nothing has been learned, or nobody asks what has."""
