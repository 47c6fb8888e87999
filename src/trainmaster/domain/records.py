"""What the queue remembers of ended attempts: how long jobs run, and what shares have used.

Kept small on purpose: one row of the table holds it all. Every value is a function of the one before and of what
ended, so a store books an attempt in the very commit that ends it. It must not read a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.domain.capacity import Pool
from trainmaster.domain.history import History
from trainmaster.domain.job import ACTIVE, Job
from trainmaster.domain.policy import Policy
from trainmaster.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class Records:
    """All that is remembered beyond the jobs themselves."""

    history: History = field(default_factory=History)
    usage: Usage = field(default_factory=Usage)


def ends_attempt(before: Job, after: Job) -> bool:
    """Whether this change gives back the capacity of an attempt."""
    return before.state in ACTIVE and after.state not in ACTIVE


def booked(records: Records, before: Job, after: Job, policy: Policy, pools: Mapping[str, Pool]) -> Records:
    """The records after a change of a job; the same where the change ends no attempt."""
    if not ends_attempt(before, after):
        return records
    usage = records.usage.after(before, after, policy, pools)
    gpus = sum(count * (pools[name].accelerators if name in pools else 1) for name, count in before.units.items())
    return Records(records.history.after(after, gpus), usage)
