"""Snapshots, which a pass reads, and plans, which the planner returns, as values.

Applying, explaining and forecasting read the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.units import Pool, Units
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.elastic.sizes import Cause
from trainmaster.domain.jobs.job import Job, Reservation
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.records import Records


@dataclass(frozen=True, slots=True)
class Cursors:
    """Positions of the round-robin placement policies; see `planner/placement/policies.py`.

    Attributes:
        last: the pool that `round-robin` chose last; "" before the first.
        weights: current weights of `smooth-weighted-round-robin`, by pool; absent ones are 0.
    """

    last: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a pass read.

    Attributes:
        pass_number: the fence; commits of an older pass fail.
        waiting: heads of all lanes, in queue order.
        cut_lanes: lanes with more waiting jobs than were read.
        in_turn: names of waiting jobs that only this pass reads (`rotation`); they may start, but keep no units.
        external: units held by external training jobs, in pools that count them, and by orphans, in every pool.
        external_jobs: the stored external training jobs and orphans, by training job name.
        policy: the settings in force.
        records: run times of ended attempts, and usage of shares.
        warm: warm pools that are not known to have ended; see `warm_pools.counting`.
        catalogue: the known instance types.
        cursors: positions of the round-robin placement policies.
        unreadable: keys of rows that were left out, because the queue cannot have written them.
    """

    pass_number: int
    pools: Mapping[str, Pool]
    active: tuple[Job, ...] = ()
    waiting: tuple[Job, ...] = ()
    cut_lanes: frozenset[str] = frozenset()
    in_turn: frozenset[str] = frozenset()
    external: Units = field(default_factory=dict)
    external_jobs: Mapping[str, ExternalJob] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    records: Records = field(default_factory=Records)
    warm: tuple[WarmPool, ...] = ()
    catalogue: Catalogue = field(default_factory=Catalogue)
    cursors: Cursors = field(default_factory=Cursors)
    unreadable: tuple[str, ...] = ()
    _special: list[tuple[Job, ...]] = field(default_factory=list, init=False, repr=False, compare=False)
    _holders: dict[str, list[Job]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def special(self) -> tuple[Job, ...]:
        """The waiting jobs that are not `plain`, found at first use: stages look at these alone of a deep queue."""
        if not self._special:
            self._special.append(tuple([job for job in self.waiting if not job.plain]))
        return self._special[0]

    @property
    def holders(self) -> Mapping[str, Sequence[Job]]:
        """The active jobs with units of each pool, found at first use: stages look at those of a few pools."""
        if not self._holders:
            for job in self.active:
                for pool in job.units:
                    self._holders.setdefault(pool, []).append(job)
        return self._holders


@dataclass(frozen=True, slots=True)
class Estimate:
    """An expected time, with the range in which it probably is."""

    low: datetime
    expected: datetime
    high: datetime


@dataclass(frozen=True, slots=True)
class Expand:
    """Create or enlarge a pool for demands that no configured pool could hold.

    Attributes:
        pool: the pool afterwards.
        jobs: names of the waiting jobs that it is for, in queue order.
        dollars_per_hour: cost of the added instances while used, in US dollars an hour; 0 if the price is unknown.
    """

    pool: Pool
    jobs: tuple[str, ...]
    dollars_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class Retire:
    """Remove a pool of the manager's own that has been idle since `idle_since`."""

    pool: Pool
    idle_since: datetime


@dataclass(frozen=True, slots=True)
class Shrink:
    """Lower the cap of a pool of the manager's own to what is used or waited for.

    Attributes:
        pool: the pool afterwards.
        jobs: names of the waiting jobs that it makes room for within the guardrails; empty if it was only idle.
        idle_since: since when the removed units have been idle, if that is the reason; else None.
    """

    pool: Pool
    jobs: tuple[str, ...] = ()
    idle_since: datetime | None = None


PoolDecision = Expand | Shrink | Retire
"""Decisions about the manager's own pools."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start a job.

    Attributes:
        units: the units that it takes.
        choices: the types that SageMaker may still choose from.
        warm: the idle warm pool that it will use.
        cursors: the placement policies' new positions, stored with the start.
        instead_of: the pool that it would have used, and when that was found to lack instances.
    """

    job: Job
    units: Units
    choices: tuple[str, ...] = ()
    warm: WarmPool | None = None
    cursors: Cursors | None = None
    instead_of: tuple[str, datetime] | None = None


@dataclass(frozen=True, slots=True)
class Resize:
    """Change the size of a running elastic job.

    Attributes:
        job: the job.
        size: the new number of instances.
        cause: why.
        freed_for: the waiting job for which its freed units are reserved; "" if it grows, or for none.
    """

    job: Job
    size: int
    cause: Cause
    freed_for: str = ""


@dataclass(frozen=True, slots=True)
class Widen:
    """Give a running job of another kind more units of its pool.

    Attributes:
        job: the job.
        units: all that it holds then.
    """

    job: Job
    units: Units


@dataclass(frozen=True, slots=True)
class Preempt:
    """Preempt or shrink these jobs for `job`, and reserve the freed units for it."""

    job: Job
    victims: tuple[Job, ...]
    reservation: Reservation
    shrinks: tuple[Resize, ...] = ()


class Wait(NamedTuple):
    """Leave a job waiting, with the reason. A tuple for speed, since deep queues need many."""

    job: Job
    reason: Reason


@dataclass(frozen=True, slots=True)
class EndWarm:
    """End an idle warm pool whose units `job` needs, and reserve them for it."""

    job: Job
    warm: WarmPool
    reservation: Reservation


D = TypeVar("D")
Decision = Start | Preempt | Resize | Widen | EndWarm | PoolDecision | Wait


@dataclass(frozen=True, slots=True)
class PlannedReservation:
    """Units that will be reserved for a blocked job from its expected start on.

    Attributes:
        job: the blocked job.
        units: the units that it will take.
        at: when they are expected to be free; None if unknown.
    """

    job: str
    units: Units
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of a pass; every considered job has exactly one Start or Wait.

    Attributes:
        decisions: in the order in which jobs were considered.
        recheck_at: the earliest time at which the plan could change without any event; None for never.
        reservations: planned reservations of blocked jobs.
        rules_at: the same without times at which jobs are only expected to end.
    """

    decisions: tuple[Decision, ...] = ()
    recheck_at: datetime | None = None
    reservations: tuple[PlannedReservation, ...] = ()
    rules_at: datetime | None = None
    _by_kind: dict[type, list[Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _all(self, kind: type[D]) -> tuple[D, ...]:
        """Return the decisions of one kind; sorted at first use."""
        if not self._by_kind:
            for decision in self.decisions:
                self._by_kind.setdefault(type(decision), []).append(decision)
        return tuple(self._by_kind.get(kind, ()))

    @property
    def starts(self) -> tuple[Start, ...]:
        """Starts."""
        return self._all(Start)

    @property
    def preemptions(self) -> tuple[Preempt, ...]:
        """Preemptions."""
        return self._all(Preempt)

    @property
    def resizes(self) -> tuple[Resize, ...]:
        """Resizes that do not belong to a preemption."""
        return self._all(Resize)

    @property
    def widenings(self) -> tuple[Widen, ...]:
        """Running jobs of other kinds that get more units."""
        return self._all(Widen)

    @property
    def warm_ends(self) -> tuple[EndWarm, ...]:
        """Warm pools to end."""
        return self._all(EndWarm)

    @property
    def expansions(self) -> tuple[Expand, ...]:
        """Pools to create or enlarge."""
        return self._all(Expand)

    @property
    def retirements(self) -> tuple[Retire, ...]:
        """Pools to remove."""
        return self._all(Retire)

    @property
    def of_pools(self) -> tuple[PoolDecision, ...]:
        """All decisions about the manager's own pools."""
        return (*self.expansions, *self._all(Shrink), *self.retirements)

    @property
    def waits(self) -> tuple[Wait, ...]:
        """Waiting jobs with their reasons."""
        return self._all(Wait)
