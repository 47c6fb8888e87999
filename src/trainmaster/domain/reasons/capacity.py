"""Why a job waits: a closed set of types, each able to say itself in words.

"Busy now" and "can never fit" are different types; a time in a reason is the time until which it holds at most.
Those of rules that people made (shares, budgets, groups, times) are in `reasons_of_rules`. It must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity.units import counted
from trainmaster.domain.reasons.rules import (
    BudgetSpent,
    Draining,
    GroupFull,
    Held,
    NotBefore,
    NotInService,
    PlanClosed,
    ShareFull,
    UserFull,
    WaitsForJobs,
)
from trainmaster.domain.times import clock
from trainmaster.images.domain.endpoint import is_endpoint_pool


@dataclass(frozen=True, slots=True)
class WaitsForCapacity:
    """Busy now: other jobs that it may not displace hold what it needs.

    Attributes:
        pool: where units are missing.
        needed: units that it needs there.
        free: units that it could have there now.
        expected: when the others are expected to have ended; None where that cannot be said.
        overdue: a job that has already run for longer than was expected of it, where that is what it waits for.
    """

    pool: str
    needed: int
    free: int
    expected: datetime | None = None
    overdue: str | None = None

    def words(self) -> str:
        """The reason as a sentence."""
        missing = self.needed - self.free
        text = f"waits for {missing} of {counted(self.needed, self.pool)}: {self.free} free for it now"
        if self.expected is not None:
            text += f", expected by {clock(self.expected)}"
        if self.overdue is not None:
            text += f"; {self.overdue} runs longer than was expected"
        return text


@dataclass(frozen=True, slots=True)
class WaitsForRelease:
    """Enough capacity is on the way: jobs are stopping."""

    pools: tuple[str, ...]
    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        names = ", ".join(self.pools)
        return f"waits for jobs that are stopping on {names}; kept for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Preempts:
    """Enough capacity is being taken from jobs that have to step aside for it, and from others that run on smaller."""

    victims: tuple[str, ...]
    until: datetime
    shrinks: tuple[str, ...] = ()

    def words(self) -> str:
        """The reason as a sentence."""
        besides = f" and shrinks {', '.join(self.shrinks)}" if self.shrinks else ""
        return f"preempts {', '.join(self.victims)}{besides}; the capacity is kept for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Shrinks:
    """Enough capacity is being taken from elastic jobs, which run on with fewer instances."""

    shrinks: tuple[str, ...]
    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        return f"shrinks {', '.join(self.shrinks)}; the capacity is kept for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class EndsWarmPool:
    """Idle warm pools hold what it needs; they are being ended for it."""

    training_jobs: tuple[str, ...]
    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        return f"ends the warm pools of {', '.join(self.training_jobs)}; kept for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Behind:
    """First in, first out: an earlier job of no lower priority waits for the same pool."""

    job: str
    pool: str

    def words(self) -> str:
        """The reason as a sentence."""
        return f"waits behind {self.job}, which is before it in the queue for {self.pool}"


@dataclass(frozen=True, slots=True)
class KeptForOther:
    """Capacity is there, but it is kept for another job: freed for it, or reserved.

    Attributes:
        job: for which it is kept.
        pool: where.
        until: when that job is expected to start, or its hold ends.
        needed: units that this job needs there.
        free: units that it could have there now.
    """

    job: str
    pool: str
    until: datetime | None
    needed: int = 0
    free: int = 0

    def words(self) -> str:
        """The reason as a sentence."""
        end = "" if self.until is None else f" until {clock(self.until)}"
        asked = counted(self.needed, self.pool)
        return f"waits for {self.needed - self.free} of {asked}: held for job {self.job}{end}"


@dataclass(frozen=True, slots=True)
class Protected:
    """It may displace others, but the rules against thrashing protect them for now.

    Attributes:
        jobs: whom it may preempt, but not yet.
        until: when all of them may be preempted; None where they may not be any more.
    """

    jobs: tuple[str, ...]
    until: datetime | None

    def words(self) -> str:
        """The reason as a sentence."""
        names = ", ".join(self.jobs)
        if self.until is None:
            return f"may not preempt {names}: preempted as often as a job may be"
        return f"may not preempt {names} before {clock(self.until)}: minimum run time"


@dataclass(frozen=True, slots=True)
class PreemptsLater:
    """Jobs of lower priority would step aside, but a newcomer has to wait first."""

    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        return f"may preempt from {clock(self.until)} on: newcomers wait first, since capacity may come by itself"


@dataclass(frozen=True, slots=True)
class BackingOff:
    """Its last start failed; it is tried again later."""

    until: datetime
    cause: str

    def words(self) -> str:
        """The reason as a sentence."""
        return f"tried again at {clock(self.until)}: {self.cause}"


@dataclass(frozen=True, slots=True)
class NextPass:
    """It can start, but this pass has done as much as one pass may."""

    def words(self) -> str:
        """The reason as a sentence."""
        return "starts with the next pass"


@dataclass(frozen=True, slots=True)
class CanNeverFit:
    """No pool, even when empty, could hold it; only a changed cap helps.

    Attributes:
        expansion: why the manager makes no pool for it; "" where it makes none for anybody.
        at_zero: whether the pool is there, and its cap is 0.
    """

    pool: str
    needed: int
    cap: int
    expansion: str = ""
    at_zero: bool = False

    def words(self) -> str:
        """The reason as a sentence."""
        end = f"; no pool is made for it: {self.expansion}" if self.expansion else ""
        if is_endpoint_pool(self.pool):
            return f"can never fit: nothing is known of {self.pool}"
        if self.cap == 0 and not self.at_zero:
            return f"can never fit: there is no pool for {self.pool}{end}"
        return f"can never fit: needs {self.needed} x {self.pool}, the pool's cap is {self.cap}{end}"


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No pool, even when empty, has enough instances with what it asks for; a new or larger pool would help.

    Attributes:
        resources: what it asks of an instance, as its tag says it.
        needed: how many instances.
        most: the most that any pool with such instances has; 0 where there is no such pool.
        expansion: why the manager makes no pool for it; "" where expansion is off.
        at_zero: whether there are such pools, all with a cap of 0.
    """

    resources: str
    needed: int
    most: int
    expansion: str = ""
    at_zero: bool = False

    def words(self) -> str:
        """The reason as a sentence."""
        none = "every pool of such instances has a cap of 0" if self.at_zero else "no pool has such instances"
        has = f"the largest pool of such instances has {self.most}" if self.most else none
        end = f"; no pool is made for it: {self.expansion}" if self.expansion else ""
        return f"infeasible: needs {self.needed} x ({self.resources}), {has}{end}"


Reason = (
    WaitsForCapacity
    | WaitsForRelease
    | Preempts
    | Shrinks
    | EndsWarmPool
    | Behind
    | KeptForOther
    | Protected
    | PreemptsLater
    | BackingOff
    | NextPass
    | CanNeverFit
    | Infeasible
    | Draining
    | NotInService
    | ShareFull
    | UserFull
    | BudgetSpent
    | GroupFull
    | PlanClosed
    | NotBefore
    | WaitsForJobs
    | Held
)
