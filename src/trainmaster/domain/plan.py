"""What a pass reads and what it decides, as values.

A snapshot is all that a pass read; a plan is its decisions, each with a typed reason. Doing, explaining and
dry-running read the same plan. The settings are in `policy`, the reasons in `reasons`. It must not contain logic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.units import Pool, Units
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.elastic.sizes import Cause
from trainmaster.domain.jobs.job import Job, Reservation
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.records import Records


@dataclass(frozen=True, slots=True)
class Cursors:
    """Where the placement policies that go round have got to; see `planner/placement/policies.py`.

    Attributes:
        last: the pool that `round-robin` chose last; "" before the first.
        weights: current weights of `smooth-weighted-round-robin`, by pool; 0 where one is absent.
    """

    last: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a pass read.

    Attributes:
        pass_number: the fence; commits of an older pass fail.
        waiting: heads of all lanes, in queue order; lanes may hold more behind them.
        cut_lanes: lanes with more waiting jobs than were read.
        foreign: units held by training jobs that did not come from the queue, in pools that count them.
        policy: the settings in force.
        records: what ended attempts have taught: run times, and what shares have used.
        warm: warm pools, as far as they are not known to be gone; see `warm.counting`.
        catalogue: what is known of instance types.
        cursors: where the placement policies that go round have got to.
    """

    pass_number: int
    pools: Mapping[str, Pool]
    active: tuple[Job, ...] = ()
    waiting: tuple[Job, ...] = ()
    cut_lanes: frozenset[str] = frozenset()
    foreign: Units = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    records: Records = field(default_factory=Records)
    warm: tuple[WarmPool, ...] = ()
    catalogue: Catalogue = field(default_factory=Catalogue)
    cursors: Cursors = field(default_factory=Cursors)


@dataclass(frozen=True, slots=True)
class Expand:
    """Make this pool, or make it larger, for demands that no pool could ever hold.

    Attributes:
        pool: as it is from then on.
        jobs: names of the waiting jobs that it is for, in queue order.
        dollars_per_hour: what the instances that it adds cost while they are used; 0 where no price is known.
    """

    pool: Pool
    jobs: tuple[str, ...]
    dollars_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class Retire:
    """Remove a pool that the manager had made and nobody has used since `idle_since`."""

    pool: Pool
    idle_since: datetime


@dataclass(frozen=True, slots=True)
class Shrink:
    """Have a pool that the manager made hold less: nobody uses the rest, or waits for it.

    Attributes:
        pool: as it is from then on.
        jobs: names of the waiting jobs that it makes room for within the guard rails; none where it just was idle.
        idle_since: since when nobody has used what it gives, where that is why; else None.
    """

    pool: Pool
    jobs: tuple[str, ...] = ()
    idle_since: datetime | None = None


PoolDecision = Expand | Shrink | Retire
"""What the manager does to its own pools."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the job on these units; `choices` are the types that SageMaker may still choose from.

    With `warm` they are those of an idle warm pool, which SageMaker will let it use. With `cursors` the placement
    policy has moved on, which is remembered in the commit of the start. `instead_of` is the pool that it would have
    had, and when that turned out to lack instances.
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
        size: instances that it is to have.
        cause: why.
        freed_for: the waiting job that what it frees is kept for; "" where it grows, or for none.
    """

    job: Job
    size: int
    cause: Cause
    freed_for: str = ""


@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop these jobs, or shrink them, for the sake of `job`, and keep what they free for it."""

    job: Job
    victims: tuple[Job, ...]
    reservation: Reservation
    shrinks: tuple[Resize, ...] = ()


class Wait(NamedTuple):
    """Leave the job where it is, and say why. A tuple, since every plan makes one for each job of a deep queue."""

    job: Job
    reason: Reason


@dataclass(frozen=True, slots=True)
class EndWarm:
    """End an idle warm pool that stands in the way of `job`, and keep what it frees for it."""

    job: Job
    warm: WarmPool
    reservation: Reservation


D = TypeVar("D")
Decision = Start | Preempt | Resize | EndWarm | PoolDecision | Wait


@dataclass(frozen=True, slots=True)
class PlannedReservation:
    """Units that will be kept for a blocked job from the time at which it is expected to start.

    Attributes:
        job: the blocked job.
        units: what it will take.
        at: when that much is expected to be free; None where that cannot be said.
    """

    job: str
    units: Units
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of a pass, as they were made; every considered job has exactly one Start or Wait.

    Attributes:
        decisions: in the order in which jobs were considered.
        look_again: the earliest time at which the plan could change though nothing happens; None for never.
        reservations: who among the blocked jobs is reserved for.
    """

    decisions: tuple[Decision, ...] = ()
    look_again: datetime | None = None
    reservations: tuple[PlannedReservation, ...] = ()
    _by_kind: dict[type, list[Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _all(self, kind: type[D]) -> tuple[D, ...]:
        """The decisions of one kind; they are sorted out when any is first asked for."""
        if not self._by_kind:
            for decision in self.decisions:
                self._by_kind.setdefault(type(decision), []).append(decision)
        return tuple(self._by_kind.get(kind, ()))

    @property
    def starts(self) -> tuple[Start, ...]:
        """What is to be started."""
        return self._all(Start)

    @property
    def preemptions(self) -> tuple[Preempt, ...]:
        """What is to step aside, and for whom."""
        return self._all(Preempt)

    @property
    def resizes(self) -> tuple[Resize, ...]:
        """Which running jobs change their size for no waiting one."""
        return self._all(Resize)

    @property
    def warm_ends(self) -> tuple[EndWarm, ...]:
        """Which warm pools are to be ended, and for whom."""
        return self._all(EndWarm)

    @property
    def expansions(self) -> tuple[Expand, ...]:
        """Which pools are to be made or made larger."""
        return self._all(Expand)

    @property
    def retirements(self) -> tuple[Retire, ...]:
        """Which pools are to be removed."""
        return self._all(Retire)

    @property
    def of_pools(self) -> tuple[PoolDecision, ...]:
        """All that is to become of the manager's own pools."""
        return (*self.expansions, *self._all(Shrink), *self.retirements)

    @property
    def waits(self) -> tuple[Wait, ...]:
        """What stays, and why."""
        return self._all(Wait)
