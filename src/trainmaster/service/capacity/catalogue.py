"""Learning what AWS says of instance types, their prices and the account's quotas: once a day, after a tick's pass.

Never in a pass. What was learned stays where AWS does not answer, and nothing that it leaves out erases what is known.
It must not decide what follows from an answer, nor stop anything: a queue whose manager may not ask works with what
ships.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.errors import ServiceTrouble
from trainmaster.domain.policy.settings import Expansion
from trainmaster.ports.catalogue import InstanceTypes, Prices, Quotas
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import CatalogueStore, QueueSettings, Store

log = logging.getLogger(__name__)

AGE = timedelta(days=1)
"""After this long it is asked again; earlier where a pool has a type that nobody knows."""
PAUSE = timedelta(hours=1)
"""Between two looks at whether it is time to ask; so long does a failure rest, too."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sources:
    """Whom to ask.

    Attributes:
        types: EC2.
        quotas: Service Quotas, asked only while the queue may make pools: nothing else needs them.
        prices: AWS's price list, asked only then and where such pools have a budget, so that it can be tried before.
    """

    types: InstanceTypes
    quotas: Quotas
    prices: Prices


class CatalogueRefresher:
    """Asks where it is time to; what it remembers of its asking lives as long as the process.

    Args:
        knowledge: where what was learned is kept.
        sources: whom to ask.
    """

    def __init__(self, store: Store, knowledge: CatalogueStore, sources: Sources, clock: Clock) -> None:
        self._store = store
        self._knowledge = knowledge
        self._sources = sources
        self._clock = clock
        self._looked_at: datetime | None = None
        self._refused: set[str] = set()

    def learn(self) -> bool:
        """Ask AWS if it is time to, and keep what it says; whether anything was kept.

        Trouble at AWS is logged, of each kind of question once until it is answered again.
        """
        now = self._clock.now()
        if self._looked_at is not None and now < self._looked_at + PAUSE:
            return False
        self._looked_at = now
        return self._tried("the settings", lambda: self._learn(self._store.settings(), now)) or False

    def _learn(self, in_force: QueueSettings, now: datetime) -> bool:
        known, rules = in_force.catalogue, in_force.policy.expansion
        used = {pool.instance_type for pool in in_force.pools.values()}
        stale = _is_old(known.learned_at, now)
        after = self._with_prices(self._with_quotas(known, rules, stale=stale), rules, now)
        wants_types = stale or any(known.type_of(name) is None for name in used)
        names = {*SHIPPED, *after.quotas, *after.prices, *used}
        types = self._tried("instance types", lambda: self._sources.types.describe(names)) if wants_types else None
        if types is None and after is known:
            return False
        self._knowledge.save_catalogue(after if types is None else merged(after, types, now))
        return True

    def _with_quotas(self, known: Catalogue, rules: Expansion, *, stale: bool) -> Catalogue:
        wanted = rules.enabled and (stale or not known.quotas)
        quotas = self._tried("quotas", self._sources.quotas.quotas) if wanted else None
        return known if quotas is None else replace(known, quotas=quotas or known.quotas)

    def _with_prices(self, known: Catalogue, rules: Expansion, now: datetime) -> Catalogue:
        wanted = (rules.enabled or rules.dollars_per_hour is not None) and _is_old(known.priced_at, now)
        told = self._tried("prices", self._sources.prices.prices) if wanted else None
        return known if told is None else replace(known, prices={**known.prices, **told}, priced_at=now)

    def _tried(self, what: str, ask: Callable[[], T]) -> T | None:
        """The answer; None where there is none."""
        try:
            answer = ask()
        except ServiceTrouble as error:
            if what not in self._refused:
                log.warning("cannot learn; what is known stays", extra={"of": what, "cause": str(error)})
            self._refused.add(what)
            return None
        self._refused.discard(what)
        return answer


def _is_old(answered_at: datetime | None, now: datetime) -> bool:
    return answered_at is None or now >= answered_at + AGE


def merged(known: Catalogue, told: Mapping[str, InstanceType], now: datetime) -> Catalogue:
    """The catalogue after an answer of EC2.

    Types have the prices that ship, since EC2 tells none; those of the price list are kept beside them. Types that
    are as they ship are not kept: a later release may know better.
    """
    learned = dict(known.learned)
    for name, kind in told.items():
        unknown = InstanceType(name=name)
        after = _over(known.type_of(name) or unknown, kind)
        learned[name] = replace(after, price=SHIPPED.get(name, unknown).price)
    differing = {name: kind for name, kind in learned.items() if kind != SHIPPED.get(name)}
    return replace(known, learned=differing, learned_at=now)


def _over(known: InstanceType, told: InstanceType) -> InstanceType:
    given: dict[str, Any] = {each.name: getattr(told, each.name) for each in fields(told) if getattr(told, each.name)}
    return replace(known, **given)
