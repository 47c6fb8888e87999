"""Whether pools could ever hold what a request asks for.

Refused where nothing could, let in with a warning where only a new or larger pool is missing. It must not look at what
is free: who waits for others to end has room.
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
from trainmaster.domain.requests import option_field
from trainmaster.domain.requests.resource_text import MEMBERS
from trainmaster.planner.expansion.guardrails import ManagedPools
from trainmaster.ports.store import Request

MAX_NAMED = 3
"""Instance types that a message names."""


@dataclass(frozen=True, slots=True)
class FeasibilityCheck:
    """What could ever be held.

    Attributes:
        pools: those in force.
        expansion: whether the manager makes pools for what none of them can hold.
        catalogue: what is known of instance types.
    """

    pools: Mapping[str, Pool]
    expansion: Expansion
    catalogue: Catalogue

    def warnings(self, request: Request, demand: Demand) -> list[str]:
        """What to beware of where no pool, even when empty, could hold the demand now.

        Args:
            request: whose demand it is; the field of a refusal is looked up in it.
            demand: resolved against the pools.

        Raises `NeverFits` where only another request helps, or where a job that names types would block a queue for
        ever (AWS Batch accepts it, and blocks).
        """
        caps = {name: pool.cap for name, pool in self.pools.items()}
        if any(covers(caps, units) for units in demand.alternatives):
            return []
        if demand.resources is not None:
            return [self._infeasible(request, demand, demand.resources)]
        if (made := self._made(demand)) is not None:
            return [f"No pool holds {made} now: this job waits until the manager has made one."]
        raise _never_fits(demand.alternatives[0], caps)

    def _made(self, demand: Demand) -> str | None:
        """The first alternative for which the manager would make a pool."""
        for units in () if demand.ours else demand.alternatives:
            (name, count), *others = units.items()
            pool = self.pools.get(name, Pool(name, 0))
            kind = self.catalogue.type_of(pool.instance_type)
            if kind is not None and not others and self._allows(kind, count, name):
                return f"{count} x {kind.name}"
        return None

    def _allows(self, kind: InstanceType, count: int, name: str = "") -> bool:
        """Whether the manager may make a pool of so many instances, once its pools of other types are gone."""
        others_gone = {
            each: pool for each, pool in self.pools.items() if not pool.made_for or pool.instance_type == kind.name
        }
        making = ManagedPools(self.expansion, others_gone, self.catalogue)
        return self.expansion.enabled and not making.refusal(kind, count, name)

    def _infeasible(self, request: Request, demand: Demand, asked: Resources) -> str:
        types, count = list(self.catalogue.covering(asked)), demand.instances
        if not types and not any(asked.covered_by(self.catalogue.of_pool(pool)) for pool in self.pools.values()):
            raise NeverFits(
                f"No instance type has {asked}.",
                field=option_field(request, "resources"),
                hint=f"Ask for less of each instance: {'; '.join(self._largest(asked))}.",
            )
        helps = ", or ".join(self._helpful(demand, types))
        by_itself = any(self._allows(kind, count) for kind in types)
        lacking = f"no pool, even when empty, holds {count} x ({asked})"
        if by_itself:
            own = "The manager makes one by itself where the rules of the job's share allow it"
            return f"Infeasible for now: {lacking}. {own}; otherwise: {helps}."
        return f"Infeasible for now: {lacking}, so this job waits until one does. What would help: {helps}."

    def _helpful(self, demand: Demand, types: Sequence[InstanceType]) -> Iterator[str]:
        count = demand.instances
        there = [self.pools[name] for name in demand.pools if name in self.pools]
        if there:
            pool = max(there, key=lambda each: (each.cap, each.name))
            yield f"a cap of {count} for {pool.name}, which has {pool.cap}"
        if types:
            names = [kind.name for kind in sorted(types, key=lambda kind: (kind.price or math.inf, kind.name))]
            more = " or another such type" if names[MAX_NAMED:] else ""
            yield f"a pool of {count} x {' or '.join(names[:MAX_NAMED])}{more}"

    def _largest(self, asked: Resources) -> Iterator[str]:
        """Of each member that is asked for, the most that any instance has."""
        kinds = [*self.catalogue.types, *map(self.catalogue.of_pool, self.pools.values())]
        for name in MEMBERS:
            wanted = getattr(asked, name)
            if isinstance(wanted, str) and wanted:
                makers = sorted({kind.accelerator for kind in kinds if kind.accelerator})
                yield f"accelerators are made by {', '.join(makers) or 'nobody'}"
            elif wanted and kinds:
                best = max(kinds, key=lambda kind: (getattr(kind, name), kind.name))
                yield f"the most {name} is {getattr(best, name):g} ({best.name})"


def _never_fits(units: Units, caps: Mapping[str, int]) -> Refused:
    pool, needed = next((name, count) for name, count in units.items() if count > caps.get(name, 0))
    known = ", ".join(f"{name}={cap}" for name, cap in sorted(caps.items())) or "none"
    if pool not in caps:
        return NeverFits(
            f"There is no pool for {pool}.",
            field="ResourceConfig",
            hint=f"The pools are: {known}. Use one of their types, or have a pool added (PUT /pools).",
        )
    return NeverFits(
        f"The job needs {needed} x {pool}, and the pool's cap is {caps[pool]}.",
        field="ResourceConfig",
        hint="Ask for fewer instances, or have the cap raised (PUT /pools).",
    )
