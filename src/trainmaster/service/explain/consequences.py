"""What a submission would do: who would start with it, who later because of it, which pools would be made for it.

Readers of the plan and of the forecast, with the job and without. They store nothing.
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
from trainmaster.service.explain.explain import next_pass_rng, with_jobs

MAX_DELAYED = 20
"""Jobs behind the new one that are looked at, first those that are considered next."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A job that would start later: when it is expected to start as things are, and when it would be then."""

    job: str
    expected: datetime
    then: datetime

    @property
    def by(self) -> timedelta:
        """How much later."""
        return self.then - self.expected


@dataclass(frozen=True, slots=True)
class Consequences:
    """What would come of a submission.

    Attributes:
        starts: jobs that the next pass would start, and would not without it.
        delays: jobs that would start later.
        creates: pools that would be made, or made larger, for the job; where expansion is off: if it were on.
        refused: where expansion is off: why it would make none for the job if it were on; empty where it would.
        expands: whether expansion is on.
        changes: all that the next pass would do to the manager's own pools, for the job or not.
        dollars: what all these pools may cost an hour: now, without that; and then. None where nothing was foreseen.
    """

    starts: tuple[str, ...] = ()
    delays: tuple[Delay, ...] = ()
    creates: tuple[Expand, ...] = ()
    refused: str = ""
    expands: bool = False
    changes: tuple[PoolEvent, ...] = ()
    dollars: tuple[float, float] | None = None


def consequences(snapshot: Snapshot, now: datetime, job: Job) -> Consequences:
    """What would come of the job if it were submitted now.

    Args:
        snapshot: the queue as read.
        now: UTC.
        job: one that is not in the snapshot.
    """
    after = with_jobs(snapshot, [job])
    plans = [schedule(each, now, next_pass_rng(snapshot)) for each in (snapshot, after)]
    started = [[start.job.name for start in plan.starts] for plan in plans]
    wanted = frozenset(_considered_after(job, plans[1]))
    later = delays(snapshot, after, now, next_pass_rng(snapshot), schedule, wanted)
    return Consequences(
        tuple(name for name in started[1] if name not in started[0]),
        tuple(Delay(name, expected, then) for name, (expected, then) in later.items()),
        *_creates(after, now, job),
        snapshot.policy.expansion.enabled,
        *_costs(snapshot, plans[1], now),
    )


def _costs(snapshot: Snapshot, plan: Plan, now: datetime) -> tuple[tuple[PoolEvent, ...], tuple[float, float]]:
    """What a pass does to the manager's own pools, and what they may cost before and after it."""
    then = pools_after(snapshot.pools, plan.of_pools)
    dollars = tuple(made_dollars(pools, snapshot.catalogue) for pools in (snapshot.pools, then))
    return tuple(events(plan.of_pools, snapshot.pools, snapshot.catalogue, now)), (dollars[0], dollars[1])


def _creates(snapshot: Snapshot, now: datetime, job: Job) -> tuple[tuple[Expand, ...], str]:
    """What expansion makes for the job, whether or not it is on; where it is off, why it would make nothing."""
    policy = snapshot.policy
    asked = replace(snapshot, policy=replace(policy, expansion=replace(policy.expansion, enabled=True)))
    found = plan_expansion(resolve(asked), now)
    made = tuple(each for each in found.decisions if isinstance(each, Expand) and job.name in each.jobs)
    return made, "" if policy.expansion.enabled else found.refused.get(job.name, "")


def _considered_after(job: Job, plan: Plan) -> list[str]:
    """The next that are considered after the job."""
    names = [decision.job.name for decision in plan.decisions if isinstance(decision, Start | Wait)]
    first = names.index(job.name) + 1 if job.name in names else len(names)
    return names[first : first + MAX_DELAYED]
