"""Reasons that concern rules: shares, budgets, groups, training plans, drains, and instructions of users."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.times import clock


@dataclass(frozen=True, slots=True)
class Draining(Reason):
    """The only pools that could hold it are draining and start no jobs."""

    brief: ClassVar[str] = "{pools} draining"

    pools: Annotated[tuple[str, ...], "Pools that could hold the job."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        verbs = "is draining and starts" if len(self.pools) == 1 else "are draining and start"
        return f"can run only in {', '.join(self.pools)}, which {verbs} no jobs"


@dataclass(frozen=True, slots=True)
class NotInService(Reason):
    """The service that it needs does not answer."""

    brief: ClassVar[str] = "its service is {cause}"

    pool: Annotated[str, "Pool of the service."]
    cause: Annotated[str, "Status of the service."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"waits for {self.pool} to be in service; its service is {self.cause}"


@dataclass(frozen=True, slots=True)
class ShareFull(Reason):
    """With the job, its share would have more instances of the pool than it may have."""

    brief: ClassVar[str] = "{bound} of share {share}"
    subject: ClassVar[str] = ""

    share: Annotated[str, "Share of the job."]
    pool: Annotated[str, "Pool that the limit concerns."]
    limit: Annotated[int, "Instances that the share may have there."]
    bound: Annotated[
        str,
        "Limit that the job would exceed: `borrow limit`, `cap`, `own units` if the share does not borrow, or `limit "
        "beside what other shares reserve`.",
    ]

    def message(self) -> str:
        """Return the reason as a sentence."""
        return f"share {self.share} may have {self.limit} x {self.pool}, its {self.bound}"


@dataclass(frozen=True, slots=True)
class UserFull(Reason):
    """With the job, its user would have more instances of the pool than one user of the share may have."""

    brief: ClassVar[str] = "its user may have {limit} {pool}"
    subject: ClassVar[str] = ""

    user: Annotated[str, "User who submitted the job."]
    pool: Annotated[str, "Pool that the limit concerns."]
    limit: Annotated[int, "Instances that one user of the share may have there."]

    def message(self) -> str:
        """Return the reason as a sentence."""
        return f"user {self.user} may have {self.limit} x {self.pool}, the share's cap for one user"


@dataclass(frozen=True, slots=True)
class BudgetSpent(Reason):
    """Its share has spent the budget of the current period."""

    brief: ClassVar[str] = "budget of {share} spent"
    subject: ClassVar[str] = ""

    share: Annotated[str, "Share of the job."]
    spent: Annotated[float, "What the share has used in this period."]
    budget: Annotated[float, "What the share may use in one period."]
    unit: Annotated[str, "Unit of both: `GPU-hours` or `dollars`."]
    until: Annotated[datetime, "When the next period begins."]

    def message(self) -> str:
        """Return the reason as a sentence."""
        return (
            f"share {self.share} has spent {self.spent:,.1f} of its {self.budget:,.1f} {self.unit}; "
            f"the next period begins at {clock(self.until)}"
        )


@dataclass(frozen=True, slots=True)
class GroupFull(Reason):
    """As many jobs of its group are running as may run at the same time."""

    brief: ClassVar[str] = "group {group} full ({limit})"
    subject: ClassVar[str] = ""

    group: Annotated[str, "Group of the job."]
    limit: Annotated[int, "Jobs of the group that may run at the same time."]

    def message(self) -> str:
        """Return the reason as a sentence."""
        if self.limit == 1:
            return f"group {self.group} is at its limit of 1 running job"
        return f"group {self.group} is at its limit of {self.limit} running jobs"


@dataclass(frozen=True, slots=True)
class PlanClosed(Reason):
    """The training plan is not active, or ends before the job could save its work."""

    brief: ClassVar[str] = "training plan {pool} closed"

    pool: Annotated[str, "Pool of the training plan."]
    until: Annotated[datetime | None, "When the plan becomes active; null if the job cannot use it any more."]
    cause: Annotated[str, "Why the job cannot use the plan."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        end = "" if self.until is None else f"; available from {clock(self.until)}"
        return f"cannot use {self.pool}: {self.cause}{end}"


@dataclass(frozen=True, slots=True)
class NotBefore(Reason):
    """Its tag `trainmaster:not-before` names a later time."""

    brief: ClassVar[str] = "not before {until}"
    outside_queue: ClassVar[bool] = True

    until: Annotated[datetime, "Earliest start."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"starts no earlier than {clock(self.until)}, as requested"


@dataclass(frozen=True, slots=True)
class WaitsForJobs(Reason):
    """Other jobs have to end first (`trainmaster:after`)."""

    brief: ClassVar[str] = "after {jobs}"
    outside_queue: ClassVar[bool] = True

    jobs: Annotated[tuple[str, ...], "Jobs that have to end first."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"waits for {'job' if len(self.jobs) == 1 else 'jobs'} {', '.join(self.jobs)} to end"


@dataclass(frozen=True, slots=True)
class Held(Reason):
    """A person holds it, or the queue because it must not launch it."""

    brief: ClassVar[str] = "held"
    subject: ClassVar[str] = "it is "

    by: Annotated[str, "Person who holds the job, or the queue with the reason."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"held by {self.by} until it is released"
