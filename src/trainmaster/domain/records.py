"""What the queue remembers of ended attempts: how long jobs run, and what shares have used.

Kept small on purpose: one row of the table holds it all. Every value is a function of the one before and of what
ended, so a store books an attempt in the very commit that ends it. It must not read a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity import Pool
from trainmaster.domain.history import History
from trainmaster.domain.job import ACTIVE, Job
from trainmaster.domain.policy import Policy
from trainmaster.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class Records:
    """All that is remembered beyond the jobs themselves.

    Attributes:
        released: when an attempt last ended in a pool that the manager had made, by pool.
    """

    history: History = field(default_factory=History)
    usage: Usage = field(default_factory=Usage)
    released: Mapping[str, datetime] = field(default_factory=dict)


def ends_attempt(before: Job, after: Job) -> bool:
    """Whether this change gives back the capacity of an attempt."""
    return before.state in ACTIVE and after.state not in ACTIVE


def booked(records: Records, before: Job, after: Job, policy: Policy, pools: Mapping[str, Pool]) -> Records:
    """The records after a change of a job; the same where the change ends no attempt."""
    if not ends_attempt(before, after):
        return records
    usage = records.usage.after(before, after, policy, pools)
    gpus = sum(count * (pools[name].accelerators if name in pools else 1) for name, count in before.units.items())
    return Records(records.history.after(after, gpus), usage, _released(records.released, before, after, pools))


def _released(
    released: Mapping[str, datetime], before: Job, after: Job, pools: Mapping[str, Pool]
) -> Mapping[str, datetime]:
    """As it is after an attempt has ended; pools that are gone are forgotten."""
    made = {name for name, pool in pools.items() if pool.made_for}
    attempt = after.attempt
    ended = None if attempt is None else attempt.ended_at
    now = {name: ended for name in before.units if name in made and ended is not None}
    return {**{name: at for name, at in released.items() if name in made}, **now}
