"""Join pools whose jobs compete: those that a job can run in either of. Their accelerators are added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.domain.capacity.units import Pool, Units
from trainmaster.domain.jobs.job import Job


@dataclass(slots=True)
class Competitions:
    """Groups of pools whose jobs compete, each named after one of its pools.

    Attributes:
        pools: the known pools.
        external: units that others hold, which no job can have.
    """

    pools: Mapping[str, Pool]
    external: Units
    _parents: dict[str, str] = field(default_factory=dict)
    _capacity: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, pools: Mapping[str, Pool], external: Units, active: Iterable[Job], waiting: Iterable[Job] = ()
    ) -> Competitions:
        """Return the groups that these jobs make."""
        found = cls(pools, external)
        # Waiting jobs with an equal key run in the same pools; a deep queue has few keys.
        alike = {job.equivalence_key or job.name: job for job in waiting}
        for names in {_pools_of(job) for job in (*active, *alike.values())}:
            for name in names[1:]:
                found._parents[found._root(name)] = found._root(names[0])
        return found

    def group(self, job: Job) -> str:
        """Return the group in which a job competes; "" for a job that no pool could hold."""
        names = _pools_of(job)
        return self._root(names[0]) if names else ""

    def capacity(self, group: str) -> int:
        """Return the accelerators of a group, at least 1."""
        if group not in self._capacity:
            caps = (self._accelerators(pool) for pool in self.pools.values() if self._root(pool.name) == group)
            self._capacity[group] = max(sum(caps), 1)
        return self._capacity[group]

    def width(self, job: Job) -> int:
        """Return the accelerators of the job's largest alternative, at least 1; every unit counts at least one."""
        return max((self._width(units) for units in job.demand.alternatives), default=max(job.demand.size, 1))

    def _width(self, units: Units) -> int:
        pools = self.pools
        return max(sum(n * max(pools[name].accelerators if name in pools else 1, 1) for name, n in units.items()), 1)

    def _accelerators(self, pool: Pool) -> int:
        return max(pool.cap - self.external.get(pool.name, 0), 0) * max(pool.accelerators, 1)

    def _root(self, name: str) -> str:
        parents = self._parents
        while name in parents and parents[name] != name:
            name = parents[name]
        return name


def _pools_of(job: Job) -> tuple[str, ...]:
    """Return the pools that a job holds units of or can run in."""
    alternatives, held = job.demand.alternatives, job.units
    if len(alternatives) == 1 and (not held or held.keys() == alternatives[0].keys()):
        return tuple(alternatives[0])  # nearly always, and much faster
    return tuple({name: None for units in (held, *alternatives) for name in units})
