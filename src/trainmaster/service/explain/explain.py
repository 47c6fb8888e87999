"""Explain waiting jobs: position, reason and estimated start, read from the plan that the next pass would make.

Nothing is stored; an explanation holds only until the queue changes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.jobs.deadline import Outlook, outlook
from trainmaster.domain.jobs.job import ACTIVE, Job
from trainmaster.domain.plan import Estimate, Plan, Snapshot, Start, Wait
from trainmaster.domain.reasons.capacity import Preempts
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.records import Records
from trainmaster.planner.forecast.forecast import estimate
from trainmaster.planner.forecast.schedule_ahead import expected_ends
from trainmaster.planner.orders import ranking_of
from trainmaster.planner.orders.ranking import in_order
from trainmaster.planner.schedule import schedule
from trainmaster.ports.store import Store
from trainmaster.service.context import pass_rng
from trainmaster.service.explain.scaling import BelievedScaling, believed_scaling

MAX_DEEP_JOBS = 4_000
"""Maximum number of jobs in one read of all lanes together that a pass does not read to their ends."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plan's view of one waiting job.

    Attributes:
        position: 1 for the job that is considered first; None if the queue is too deep to count.
        at_least: lower bound of the position if `position` is None.
        starts: whether the next pass would start it.
        reason: why it waits; None if it starts, or is not considered.
        estimated_start: None if there is no estimate.
        earliest_start: the estimate if the jobs before it are quick for their class of run times.
        latest_start: the estimate if they are slow.
        outlook: its prospects of meeting its deadline; None if it has none.
        takes: the units that it would start on; empty if it does not start.
        considered: False for a job so deep in its lane that a pass does not read it.
        scaling: how it is believed to scale; None if it is not elastic, or nothing was reported.
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
    scaling: BelievedScaling | None = None

    @property
    def would_preempt(self) -> tuple[str, ...]:
        """The jobs that the next pass would preempt for it."""
        return self.reason.victims if isinstance(self.reason, Preempts) else ()


def explain(
    store: Store, now: datetime, jobs: Iterable[Job], snapshot: Snapshot | None = None
) -> dict[str, Explanation]:
    """Return explanations of waiting jobs by name, at any depth of their lanes.

    Args:
        store: the queue's store.
        now: UTC.
        jobs: waiting jobs.
        snapshot: a snapshot just read; None to read one.
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
    """Return explanations of jobs in a snapshot; jobs that it does not contain yet are inserted in queue order.

    Args:
        snapshot: the snapshot that a pass would read.
        now: UTC.
        jobs: waiting jobs.
        whole: the snapshot with more waiting jobs, for positions and estimates; None for the same.
        deep: names of those jobs that a pass does not read.
    """
    wanted = {job.name: job for job in jobs}
    last_read = _last_read(whole or snapshot)
    near = with_jobs(snapshot, (job for job in wanted.values() if job.name not in deep))
    whole = near if whole is None else with_jobs(whole, wanted.values())
    plan = schedule(near, now, pass_rng(snapshot))
    reasons = {wait.job.name: wait.reason for wait in plan.waits}
    starting = {start.job.name: start.units for start in plan.starts}
    positions = _positions(_considered(whole, plan, now), {job.name for job in last_read.values()})
    # An estimate beyond the next pass would be too early if not all jobs before it were read.
    sure = frozenset(name for name in wanted if name in starting or positions[name][0] is not None)
    estimates = estimate(whole, now, pass_rng(snapshot), schedule, sure) if sure else {}
    return {
        name: _explanation(
            Explanation(
                *positions[name],
                name in starting,
                reasons.get(name),
                takes=starting.get(name, {}),
                considered=name not in deep,
                scaling=believed_scaling(job, snapshot.records.history, now),
            ),
            estimates.get(name),
            outlook(job, snapshot.records.history, now),
        )
        for name, job in wanted.items()
    }


def ends_of(records: Records, now: datetime, jobs: Iterable[Job]) -> Mapping[str, Estimate]:
    """Return the expected ends of those jobs that hold units, by name, if nothing preempts them."""
    active = tuple(job for job in jobs if job.state in ACTIVE)
    return expected_ends(Snapshot(pass_number=0, pools={}, active=active, records=records), now)


def with_jobs(snapshot: Snapshot, jobs: Iterable[Job]) -> Snapshot:
    """Return the snapshot with these jobs among the waiting ones, their demands resolved against the pools."""
    known = {job.name for job in snapshot.waiting}
    more = [job for job in jobs if job.name not in known]
    return resolve(replace(snapshot, waiting=tuple(in_order([*snapshot.waiting, *more]))) if more else snapshot)


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
    """Return the names of jobs that lie deeper in their lanes than the snapshot was read."""
    last_read = _last_read(snapshot)
    return frozenset(job.name for job in jobs if job.lane in last_read and job.order > last_read[job.lane].order)


def with_known_position(snapshot: Snapshot, now: datetime) -> frozenset[str]:
    """Return the names of the waiting jobs of a resolved snapshot before which no unread job may come.

    These are the jobs with estimates: those that the next pass starts, and those with an exact position.
    """
    plan = schedule(snapshot, now, pass_rng(snapshot))
    last_read = {job.name for job in _last_read(snapshot).values()}
    positions = _positions(_considered(snapshot, plan, now), last_read)
    sure = {name for name, (place, _) in positions.items() if place is not None}
    return frozenset(sure.union(start.job.name for start in plan.starts))


def _deep(snapshot: Snapshot, jobs: Iterable[Job]) -> bool:
    """Return whether jobs that were not read may come before any of these."""
    sure_up_to = min((job.order for job in _last_read(snapshot).values()), default=None)
    return sure_up_to is not None and any(job.order > sure_up_to for job in jobs)


def _last_read(snapshot: Snapshot) -> dict[str, Job]:
    """Return the last job of each lane that was not read to its end."""
    return {job.lane: job for job in snapshot.waiting if job.lane in snapshot.cut_lanes}


def _read_deeper(store: Store, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with more jobs of its cut lanes, the same number of each; even longer ones stay cut."""
    deeper = store.read_snapshot(depth=(depth := MAX_DEEP_JOBS // len(snapshot.cut_lanes)))
    # A second read gives the longest lanes what shorter ones have left.
    if (more := _depth_left(snapshot, deeper)) > depth:
        deeper = store.read_snapshot(depth=more)
    active = {job.name for job in snapshot.active}
    waiting = (job for job in deeper.waiting if job.name not in active)
    return replace(with_jobs(snapshot, waiting), cut_lanes=deeper.cut_lanes)


def _depth_left(snapshot: Snapshot, deeper: Snapshot) -> int:
    """Return how many jobs of each lane that is still cut may be read, given those that are not any more; 0 if none."""
    complete = snapshot.cut_lanes - deeper.cut_lanes
    left = MAX_DEEP_JOBS - sum(job.lane in complete for job in deeper.waiting)
    return left // len(deeper.cut_lanes) if deeper.cut_lanes else 0


def _considered(whole: Snapshot, plan: Plan, now: datetime) -> Sequence[Job]:
    """Return the jobs in the order in which a pass considers them, by ranking if the plan does not cover them all."""
    considered = [decision.job for decision in plan.decisions if isinstance(decision, Start | Wait)]
    if len(considered) == len(whole.waiting):
        return considered
    return ranking_of(whole, now).waiting_in_order()


def _positions(considered: Sequence[Job], last_read: Container[str]) -> dict[str, tuple[int | None, int | None]]:
    """Return position and lower bound by name; exact up to the first lane that was not read to its end."""
    sure_up_to = min((place for place, job in enumerate(considered, start=1) if job.name in last_read), default=None)
    return {
        job.name: (place, None) if sure_up_to is None or place <= sure_up_to else (None, place)
        for place, job in enumerate(considered, start=1)
    }
