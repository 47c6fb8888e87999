"""Records of ended attempts: run times, and usage of shares.

They fit into one row of the table. The store books an attempt in the transaction that ends it or changes its units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.domain.capacity.refusals import Refusal, after_end
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.shares.charging import books, ended_by, pause_of
from trainmaster.domain.shares.thresholds import Told
from trainmaster.domain.shares.usage import Usage, accelerators_of


@dataclass(frozen=True, slots=True)
class Records:
    """Records beyond the jobs themselves.

    Attributes:
        released: when an attempt last ended, by pool of the manager's own.
        freed: when jobs last gave instances of a pool back to SageMaker, by pool; it ends the back-off of other jobs.
        told: the highest threshold of its budget that was told, by share.
        refusals: the last refused start of each refused kind of jobs.
    """

    history: History = field(default_factory=History)
    usage: Usage = field(default_factory=Usage)
    released: Mapping[str, datetime] = field(default_factory=dict)
    freed: Mapping[str, datetime] = field(default_factory=dict)
    told: Mapping[str, Told] = field(default_factory=dict)
    refusals: Mapping[str, Refusal] = field(default_factory=dict)


def booked(records: Records, before: Job, after: Job, policy: Policy, pools: Mapping[str, Pool]) -> Records:
    """Return the records after a change of a job; unchanged if it ends no attempt and changes no size."""
    if not books(before, after):
        return records
    usage, history, released = records.usage.after(before, after, policy, pools), records.history, records.released
    refusals = records.refusals
    if (ended := ended_by(before, after)) is not None:
        history = history.after(_at_its_end(after, ended), accelerators_of(ended.units, pools))
        released = _released(released, before, ended, pools)
        refusals = after_end(refusals, after, ended)
    if (pause := pause_of(before, after)) is not None:
        history = history.paused(before, pause.total_seconds())
    freed = _freed(records.freed, before, after, pools)
    return Records(history, usage, released, freed, records.told, refusals)


def _at_its_end(job: Job, ended: Attempt) -> Job:
    """Return the job with this attempt as its newest, since another may follow in the same change."""
    return job if job.attempt == ended else replace(job, attempt=ended, past=job.past[:-1])


def _released(
    released: Mapping[str, datetime], before: Job, attempt: Attempt, pools: Mapping[str, Pool]
) -> Mapping[str, datetime]:
    """Return `released` after the end of an attempt, without pools that no longer exist."""
    made = {name for name, pool in pools.items() if pool.made_for}
    ended = attempt.ended_at
    now = {name: ended for name in before.units if name in made and ended is not None}
    return {**{name: at for name, at in released.items() if name in made}, **now}


def _freed(freed: Mapping[str, datetime], before: Job, after: Job, pools: Mapping[str, Pool]) -> Mapping[str, datetime]:
    """Return `freed` after a change, without pools that no longer exist.

    An attempt or a growth that got no instances gives none back, although the queue had counted them as held.
    """
    ended, attempt = ended_by(before, after), before.attempt
    refused = ended is not None and (ended.outcome is Outcome.RETURNED or ended.found_no_capacity)
    growing = attempt is not None and attempt.resizing is not None and attempt.resizing.grows
    if refused or not after.history or (growing and ended is None):
        return freed
    # SageMaker's clock may say that it ended earlier, but the queue starts nothing on the instances before it knows.
    at, left = after.history[-1].at, after.units
    sized_at = after.attempt.sized_at if after.attempt is not None and ended is None else None
    given = [name for name, count in before.units.items() if left.get(name, 0) < count]
    kept = {**freed, **dict.fromkeys(given, max(at, sized_at or at))}
    return {name: since for name, since in kept.items() if name in pools}
