"""The history of the manager's changes to its own pools: what changed, why, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.plan import Expand, PoolDecision, Retire
from trainmaster.domain.times import clock

MAX_EVENTS = 50
"""Number of stored events, the newest ones."""
MAX_NAMED = 5
"""Jobs that an event names; it counts the others."""


class PoolAction(StrEnum):
    """Change of a pool: created or enlarged, shrunk, removed."""

    EXPAND = "expand"
    SHRINK = "shrink"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True)
class PoolEvent:
    """One change of one pool.

    Attributes:
        at: UTC.
        action: the change.
        pool: the pool's name.
        instance_type: its type.
        before: its cap before; 0 if it was created.
        after: its cap afterwards; 0 if it was removed.
        dollars_per_hour: change of its maximum cost, in US dollars an hour; 0 if the price is unknown.
        made_for: the demand that the pool was made for.
        jobs: names of the first waiting jobs that caused it.
        job_count: the number of these jobs.
        why: the reason as a sentence.
    """

    at: datetime
    action: PoolAction
    pool: str
    instance_type: str
    before: int
    after: int
    dollars_per_hour: float = 0.0
    made_for: str = ""
    jobs: tuple[str, ...] = ()
    job_count: int = 0
    why: str = ""


def events(
    decided: Sequence[PoolDecision], pools: Mapping[str, Pool], catalogue: Catalogue, now: datetime
) -> Iterator[PoolEvent]:
    """Yield the events of these decisions.

    Args:
        decided: changes of the manager's pools.
        pools: the pools before.
        catalogue: the known types, for prices.
        now: UTC.
    """
    for decision in decided:
        pool, before = decision.pool, pools[decision.pool.name].cap if decision.pool.name in pools else 0
        after, jobs = (0, ()) if isinstance(decision, Retire) else (pool.cap, decision.jobs)
        price = catalogue.of_pool(pool).price
        yield PoolEvent(
            at=now,
            action=_action(decision),
            pool=pool.name,
            instance_type=pool.instance_type,
            before=before,
            after=after,
            dollars_per_hour=round((after - before) * price, 4),
            made_for=pool.made_for,
            jobs=jobs[:MAX_NAMED],
            job_count=len(jobs),
            why=_why(decision),
        )


def made_dollars(pools: Mapping[str, Pool], catalogue: Catalogue) -> float:
    """Return the hourly cost of the manager's pools when fully used, in US dollars; unknown prices count as 0."""
    return round(sum(pool.cap * catalogue.of_pool(pool).price for pool in pools.values() if pool.made_for), 4)


def _action(decided: PoolDecision) -> PoolAction:
    if isinstance(decided, Expand):
        return PoolAction.EXPAND
    return PoolAction.RETIRE if isinstance(decided, Retire) else PoolAction.SHRINK


def _why(decided: PoolDecision) -> str:
    if isinstance(decided, Expand):
        return "waiting jobs fit in no configured pool"
    if decided.idle_since is None:
        return "the rest was idle, and a guardrail would have prevented other pools"
    return f"{'it' if isinstance(decided, Retire) else 'the rest'} has been idle since {clock(decided.idle_since)}"
