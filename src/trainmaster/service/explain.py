"""Position, reason and estimated start of waiting jobs: readers of the very plan that a pass would make.

They store nothing. What they say can be out of date a moment later, as the queue moves on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.capacity import total
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons import Preempts, Reason
from trainmaster.domain.warm import counting
from trainmaster.planner.forecast import forecast
from trainmaster.planner.order import in_order
from trainmaster.planner.schedule import schedule
from trainmaster.ports import Clock, Store

_Order = tuple[int, datetime, str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the plan says of one waiting job.

    Attributes:
        position: 1 for the first of the queue; None where the queue is too deep to count.
        at_least: where `position` is None: it is at least this.
        starts: whether it would start in the pass that comes next.
        reason: why it waits; None where it starts.
        estimated_start: the latest start if every job uses its whole time limit; None where it cannot be foreseen.
    """

    position: int | None
    at_least: int | None
    starts: bool
    reason: Reason | None
    estimated_start: datetime | None

    @property
    def would_preempt(self) -> tuple[str, ...]:
        """The jobs that would step aside for it."""
        return self.reason.victims if isinstance(self.reason, Preempts) else ()


@dataclass(frozen=True, slots=True)
class Usage:
    """How a pool stands, in instances."""

    used: int
    stopping: int
    held: int
    foreign: int
    free: int
    warm: int = 0


def dry_run(store: Store, clock: Clock, job: Job) -> Explanation:
    """What would happen if this job were submitted now; nothing is stored."""
    return explain_in(store.survey(), clock.now(), [job])[job.name]


def explain_in(snapshot: Snapshot, now: datetime, jobs: Iterable[Job]) -> Mapping[str, Explanation]:
    """Explanations in a given snapshot; jobs that it does not hold yet are put in their place."""
    wanted = {job.name: job for job in jobs}
    known = {job.name for job in snapshot.waiting}
    sure_up_to = _sure_up_to(snapshot)
    snapshot = replace(
        snapshot, waiting=tuple(in_order([*snapshot.waiting, *(wanted[n] for n in wanted if n not in known)]))
    )
    plan = schedule(snapshot, now, _rng(snapshot))
    starts = forecast(snapshot, now, _rng(snapshot), schedule, frozenset(wanted))
    positions = _positions(snapshot.waiting, sure_up_to)
    reasons = {wait.job.name: wait.reason for wait in plan.waits}
    started = {start.job.name for start in plan.starts}
    # Where not all jobs before it were read, what was foreseen beyond the next pass is too early.
    sure_starts = {name: at for name, at in starts.items() if name in started or positions[name][0] is not None}
    return {
        name: Explanation(*positions[name], name in started, reasons.get(name), sure_starts.get(name))
        for name in wanted
    }


def _sure_up_to(snapshot: Snapshot) -> _Order | None:
    """The last place before which every job was read: where the first lane was cut."""
    last_read = {job.lane: job.order for job in snapshot.waiting if job.lane in snapshot.cut_lanes}
    return min(last_read.values(), default=None)


def _positions(waiting: Sequence[Job], sure_up_to: _Order | None) -> dict[str, tuple[int | None, int | None]]:
    """Positions are exact up to the point where a lane was not read to its end."""
    return {
        job.name: (index, None) if sure_up_to is None or job.order <= sure_up_to else (None, index)
        for index, job in enumerate(waiting, start=1)
    }


def pool_usage(snapshot: Snapshot, now: datetime) -> Mapping[str, Usage]:
    """How each pool of a snapshot stands."""
    used = total(job.units for job in snapshot.active)
    stopping = total(job.units for job in snapshot.active if job.stopping)
    held = total(job.hold.units for job in snapshot.waiting if job.hold is not None and job.hold.until > now)
    warm = total(pool.units for pool in counting(snapshot.warm, snapshot.active))
    return {
        name: Usage(
            used=used.get(name, 0),
            stopping=stopping.get(name, 0),
            held=held.get(name, 0),
            foreign=snapshot.foreign.get(name, 0),
            warm=warm.get(name, 0),
            free=max(pool.cap - used.get(name, 0) - snapshot.foreign.get(name, 0) - warm.get(name, 0), 0),
        )
        for name, pool in snapshot.pools.items()
    }


def _rng(snapshot: Snapshot) -> random.Random:
    return random.Random(snapshot.pass_number)  # noqa: S311 -- seeds a policy's choice, guards nothing
