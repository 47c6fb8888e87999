"""Ceilings: what no change through the API can exceed, for the deployment and for each share.

The deployment's ceilings come with its parameters, those of a share with the settings, which only queue admins change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resolve import Offers, resolved
from trainmaster.domain.capacity.units import Kind, Pool, Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.policy.settings import Expansion, Share
from trainmaster.domain.requests.fields import Problem


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Ceilings of a deployment; None for none.

    Attributes:
        priority: highest priority of jobs.
        instances: highest sum of the caps of all pools, with `expansion.maxInstances` if pools may be created.
        dollars_per_hour: the same for their cost while all are in use, in US dollars.
    """

    priority: int | None = None
    instances: int | None = None
    dollars_per_hour: float | None = None

    @classmethod
    def parse(cls, text: str) -> Ceilings:
        """Return the ceilings in a text such as `priority=100,instances=64,dollarsPerHour=500`.

        Raises `ValueError` for an unknown name or a wrong number.
        """
        given = dict(part.strip().partition("=")[::2] for part in text.split(",") if part.strip())
        unknown = sorted(given.keys() - {"priority", "instances", "dollarsPerHour"})
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of priority, instances and dollarsPerHour")
        found = cls(
            priority=int(given["priority"]) if "priority" in given else None,
            instances=int(given["instances"]) if "instances" in given else None,
            dollars_per_hour=float(given["dollarsPerHour"]) if "dollarsPerHour" in given else None,
        )
        if abs(found.priority or 0) > MAX_PRIORITY or (found.instances or 0) < 0:
            raise ValueError(f"{text!r} has a number out of range")
        if not (isfinite(found.dollars_per_hour or 0) and (found.dollars_per_hour or 0) >= 0):
            raise ValueError(f"{text!r} has a number out of range")
        return found


NO_CEILINGS = Ceilings()
Capacity = tuple[Iterable[Pool], Expansion]
"""The pools, and the rules on those that the manager creates."""


def priority_problem(priority: int, field: str, ceilings: Ceilings, share: Share | None) -> Problem | None:
    """Return the problem of a priority above the ceiling of the deployment or of the job's share, if it is."""
    if ceilings.priority is not None and priority > ceilings.priority:
        return _above(field, f"priority {priority}", f"the deployment's ceiling, {ceilings.priority} (Ceilings)")
    if share is not None and share.max_priority is not None and priority > share.max_priority:
        ceiling = f"the ceiling of its share, {share.max_priority} (shares.{share.name}.maxPriority)"
        return _above(field, f"priority {priority}", ceiling)
    return None


def job_problems(job: Job, share: Share | None, pools: Mapping[str, Pool], catalogue: Catalogue) -> Iterator[Problem]:
    """Yield what of a job's size is above the ceilings of its share; each way in which it could run counts."""
    if share is None:
        return
    size, most = job.demand.instances or max(map(_count, job.demand.alternatives), default=0), share.max_job_instances
    largest = size if job.elastic is None else job.elastic.max_instances
    if most is not None and largest > most:
        ceiling = f"the ceiling of its share, {most} (shares.{share.name}.maxJobInstances)"
        yield _above("ResourceConfig", f"{largest} instances", ceiling)
    limit = share.max_job_dollars_per_hour
    for units in resolved(job.demand, Offers(pools, catalogue)).alternatives if limit is not None else ():
        cost = _cost(units, pools, catalogue) * (largest / size if size else 1)
        if limit is not None and cost > limit:
            ceiling = f"the ceiling of its share, {limit:g} (shares.{share.name}.maxJobDollarsPerHour)"
            yield _above("ResourceConfig", f"{_dollars(cost)} in {' and '.join(units)}", ceiling)


def settings_problems(ceilings: Ceilings, before: Capacity, after: Capacity, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield what of a change of pools or settings is above the deployment's ceilings.

    A change that lowers what is above a ceiling is no problem, though it stays above.

    Args:
        ceilings: the deployment's.
        before: the pools and the rules on expansion in force.
        after: those after the change.
        catalogue: the known instance types, for prices.
    """
    expands = after[1] != before[1]
    count, old_count = _instances(*after), _instances(*before)
    if ceilings.instances is not None and ceilings.instances < count > old_count:
        field = "expansion.maxInstances" if expands else "cap"
        ceiling = f"the deployment's ceiling, {ceilings.instances} (Ceilings)"
        yield _above(field, f"{count} instances of all pools", ceiling)
    cost, old_cost = _hourly(*after, catalogue), _hourly(*before, catalogue)
    limit = ceilings.dollars_per_hour
    if limit is not None and limit < cost > old_cost:
        field = "expansion.dollarsPerHour" if expands else "cap"
        yield _above(field, _dollars(cost) + " for all pools", f"the deployment's ceiling, {limit:g} (Ceilings)")


def _above(field: str, wanted: str, ceiling: str) -> Problem:
    return Problem(field, f"{wanted[0].upper()}{wanted[1:]} is more than {ceiling}.", "Lower it.")


def _count(units: Units) -> int:
    return sum(units.values())


def _dollars(cost: float) -> str:
    return "a cost without a bound" if cost == inf else f"{cost:,.2f} dollars an hour"


def _people(pools: Iterable[Pool]) -> Iterator[Pool]:
    """Yield the pools that people set; the manager's own are within the limits of the expansion."""
    return (pool for pool in pools if not pool.made_for and pool.kind is not Kind.SERVICE)


def _instances(pools: Iterable[Pool], expansion: Expansion) -> int:
    return sum(pool.cap for pool in _people(pools)) + (expansion.max_instances if expansion.enabled else 0)


def _hourly(pools: Iterable[Pool], expansion: Expansion, catalogue: Catalogue) -> float:
    """Return the highest cost an hour; unbounded for an expansion without a limit, or a pool without a price."""
    created = 0.0
    if expansion.enabled:
        created = inf if expansion.dollars_per_hour is None else expansion.dollars_per_hour
    return created + sum(pool.cap * (_price(pool, catalogue) or inf) for pool in _people(pools) if pool.cap)


def _price(pool: Pool, catalogue: Catalogue) -> float:
    """Return the price of an instance, on demand at least that of the price list; 0 if unknown."""
    known = catalogue.type_of(pool.instance_type)
    listed = 0.0 if known is None else known.price
    return max(pool.price, listed) if pool.kind is Kind.ON_DEMAND else pool.price or listed


def _cost(units: Units, pools: Mapping[str, Pool], catalogue: Catalogue) -> float:
    return sum(count * _price(pools[name], catalogue) for name, count in units.items() if name in pools)
