"""The catalogue of ML instance types: the shipped table, updated with what EC2 and the price list reported since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import inf
from typing import Any

from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Pool

QUOTA_LAPSES_AFTER = timedelta(hours=1)
"""Time after which the queue tries beyond a quota that SageMaker reported: nothing else would show a larger one."""


@dataclass(frozen=True, slots=True)
class ReportedQuota:
    """A quota of the account as SageMaker reported it with a refused CreateTrainingJob.

    Attributes:
        limit: instances that training jobs may use at once.
        at: when it was reported, UTC.
    """

    limit: int
    at: datetime

    @property
    def until(self) -> datetime:
        """The time at which it lapses."""
        return self.at + QUOTA_LAPSES_AFTER


@dataclass(frozen=True)
class Catalogue:
    """All known instance types.

    Attributes:
        learned: types as EC2 described them, by name, if that differs from the shipped table.
        quotas: instances that training jobs may use at once, by type (Service Quotas, "<type> for training job
            usage"); absent types have no known limit.
        learned_at: when EC2 last answered, UTC; None if it never did.
        prices: on-demand prices of AWS's price list in this Region, by type, in US dollars an hour; they override the
            shipped ones.
        priced_at: when the price list was last read, UTC; None if it never was.
        reported: quotas that SageMaker reported with refusals, by source of instances (`units.source`).
    """

    learned: Mapping[str, InstanceType] = field(default_factory=dict)
    quotas: Mapping[str, int] = field(default_factory=dict)
    learned_at: datetime | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    priced_at: datetime | None = None
    reported: Mapping[str, ReportedQuota] = field(default_factory=dict)

    def type_of(self, name: str) -> InstanceType | None:
        """Return an instance type; None if it is unknown."""
        return self._priced.get(name) or self.learned.get(name) or SHIPPED.get(name)

    @cached_property
    def types(self) -> tuple[InstanceType, ...]:
        """All types that training jobs can use, by name."""
        return tuple(type_ for _, type_ in sorted({**SHIPPED, **self.learned, **self._priced}.items()))

    @cached_property
    def _priced(self) -> Mapping[str, InstanceType]:
        """The known types with prices of the price list; a price alone makes no type known."""
        known = ((self.learned.get(name) or SHIPPED.get(name), price) for name, price in self.prices.items())
        return {kind.name: replace(kind, price=price) for kind, price in known if kind is not None}

    def of_pool(self, pool: Pool) -> InstanceType:
        """Return the resources of a pool's instance: its settings, completed by what is known of its type."""
        if pool not in self._of_pools:
            self._of_pools[pool] = self._with_pool_values(pool)
        return self._of_pools[pool]

    @cached_property
    def _of_pools(self) -> dict[Pool, InstanceType]:
        """Cache of `of_pool`, since every pass calls it for each pool."""
        return {}

    def _with_pool_values(self, pool: Pool) -> InstanceType:
        known = self.type_of(pool.instance_type) or InstanceType(name=pool.instance_type)
        values: dict[str, Any] = {
            "vcpus": pool.vcpus,
            "memory_gib": pool.memory_gib,
            "accelerators": pool.accelerators_per_unit,
            "accelerator": pool.accelerator,
            "accelerator_memory_gib": pool.accelerator_memory_gib,
            "price": pool.price,
        }
        given = {name: value for name, value in values.items() if value}
        return replace(known, **given) if given else known

    def price_at_most(self, kind: InstanceType) -> float:
        """Return the type's hourly price; if unknown, the lowest price of types with at least its resources.

        Infinite if there are none.
        """
        return kind.price or self._ceilings.get(kind.name, inf)

    @cached_property
    def _ceilings(self) -> Mapping[str, float]:
        """For types without a price: the lowest price of types with at least their resources."""
        priced = sorted((type_ for type_ in self.types if type_.price), key=lambda type_: (type_.price, type_.name))
        found = ((type_.name, next((n.price for n in priced if n.has_all_of(type_)), inf)) for type_ in self.types)
        return dict(found)

    def covering(self, resources: Resources) -> Iterator[InstanceType]:
        """Yield the types that cover a demand, by name."""
        return (type_ for type_ in self.types if resources.covered_by(type_))


AS_SHIPPED = Catalogue()
"""The catalogue without anything learned."""
