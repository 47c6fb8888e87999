"""Compare plan and forecast with and without a new job: which jobs start, which start later, which pools change.

Nothing is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.domain.capacity.pool_history import PoolEvent, events, made_dollars
from trainmaster.domain.capacity.resolve import pools_after, resolve
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Expand, Plan, Snapshot, Start, Wait
from trainmaster.planner.expansion.expand import plan_expansion
from trainmaster.planner.forecast.forecast import delays
from trainmaster.planner.schedule import schedule
from trainmaster.service.context import pass_rng
from trainmaster.service.explain.explain import with_jobs

MAX_DELAYED = 20
"""Jobs behind the new one whose delay is computed, those considered next first."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A job that would start later: its expected start now, and its expected start after the submission."""

    job: str
    expected: datetime
    after: datetime

    @property
    def by(self) -> timedelta:
        """The difference of the two."""
        return self.after - self.expected


@dataclass(frozen=True, slots=True)
class Consequences:
    """Consequences of a submission for the queue.

    Attributes:
        starts: jobs that the next pass starts only because of it.
        delays: jobs that start later because of it.
        creates: pools that would be created or enlarged for the job; if expansion is off, those it would create if on.
        refused: if expansion is off, why it would create no pool for the job if on; else empty.
        expands: whether expansion is on.
        changes: all changes that the next pass would make to the manager's own pools.
        dollars: upper limit of the cost of these pools, in US dollars an hour, before and after these changes; None if
            it was not computed.
    """

    starts: tuple[str, ...] = ()
    delays: tuple[Delay, ...] = ()
    creates: tuple[Expand, ...] = ()
    refused: str = ""
    expands: bool = False
    changes: tuple[PoolEvent, ...] = ()
    dollars: tuple[float, float] | None = None


def consequences(snapshot: Snapshot, now: datetime, job: Job) -> Consequences:
    """Return the consequences of submitting a job now.

    Args:
        snapshot: the queue.
        now: UTC.
        job: one that is not in the snapshot.
    """
    after = with_jobs(snapshot, [job])
    plans = [schedule(queue, now, pass_rng(snapshot)) for queue in (snapshot, after)]
    started = [[start.job.name for start in plan.starts] for plan in plans]
    wanted = frozenset(_considered_after(job, plans[1]))
    later = delays(snapshot, after, now, pass_rng(snapshot), schedule, wanted)
    return Consequences(
        tuple(name for name in started[1] if name not in started[0]),
        tuple(Delay(name, *starts) for name, starts in later.items()),
        *_creates(after, now, job),
        snapshot.policy.expansion.enabled,
        *_costs(snapshot, plans[1], now),
    )


def _costs(snapshot: Snapshot, plan: Plan, now: datetime) -> tuple[tuple[PoolEvent, ...], tuple[float, float]]:
    """Return the plan's changes of the manager's own pools, and their cost limit before and after."""
    after = pools_after(snapshot.pools, plan.of_pools)
    dollars = tuple(made_dollars(pools, snapshot.catalogue) for pools in (snapshot.pools, after))
    return tuple(events(plan.of_pools, snapshot.pools, snapshot.catalogue, now)), (dollars[0], dollars[1])


def _creates(snapshot: Snapshot, now: datetime, job: Job) -> tuple[tuple[Expand, ...], str]:
    """Return the pools that expansion, if on, creates for the job; if it is off, also why it would create none."""
    policy = snapshot.policy
    asked = replace(snapshot, policy=replace(policy, expansion=replace(policy.expansion, enabled=True)))
    found = plan_expansion(resolve(asked), now)
    expansions = (decision for decision in found.decisions if isinstance(decision, Expand))
    return tuple(
        expand for expand in expansions if job.name in expand.jobs
    ), "" if policy.expansion.enabled else found.refused.get(job.name, "")


def _considered_after(job: Job, plan: Plan) -> list[str]:
    """Return the names of the jobs that are considered next after the job."""
    names = [decision.job.name for decision in plan.decisions if isinstance(decision, Start | Wait)]
    first = names.index(job.name) + 1 if job.name in names else len(names)
    return names[first : first + MAX_DELAYED]
