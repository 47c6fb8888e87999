"""Why a job waits though units are free: rules of shares, budgets, groups, plans, and of its own user.

It must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.times import clock


@dataclass(frozen=True, slots=True)
class ShareFull:
    """Its share may not have more of a pool.

    Attributes:
        share: the share.
        pool: where.
        limit: units that it may have there.
        bound: which bound that is: `borrow limit`, `cap`, or `own units` where the share does not borrow.
    """

    share: str
    pool: str
    limit: int
    bound: str

    def words(self) -> str:
        """The reason as a sentence."""
        return f"share {self.share} is at its {self.bound} of {self.limit} x {self.pool}"


@dataclass(frozen=True, slots=True)
class UserFull:
    """Its user has as much of a pool as a user of the share may have."""

    user: str
    pool: str
    limit: int

    def words(self) -> str:
        """The reason as a sentence."""
        return f"{self.user} is at the share's cap for one user, {self.limit} x {self.pool}"


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """The budget of its share is spent.

    Attributes:
        share: the share.
        spent: what it has used in this period.
        budget: what it may use.
        unit: `GPU-hours` or `dollars`.
        until: when the next period begins.
    """

    share: str
    spent: float
    budget: float
    unit: str
    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        return (
            f"share {self.share} has spent {self.spent:,.1f} of its {self.budget:,.1f} {self.unit}; "
            f"the next period begins at {clock(self.until)}"
        )


@dataclass(frozen=True, slots=True)
class GroupFull:
    """As many jobs of its group run as may run at once."""

    group: str
    limit: int

    def words(self) -> str:
        """The reason as a sentence."""
        return f"group {self.group} has its {self.limit} jobs at once"


@dataclass(frozen=True, slots=True)
class PlanClosed:
    """A training plan is not usable for it: not active yet, ended, or ending before it could save its work.

    Attributes:
        pool: the training plan's pool.
        until: when the plan becomes active; None where it will not be usable any more.
        cause: what is wrong.
    """

    pool: str
    until: datetime | None
    cause: str

    def words(self) -> str:
        """The reason as a sentence."""
        end = "" if self.until is None else f"; from {clock(self.until)} on"
        return f"cannot use {self.pool}: {self.cause}{end}"


@dataclass(frozen=True, slots=True)
class Draining:
    """The only pools that could hold it are being drained: nothing more is started in them."""

    pools: tuple[str, ...]

    def words(self) -> str:
        """The reason as a sentence."""
        which = "is" if len(self.pools) == 1 else "are"
        return f"can run only in {', '.join(self.pools)}, which {which} being drained: nothing more is started there"


@dataclass(frozen=True, slots=True)
class NotInService:
    """Its endpoint answers nobody now: nothing is started there until it does.

    Attributes:
        pool: the endpoint's.
        cause: how the endpoint stands (`EndpointStatus`).
    """

    pool: str
    cause: str

    def words(self) -> str:
        """The reason as a sentence."""
        return f"waits for {self.pool} to be in service; its endpoint is {self.cause}"


@dataclass(frozen=True, slots=True)
class NotBefore:
    """Its user wants it to wait until then."""

    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        return f"not before {clock(self.until)}, as its user wants"


@dataclass(frozen=True, slots=True)
class WaitsForJobs:
    """Other jobs have to end first."""

    jobs: tuple[str, ...]

    def words(self) -> str:
        """The reason as a sentence."""
        return f"runs after {', '.join(self.jobs)}"


@dataclass(frozen=True, slots=True)
class Held:
    """A person holds it."""

    by: str

    def words(self) -> str:
        """The reason as a sentence."""
        return f"held by {self.by}, until it is released"
