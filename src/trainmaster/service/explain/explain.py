"""Position, reason and estimated start of waiting jobs: readers of the very plan that a pass would make.

They store nothing. What they say can be out of date a moment later, as the queue moves on.
"""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.jobs.deadline import Outlook, outlook
from trainmaster.domain.jobs.job import ACTIVE, WAITING, Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.plan import Plan, Snapshot, Start, Wait
from trainmaster.domain.reasons.capacity import Preempts
from trainmaster.domain.reasons.reason import Reason
from trainmaster.planner.forecast.forecast import Estimate, estimate
from trainmaster.planner.orders import ranking_of
from trainmaster.planner.orders.ranking import in_order
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.schedule import schedule
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Store

MAX_ROWS = 4_000
"""Waiting jobs that are read in all, about, where some lie deeper in their lanes than a pass looks."""
FEWEST_OF_A_LANE, MAX_OF_A_LANE = 100, 1_000


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the plan says of one waiting job.

    Attributes:
        position: 1 for the first to be considered; None where the queue is too deep to count.
        at_least: where `position` is None: it is at least this.
        starts: whether it would start in the pass that comes next.
        reason: why it waits; None where it starts, or is not considered.
        estimated_start: when it is expected to start; None where that cannot be foreseen.
        earliest_start: when it would, if the jobs before it were quick for their kind.
        latest_start: when it would, if they were slow.
        outlook: how it stands to its deadline; None where it has none.
        takes: what it would take in that pass; empty where it does not start.
        considered: False for a job so deep in its lane that a pass does not look at it.
    """

    position: int | None
    at_least: int | None
    starts: bool
    reason: Reason | None
    estimated_start: datetime | None = None
    earliest_start: datetime | None = None
    latest_start: datetime | None = None
    outlook: Outlook | None = None
    takes: Mapping[str, int] = field(default_factory=dict)
    considered: bool = True

    @property
    def would_preempt(self) -> tuple[str, ...]:
        """The jobs that would step aside for it."""
        return self.reason.victims if isinstance(self.reason, Preempts) else ()


def explain(
    store: Store, now: datetime, jobs: Iterable[Job], snapshot: Snapshot | None = None
) -> dict[str, Explanation]:
    """Explanations of waiting jobs, by name, however deep they lie.

    Args:
        store: the queue's.
        now: UTC.
        jobs: waiting jobs.
        snapshot: as just read, where somebody has.
    """
    jobs = list(jobs)
    snapshot = snapshot or store.read_snapshot()
    if not _deep(snapshot, jobs):
        return explain_in(snapshot, now, jobs)
    return explain_in(snapshot, now, jobs, whole=_read_deeper(store, snapshot), deep=not_considered(snapshot, jobs))


def explain_in(
    snapshot: Snapshot,
    now: datetime,
    jobs: Iterable[Job],
    *,
    whole: Snapshot | None = None,
    deep: frozenset[str] = frozenset(),
) -> dict[str, Explanation]:
    """Explanations in a given snapshot; jobs that it does not hold yet are put in their place.

    Args:
        snapshot: what a pass would read.
        now: UTC.
        jobs: waiting jobs.
        whole: the same with more of the jobs that wait; positions and estimates are made of these.
        deep: of the jobs those that a pass does not look at.
    """
    wanted = {job.name: job for job in jobs}
    last_read = _last_read(whole or snapshot)
    near = with_jobs(snapshot, (job for job in wanted.values() if job.name not in deep))
    whole = near if whole is None else with_jobs(whole, wanted.values())
    plan = schedule(near, now, next_pass_rng(snapshot))
    reasons = {wait.job.name: wait.reason for wait in plan.waits}
    starting = {start.job.name: start.units for start in plan.starts}
    positions = _positions(_considered(whole, plan, now), {job.name for job in last_read.values()})
    # Where not all jobs before it were read, what could be foreseen beyond the next pass is too early.
    sure = frozenset(name for name in wanted if name in starting or positions[name][0] is not None)
    estimates = estimate(whole, now, next_pass_rng(snapshot), schedule, sure) if sure else {}
    return {
        name: _explanation(
            Explanation(
                *positions[name],
                name in starting,
                reasons.get(name),
                takes=starting.get(name, {}),
                considered=name not in deep,
            ),
            estimates.get(name),
            outlook(job, snapshot.records.history, now),
        )
        for name, job in wanted.items()
    }


def image_ends(snapshot: Snapshot, now: datetime, jobs: Iterable[Job]) -> dict[str, datetime]:
    """When image jobs that hold requests are expected to be done, by name; others are left out."""
    expect = ExpectedEnds(snapshot, now)
    return {job.name: expect.end(job) for job in jobs if is_running_image(job)}


def is_running_image(job: Job) -> bool:
    """Whether this is an image job that holds requests."""
    return job.image_work is not None and job.state in ACTIVE


def dry_run(store: Store, clock: Clock, job: Job) -> Explanation:
    """What would happen if this job were submitted now; nothing is stored."""
    return explain_in(store.read_snapshot(), clock.now(), [job])[job.name]


def with_jobs(snapshot: Snapshot, jobs: Iterable[Job]) -> Snapshot:
    """The snapshot with these jobs among those that wait, all with the pools that they could run in now."""
    known = {job.name for job in snapshot.waiting}
    more = [job for job in jobs if job.name not in known]
    return resolve(replace(snapshot, waiting=tuple(in_order([*snapshot.waiting, *more]))) if more else snapshot)


def next_pass_rng(snapshot: Snapshot) -> random.Random:
    """What the next pass would draw from."""
    return random.Random(snapshot.pass_number)  # noqa: S311 -- seeds a policy's choice, guards nothing


def _explanation(found: Explanation, range_: Estimate | None, deadline: Outlook | None) -> Explanation:
    if range_ is None:
        return replace(found, outlook=deadline)
    return replace(
        found,
        estimated_start=range_.expected,
        earliest_start=range_.low,
        latest_start=range_.high,
        outlook=deadline,
    )


def not_considered(snapshot: Snapshot, jobs: Iterable[Job]) -> frozenset[str]:
    """Jobs that lie behind the last one that was read of their lane."""
    last_read = _last_read(snapshot)
    return frozenset(job.name for job in jobs if job.lane in last_read and job.order > last_read[job.lane].order)


def _deep(snapshot: Snapshot, jobs: Iterable[Job]) -> bool:
    """Whether jobs that were not read may come before any of these."""
    sure_up_to = min((job.order for job in _last_read(snapshot).values()), default=None)
    return sure_up_to is not None and any(job.order > sure_up_to for job in jobs)


def _last_read(snapshot: Snapshot) -> dict[str, Job]:
    """The last job of each lane that was not read to its end."""
    return {job.lane: job for job in snapshot.waiting if job.lane in snapshot.cut_lanes}


def _read_deeper(store: Store, snapshot: Snapshot) -> Snapshot:
    """The snapshot with more of the jobs that wait; its lanes are still cut where there are even more."""
    lanes = len({job.lane for job in snapshot.waiting}) or 1
    limit = min(max(MAX_ROWS // lanes, FEWEST_OF_A_LANE), MAX_OF_A_LANE)
    page = store.list_jobs(Filter(states=WAITING), limit=limit)
    active = {job.name for job in snapshot.active}
    deeper = with_jobs(snapshot, (job for job in page.jobs if job.name not in active))
    return replace(deeper, cut_lanes=frozenset()) if page.cursor is None else deeper


def _considered(whole: Snapshot, plan: Plan, now: datetime) -> Sequence[Job]:
    """The jobs in the order in which they are considered; where a plan does not look at all, in that of the ranking."""
    considered = [decision.job for decision in plan.decisions if isinstance(decision, Start | Wait)]
    if len(considered) == len(whole.waiting):
        return considered
    return ranking_of(whole, now).in_order(whole.waiting)


def _positions(considered: Sequence[Job], last_read: Container[str]) -> dict[str, tuple[int | None, int | None]]:
    """Positions are exact up to the point where a lane was not read to its end."""
    sure_up_to = min((place for place, job in enumerate(considered, start=1) if job.name in last_read), default=None)
    return {
        job.name: (place, None) if sure_up_to is None or place <= sure_up_to else (None, place)
        for place, job in enumerate(considered, start=1)
    }
