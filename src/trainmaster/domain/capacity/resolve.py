"""Resolve demands by resources into demands of the pools in force.

Pools come and go, so every pass resolves them again. The planner's placement policies choose among the pools.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool, Units, covers
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import PoolDecision, Retire, Snapshot
from trainmaster.domain.shares.entitlement import Entitlements


@dataclass(frozen=True)
class Offers:
    """The pools that a demand by resources may use, each with the resources of its instances; built once a pass.

    Spot pools and training plans are only for jobs that name them: a demand by resources does not accept interruptions,
    or the end of a plan.
    """

    pools: Mapping[str, Pool]
    catalogue: Catalogue

    @cached_property
    def kinds(self) -> tuple[tuple[Pool, InstanceType], ...]:
        """Pools with their instance types, by name."""
        ordered = (pool for _, pool in sorted(self.pools.items()) if pool.kind is Kind.ON_DEMAND)
        return tuple((pool, self.catalogue.of_pool(pool)) for pool in ordered)

    @cached_property
    def caps(self) -> Units:
        """The caps of the configured pools."""
        return {name: pool.cap for name, pool in self.pools.items() if not (pool.made_for or pool.draining)}

    def covering(self, asked: Resources) -> tuple[Pool, ...]:
        """Return the pools whose type covers the resources, by name; cached, since many demands are alike."""
        if asked not in self._covering:
            self._covering[asked] = tuple(pool for pool, kind in self.kinds if asked.covered_by(kind))
        return self._covering[asked]

    @cached_property
    def _covering(self) -> dict[Resources, tuple[Pool, ...]]:
        return {}


def candidates(demand: Demand, offers: Offers) -> Iterator[str]:
    """Yield the pools whose type covers a demand by resources, by name, without those that it lists itself.

    The manager's own pools are only for jobs that no configured pool could hold.
    """
    if demand.resources is None:
        return
    own = demand.alternatives[: demand.listed]
    listed = {name for units in own for name in units}
    covering = [pool for pool in offers.covering(demand.resources) if pool.name not in listed]
    caps, count = offers.caps, demand.instances
    settled = any(covers(caps, units) for units in own) or any(caps.get(pool.name, 0) >= count for pool in covering)
    yield from (pool.name for pool in covering if not (settled and pool.made_for))


def resolved(demand: Demand, offers: Offers) -> Demand:
    """Return the demand with all its alternatives among these pools; unchanged if it names its pools itself."""
    if demand.resources is None:
        return demand
    found: list[Units] = [{name: demand.instances} for name in candidates(demand, offers)]
    alternatives = (*demand.alternatives[: demand.listed], *found)
    return demand if alternatives == demand.alternatives else replace(demand, alternatives=alternatives)


def resolve(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with all demands resolved against its pools; unchanged if none depends on them.

    Demands for services are cut to what these take, and to what their shares may have of that, so that a larger job
    starts when nothing else runs there.
    """
    jobs = (*snapshot.active, *snapshot.special)
    if not any(job.demand.resources is not None or job.work is not None for job in jobs):
        return snapshot
    offers, known = Offers(snapshot.pools, snapshot.catalogue), dict[Hashable, Demand]()
    rules = _Rules(Entitlements(snapshot.policy, snapshot.pools, snapshot.external)) if snapshot.policy.shares else None
    return replace(
        snapshot,
        active=tuple(_resolved(job, offers, known, rules) for job in snapshot.active),
        waiting=tuple(_resolved(job, offers, known, rules) for job in snapshot.waiting),
    )


def with_changes(snapshot: Snapshot, changes: Sequence[PoolDecision]) -> Snapshot:
    """Return the snapshot with these changes of pools, so that jobs that need them start at once."""
    return resolve(replace(snapshot, pools=pools_after(snapshot.pools, changes))) if changes else snapshot


def pools_after(pools: Mapping[str, Pool], changes: Sequence[PoolDecision]) -> dict[str, Pool]:
    """Return the pools after these changes."""
    gone = {change.pool.name for change in changes if isinstance(change, Retire)}
    left = {name: pool for name, pool in pools.items() if name not in gone}
    return left | {change.pool.name: change.pool for change in changes if not isinstance(change, Retire)}


@dataclass(frozen=True, slots=True)
class _Rules:
    """Limits of shares at services; computed once for all jobs of a share at one service."""

    entitlements: Entitlements
    known: dict[tuple[str, str], int] = field(default_factory=dict)

    def max_units(self, share: str, pool: str) -> int:
        if (share, pool) not in self.known:
            self.known[share, pool] = self.entitlements.max_units(share, pool)
        return self.known[share, pool]


def _resolved(job: Job, offers: Offers, known: dict[Hashable, Demand], rules: _Rules | None) -> Job:
    """Return the job with its demand resolved; equal demands are resolved once, cached in `known`."""
    asked = job.demand
    if job.work is not None:
        pool = offers.pools.get(job.work.pool)
        cap = None if pool is None else pool.cap if rules is None else rules.max_units(job.share, pool.name)
        cut = job.work.demand(cap)
        return job if cut == asked else replace(job, demand=cut)
    if asked.resources is None:
        return job
    # Equal jobs share one object, which makes later comparisons cheap.
    if (demand := known.get(id(asked))) is None:
        own = (tuple(units.items()) for units in asked.alternatives[: asked.listed])
        key = (asked.resources, asked.instances, *own)
        if key not in known:
            known[key] = resolved(asked, offers)
        demand = known[id(asked)] = asked if known[key].alternatives == asked.alternatives else known[key]
    return job if demand is asked else replace(job, demand=demand)
