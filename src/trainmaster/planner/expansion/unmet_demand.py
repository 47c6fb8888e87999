"""Demands that no configured pool could ever hold: each once, with its jobs and the types that would hold it.

A demand is infeasible if no pool at all could hold it; otherwise it depends on made pools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import Demand, Units, covers
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Choose

Key = tuple[object, ...]
"""A key that is equal for jobs with the same request."""


@dataclass(frozen=True, slots=True)
class Option:
    """A type that would hold a demand, and how many instances of it one job needs.

    Attributes:
        kind: the type.
        instances: instances of one job.
        pool: the name that its pool must have, for a job that names it; "" for any name.
    """

    kind: InstanceType
    instances: int
    pool: str = ""


@dataclass(slots=True)
class UnmetDemand:
    """One distinct demand.

    Attributes:
        words: the demand in words.
        options: best first.
        infeasible: whether no pool at all could hold it.
        jobs: waiting jobs with it, in queue order.
    """

    words: str
    options: tuple[Option, ...]
    infeasible: bool
    jobs: list[Job] = field(default_factory=list)


def caps_of(snapshot: Snapshot) -> dict[str, int]:
    """Return what the pools hold at most; 0 for those that are being drained.

    As in the plan itself (`open_ledger`), units of external training jobs do not lower a cap.
    """
    return {name: 0 if pool.draining else pool.cap for name, pool in snapshot.pools.items()}


def unmet_demands(snapshot: Snapshot) -> list[UnmetDemand]:
    """Return the demands of waiting jobs that no configured pool could hold, in queue order, each once (algorithm 5).

    Args:
        snapshot: resolved, with its waiting jobs in queue order.
    """
    caps = caps_of(snapshot)
    configured = {name: cap for name, cap in caps.items() if not snapshot.pools[name].made_for}
    found: dict[Key, UnmetDemand | None] = {}
    for job in snapshot.waiting:
        key = _key(job.demand)
        if key not in found:
            alternatives = job.demand.alternatives
            held = any(covers(configured, units) for units in alternatives)
            found[key] = None if held else _unmet_demand(job.demand, snapshot, caps)
        if (entry := found[key]) is not None:
            entry.jobs.append(job)
    return [entry for entry in found.values() if entry is not None]


def _key(demand: Demand) -> Key:
    """Return the resources, the number of instances, and the pools that the demand lists itself."""
    listed = demand.alternatives if demand.resources is None else demand.alternatives[: demand.listed]
    return (demand.resources, demand.instances, tuple(tuple(units.items()) for units in listed))


def _unmet_demand(demand: Demand, snapshot: Snapshot, caps: Mapping[str, int]) -> UnmetDemand:
    infeasible = not any(covers(caps, units) for units in demand.alternatives)
    return UnmetDemand(_words(demand), tuple(_options(demand, snapshot)), infeasible)


def _words(demand: Demand) -> str:
    if demand.resources is not None:
        return f"{demand.instances} x ({demand.resources})"
    return " or ".join(map(_units_words, demand.alternatives))


def _units_words(units: Units) -> str:
    return " and ".join(f"{count} x {name}" for name, count in units.items())


def _options(demand: Demand, snapshot: Snapshot) -> Iterator[Option]:
    """Yield what the job lists itself, in its order; then the types that cover its resources, as the settings choose.

    A job that takes instances of several types together needs several pools at once, so it gets no options.
    """
    catalogue, asked = snapshot.catalogue, demand.resources
    for units in demand.alternatives if asked is None else demand.alternatives[: demand.listed]:
        for name, count in units.items() if len(units) == 1 else ():
            if (kind := catalogue.type_of(name)) is not None:
                yield Option(kind, count, name)
    if asked is not None:
        rank = _RANKS[snapshot.policy.expansion.choose]
        covering = sorted(catalogue.covering(asked), key=lambda kind: rank(kind, catalogue))
        yield from (Option(kind, demand.instances) for kind in covering)


Rank = tuple[float | str, ...]


def _size(kind: InstanceType) -> Rank:
    return (kind.accelerators, kind.accelerator_memory_gib, kind.vcpus, kind.memory_gib)


def _cheapest(kind: InstanceType, catalogue: Catalogue) -> Rank:
    """Return a key by price; an unknown price counts as no more than that of a type with as much of everything."""
    return (catalogue.price_at_most(kind), *_size(kind), not kind.price, kind.name)


def _smallest(kind: InstanceType, _catalogue: Catalogue) -> Rank:
    return (*_size(kind), kind.price or inf, kind.name)


_RANKS = {Choose.CHEAPEST: _cheapest, Choose.SMALLEST: _smallest}
