"""Check whether a pool could ever hold what a request asks for.

A request that no pool could ever hold is refused; one that only needs a new or larger pool is accepted with a warning.
Current usage does not matter: a job may wait for others to end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Demand, Pool, Units, covers
from trainmaster.domain.errors import NeverFits, Refused
from trainmaster.domain.policy.settings import Expansion
from trainmaster.domain.requests.resource_text import MEMBERS
from trainmaster.domain.requests.tags import option_field
from trainmaster.planner.expansion.guardrails import ManagedPools
from trainmaster.ports.store import Request

MAX_NAMED = 3
"""Instance types that a message lists."""


@dataclass(frozen=True, slots=True)
class FeasibilityCheck:
    """The capacity that demands are checked against.

    Attributes:
        pools: the pools in force.
        expansion: the rules by which the manager makes pools of its own.
        catalogue: the known instance types.
    """

    pools: Mapping[str, Pool]
    expansion: Expansion
    catalogue: Catalogue

    def check(self, request: Request, demand: Demand) -> list[str]:
        """Return a warning if no pool, even when empty, can hold the demand now; else nothing.

        Args:
            request: the request; errors name the field of it.
            demand: its demand, resolved against the pools.

        Raises `NeverFits` if no change of the pools helps, or if a job that names instance types would block the queue
        forever.
        """
        caps = {name: pool.cap for name, pool in self.pools.items()}
        if any(covers(caps, units) for units in demand.alternatives):
            return []
        if demand.resources is not None:
            return [self._infeasible(request, demand, demand.resources)]
        if (units := self._creatable(demand)) is not None:
            return [f"No pool can hold {units} now: this job waits until the manager has created one."]
        raise _never_fits(demand.alternatives[0], caps)

    def _creatable(self, demand: Demand) -> str | None:
        """Return the first alternative for which the manager would create a pool, as text; None if there is none."""
        for units in () if demand.queue_selects_pool else demand.alternatives:
            (name, count), *others = units.items()
            pool = self.pools.get(name, Pool(name, 0))
            kind = self.catalogue.type_of(pool.instance_type)
            if kind is not None and not others and self._allows(kind, count, name):
                return f"{count} x {kind.name}"
        return None

    def _allows(self, kind: InstanceType, count: int, name: str = "") -> bool:
        """Return whether the manager may create a pool of this size after it has removed its pools of other types."""
        remaining = {
            other: pool for other, pool in self.pools.items() if not pool.made_for or pool.instance_type == kind.name
        }
        making = ManagedPools(self.expansion, remaining, self.catalogue)
        return self.expansion.enabled and not making.refusal(kind, count, name)

    def _infeasible(self, request: Request, demand: Demand, asked: Resources) -> str:
        types, count = list(self.catalogue.covering(asked)), demand.instances
        if not types and not any(asked.covered_by(self.catalogue.of_pool(pool)) for pool in self.pools.values()):
            raise NeverFits(
                f"No instance type has {asked}.",
                field=option_field(request, "resources"),
                hint=f"Request less of each instance: {'; '.join(self._largest(asked))}.",
            )
        remedies = ", or ".join(self._remedies(demand, types))
        missing = f"no pool, even when empty, can hold {count} x ({asked})"
        if any(self._allows(kind, count) for kind in types):
            own = "The manager creates one if the rules of the job's share allow it"
            return f"Infeasible for now: {missing}. {own}; otherwise: {remedies}."
        return f"Infeasible for now: {missing}, so this job waits until one can. Possible remedies: {remedies}."

    def _remedies(self, demand: Demand, types: Sequence[InstanceType]) -> Iterator[str]:
        count = demand.instances
        pools = [self.pools[name] for name in demand.pools if name in self.pools]
        if pools:
            largest = max(pools, key=lambda pool: (pool.cap, pool.name))
            yield f"a cap of {count} for {largest.name}, which has {largest.cap}"
        if types:
            names = [kind.name for kind in sorted(types, key=lambda kind: (kind.price or math.inf, kind.name))]
            more = " or another such type" if names[MAX_NAMED:] else ""
            yield f"a pool of {count} x {' or '.join(names[:MAX_NAMED])}{more}"

    def _largest(self, asked: Resources) -> Iterator[str]:
        """Yield, for each requested attribute, the largest value of any instance type."""
        kinds = [*self.catalogue.types, *map(self.catalogue.of_pool, self.pools.values())]
        for name in MEMBERS:
            wanted = getattr(asked, name)
            if isinstance(wanted, str) and wanted:
                makers = sorted({kind.accelerator for kind in kinds if kind.accelerator})
                yield f"known manufacturers of accelerators: {', '.join(makers) or 'none'}"
            elif wanted and kinds:
                best = max(kinds, key=lambda kind: (getattr(kind, name), kind.name))
                yield f"the maximum {name} is {getattr(best, name):g} ({best.name})"


def _never_fits(units: Units, caps: Mapping[str, int]) -> Refused:
    pool, needed = next((name, count) for name, count in units.items() if count > caps.get(name, 0))
    known = ", ".join(f"{name}={cap}" for name, cap in sorted(caps.items())) or "none"
    if pool not in caps:
        return NeverFits(
            f"There is no pool for {pool}.",
            field="ResourceConfig",
            hint=f"The pools are: {known}. Use one of their types, or add a pool (PUT /pools).",
        )
    return NeverFits(
        f"The job needs {needed} x {pool}, and the pool's cap is {caps[pool]}.",
        field="ResourceConfig",
        hint="Request fewer instances, or raise the cap (PUT /pools).",
    )
