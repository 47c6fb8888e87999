"""Refresh the catalogue of instance types, prices and quotas from AWS: once a day, after a tick's pass.

Known values stay if AWS does not answer, or leaves them out of its answer. Without the permissions, the queue works
with the catalogue that ships with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.reported_quotas import without_larger
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.errors import ServiceError
from trainmaster.domain.policy.settings import Expansion
from trainmaster.ports.catalogue import InstanceTypes, Prices, Quotas
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import CatalogueStore, QueueSettings, Store

log = logging.getLogger(__name__)

AGE = timedelta(days=1)
"""Age at which the catalogue is refreshed; earlier if a pool has an unknown type."""
PAUSE = timedelta(hours=1)
"""Time between two checks of the age, and before a failed refresh is repeated."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of the catalogue.

    Attributes:
        types: EC2.
        quotas: Service Quotas, read only while the manager may create pools.
        prices: AWS's price list, read only then, or if such pools have a budget, so that it is known before.
    """

    types: InstanceTypes
    quotas: Quotas
    prices: Prices


class CatalogueRefresher:
    """Refreshes the catalogue when it is due; the time of its last check lives as long as the process.

    Args:
        store: the settings, with the stored catalogue.
        catalogues: receives the refreshed catalogue.
        sources: AWS.
    """

    def __init__(self, store: Store, catalogues: CatalogueStore, sources: Sources, clock: Clock) -> None:
        self._store = store
        self._catalogues = catalogues
        self._sources = sources
        self._clock = clock
        self._checked_at: datetime | None = None
        self._failing: set[str] = set()

    def refresh_if_due(self) -> bool:
        """Refresh the catalogue if it is due; return whether a new one was stored.

        Errors of AWS are logged, for each source once until it answers again.
        """
        now = self._clock.now()
        if self._checked_at is not None and now < self._checked_at + PAUSE:
            return False
        self._checked_at = now
        return self._read("the settings", lambda: self._refresh(self._store.settings(), now)) or False

    def _refresh(self, in_force: QueueSettings, now: datetime) -> bool:
        known, rules = in_force.catalogue, in_force.policy.expansion
        used = {pool.instance_type for pool in in_force.pools.values()}
        stale = _is_old(known.learned_at, now)
        after = self._with_prices(self._with_quotas(known, rules, stale=stale), rules, now)
        wants_types = stale or any(known.type_of(name) is None for name in used)
        names = {*SHIPPED, *after.quotas, *after.prices, *used}
        types = self._read("instance types", lambda: self._sources.types.describe(names)) if wants_types else None
        if types is None and after is known:
            return False
        self._catalogues.save_catalogue(after if types is None else merged(after, types, now))
        return True

    def _with_quotas(self, known: Catalogue, rules: Expansion, *, stale: bool) -> Catalogue:
        wanted = rules.enabled and (stale or not known.quotas)
        quotas = self._read("quotas", self._sources.quotas.quotas) if wanted else None
        if quotas is None:
            return known
        return replace(known, quotas=quotas or known.quotas, reported=without_larger(known.reported, quotas))

    def _with_prices(self, known: Catalogue, rules: Expansion, now: datetime) -> Catalogue:
        wanted = (rules.enabled or rules.dollars_per_hour is not None) and _is_old(known.priced_at, now)
        prices = self._read("prices", self._sources.prices.prices) if wanted else None
        return known if prices is None else replace(known, prices={**known.prices, **prices}, priced_at=now)

    def _read(self, source: str, read: Callable[[], T]) -> T | None:
        """Return the answer of a source; None if it failed."""
        try:
            answer = read()
        except ServiceError as error:
            if source not in self._failing:
                log.warning("could not refresh the catalogue", extra={"source": source, "cause": str(error)})
            self._failing.add(source)
            return None
        self._failing.discard(source)
        return answer


def _is_old(answered_at: datetime | None, now: datetime) -> bool:
    return answered_at is None or now >= answered_at + AGE


def merged(known: Catalogue, described: Mapping[str, InstanceType], now: datetime) -> Catalogue:
    """Return the catalogue after an answer of EC2.

    Types have the prices that ship, since EC2 gives none; those of the price list are stored beside them. Types that
    equal the shipped ones are not stored, so that a later release can correct them.
    """
    learned = dict(known.learned)
    for name, kind in described.items():
        unknown = InstanceType(name=name)
        after = _over(known.type_of(name) or unknown, kind)
        learned[name] = replace(after, price=SHIPPED.get(name, unknown).price)
    differing = {name: kind for name, kind in learned.items() if kind != SHIPPED.get(name)}
    return replace(known, learned=differing, learned_at=now)


def _over(known: InstanceType, described: InstanceType) -> InstanceType:
    """Return the known type with every attribute that EC2 gives."""
    values = ((field.name, getattr(described, field.name)) for field in fields(described))
    given: dict[str, Any] = {name: value for name, value in values if value}
    return replace(known, **given)
