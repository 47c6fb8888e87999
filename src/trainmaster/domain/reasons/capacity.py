"""Reasons that concern capacity: instances that are in use, on their way, reserved, or missing for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from trainmaster.domain.capacity.units import counted, is_service_pool
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.times import clock


@dataclass(frozen=True, slots=True)
class WaitsForCapacity(Reason):
    """Jobs that it may not preempt hold the instances that it needs."""

    brief: ClassVar[str] = "needs {missing} more {pool}"

    pool: Annotated[str, "Pool in which instances are missing."]
    needed: Annotated[int, "Instances that the job needs in the pool."]
    free: Annotated[int, "Instances of the pool that the job could have now."]
    expected: Annotated[datetime | None, "When enough instances are expected to be free; null if unknown."] = None
    overdue: Annotated[str | None, "Job in the way that has run for longer than expected."] = None
    quota: Annotated[
        int | None, "The account's quota, if it is below the pool's cap, as SageMaker last reported it; else null."
    ] = None

    def message(self) -> str:
        """Return the reason as a predicate."""
        missing = self.needed - self.free
        text = f"waits for {missing} of {counted(self.needed, self.pool)}: {self.free} free for it now"
        if self.expected is not None:
            text += f", expected by {clock(self.expected)}"
        if self.overdue is not None:
            text += f"; {self.overdue} has run for longer than expected"
        if self.quota is not None:
            text += f"; the account's quota of {counted(self.quota, self.pool)} is below the pool's cap"
        return text


@dataclass(frozen=True, slots=True)
class WaitsForRelease(Reason):
    """Jobs are stopping or shrinking; the capacity that they release is reserved for it."""

    brief: ClassVar[str] = "others are stopping for it"

    pools: Annotated[tuple[str, ...], "Pools in which jobs are stopping."]
    until: Annotated[datetime, "When the reservation ends at the latest."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        names = ", ".join(self.pools)
        return f"waits for jobs that are stopping on {names}; reserved for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Preempts(Reason):
    """Running jobs are being preempted for it, and elastic jobs may be shrinking for it."""

    brief: ClassVar[str] = "preempts {victims}"

    victims: Annotated[tuple[str, ...], "Jobs that are being preempted."]
    until: Annotated[datetime, "When the reservation ends at the latest."]
    shrinks: Annotated[tuple[str, ...], "Elastic jobs that are shrinking."] = ()

    def message(self) -> str:
        """Return the reason as a predicate."""
        also = f" and shrinks {', '.join(self.shrinks)}" if self.shrinks else ""
        return f"preempts {', '.join(self.victims)}{also}; the capacity is reserved for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Shrinks(Reason):
    """Elastic jobs are releasing instances for it, and run on with fewer."""

    brief: ClassVar[str] = "shrinks {shrinks}"

    shrinks: Annotated[tuple[str, ...], "Elastic jobs that are shrinking."]
    until: Annotated[datetime, "When the reservation ends at the latest."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"shrinks {', '.join(self.shrinks)}; the capacity is reserved for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class EndsWarmPool(Reason):
    """Idle warm pools hold the instances that it needs, and are being ended."""

    brief: ClassVar[str] = "ends warm pools"

    training_jobs: Annotated[tuple[str, ...], "Training jobs whose warm pools are being ended."]
    until: Annotated[datetime, "When the reservation ends at the latest."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"ends the warm pools of {', '.join(self.training_jobs)}; reserved for it until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Behind(Reason):
    """An earlier job of the same or a higher priority waits for the same pool and must start first."""

    brief: ClassVar[str] = "behind {job}"

    job: Annotated[str, "Job that starts first."]
    pool: Annotated[str, "Pool that both need."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"waits behind {self.job}, which is ahead of it in the queue for {self.pool}"


@dataclass(frozen=True, slots=True)
class ReservedForOther(Reason):
    """Instances are free, but they are reserved for another job."""

    brief: ClassVar[str] = "{pool} reserved for {job}"

    job: Annotated[str, "Job with the reservation."]
    pool: Annotated[str, "Pool of the reservation."]
    until: Annotated[datetime | None, "When that job is expected to start, or its reservation ends; null if unknown."]
    needed: Annotated[int, "Instances that the waiting job needs in the pool."] = 0
    free: Annotated[int, "Instances of the pool that the waiting job could have now."] = 0

    def message(self) -> str:
        """Return the reason as a predicate."""
        end = "" if self.until is None else f" until {clock(self.until)}"
        needed = counted(self.needed, self.pool)
        return f"waits for {self.needed - self.free} of {needed}: reserved for {self.job}{end}"


@dataclass(frozen=True, slots=True)
class Protected(Reason):
    """The jobs that it could preempt are protected by their minimum run time or their preemption limit."""

    brief: ClassVar[str] = "cannot preempt {jobs} yet"

    jobs: Annotated[tuple[str, ...], "Jobs that it could preempt without the protection."]
    until: Annotated[datetime | None, "When it may preempt all of them; null if never."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        names = ", ".join(self.jobs)
        if self.until is None:
            if len(self.jobs) == 1:
                return f"cannot preempt {names}: it has reached the preemption limit"
            return f"cannot preempt {names}: they have reached the preemption limit"
        return f"cannot preempt {names} before {clock(self.until)}: minimum run time"


@dataclass(frozen=True, slots=True)
class PreemptsLater(Reason):
    """It may preempt other jobs once it has waited for the configured time."""

    brief: ClassVar[str] = "may preempt later"

    until: Annotated[datetime, "When it may preempt."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"may preempt from {clock(self.until)} on: a new job first waits for capacity to become free"


@dataclass(frozen=True, slots=True)
class BackingOff(Reason):
    """The last start failed or found no capacity at AWS, and is retried later."""

    brief: ClassVar[str] = "retried later"
    subject: ClassVar[str] = "it is "

    until: Annotated[datetime, "When the next start is tried."]
    cause: Annotated[str, "Error of the last start."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return f"retried at {clock(self.until)}: {self.cause}"


@dataclass(frozen=True, slots=True)
class BehindBackingOff(Reason):
    """AWS had no capacity for a job that goes first: it has a higher priority, or is alike and no larger."""

    brief: ClassVar[str] = "behind {job}"

    job: Annotated[str, "Job that starts first."]
    pool: Annotated[str, "Pool that both need."]
    until: Annotated[
        datetime | None, "When its next start is tried, earlier if instances become free; null if that is under way."
    ]

    def message(self) -> str:
        """Return the reason as a predicate."""
        again = "is being started again" if self.until is None else f"starts again at {clock(self.until)}"
        lacking = f"SageMaker had no capacity for it in {self.pool}"
        return f"waits behind {self.job}, which goes first and {again}: {lacking}"


@dataclass(frozen=True, slots=True)
class KindRefused(Reason):
    """AWS refused to start a job with the same user, image, role and network, and would probably refuse this one."""

    brief: ClassVar[str] = "{job} was refused"

    job: Annotated[str, "Job of this kind whose start was refused last."]
    until: Annotated[datetime, "When one that was refused before, and one that was not, are tried next, if they fit."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return (
            f"waits because AWS refused to start {self.job}, a job like this one; "
            f"at most two of them are tried a minute, next at {clock(self.until)}"
        )


@dataclass(frozen=True, slots=True)
class QuotaTooSmall(Reason):
    """The account's quota is too small for it, although the pool's cap is not."""

    brief: ClassVar[str] = "quota of {quota} {pool}"

    pool: Annotated[str, "Pool whose cap is above the account's quota."]
    needed: Annotated[int, "Instances that the job needs in the pool."]
    quota: Annotated[int, "The account's quota, as SageMaker last reported it."]
    until: Annotated[datetime, "When a start is tried again, in case the quota is larger by then."]

    def message(self) -> str:
        """Return the reason as a predicate."""
        return (
            f"needs {counted(self.needed, self.pool)}, more than the account's quota of "
            f"{counted(self.quota, self.pool)}; a start is tried again at {clock(self.until)}"
        )


@dataclass(frozen=True, slots=True)
class NextPass(Reason):
    """It can start or preempt others, but this pass has reached its limit of actions."""

    brief: ClassVar[str] = "waits for the next pass"

    def message(self) -> str:
        """Return the reason as a predicate."""
        return "waits for the next pass: this one has reached its limit of actions"


@dataclass(frozen=True, slots=True)
class NotConsideredYet(Reason):
    """More jobs of its lane are ahead of it than could start, so a pass does not read it yet."""

    brief: ClassVar[str] = "not considered yet"
    subject: ClassVar[str] = "it is "

    def message(self) -> str:
        """Return the reason as a predicate."""
        return "not considered yet: too many jobs are ahead of it in its lane"


@dataclass(frozen=True, slots=True)
class CanNeverFit(Reason):
    """The pool is too small for it even if empty, or does not exist."""

    brief: ClassVar[str] = "can never fit"

    pool: Annotated[str, "Pool that is too small or does not exist."]
    needed: Annotated[int, "Instances that the job needs in the pool."]
    cap: Annotated[int, "Cap of the pool."]
    expansion: Annotated[str, "Why the queue creates no pool for the job; empty if expansion is off."] = ""
    at_zero: Annotated[bool, "Whether the pool exists with a cap of 0."] = False

    def message(self) -> str:
        """Return the reason as a predicate."""
        end = _no_expansion(self.expansion)
        if is_service_pool(self.pool):
            return f"can never fit: {self.pool} is unknown"
        if self.cap == 0 and not self.at_zero:
            return f"can never fit: there is no pool for {self.pool}{end}"
        return f"can never fit: needs {self.needed} x {self.pool}, the pool's cap is {self.cap}{end}"


@dataclass(frozen=True, slots=True)
class Infeasible(Reason):
    """No pool, even if empty, has enough instances with the [resources](../how-to/ask-for-resources.md) it requests."""

    brief: ClassVar[str] = "no pool could hold it"
    subject: ClassVar[str] = "it is "

    resources: Annotated[str, "Resources that the job requests of each instance, as in its tag."]
    needed: Annotated[int, "Instances that the job needs."]
    largest: Annotated[int, "Instances in the largest pool of suitable instances; 0 if there is none."]
    expansion: Annotated[str, "Why the queue creates no pool for the job; empty if expansion is off."] = ""
    at_zero: Annotated[bool, "Whether there are suitable pools, all with a cap of 0."] = False

    def message(self) -> str:
        """Return the reason as a predicate."""
        none = "every pool of such instances has a cap of 0" if self.at_zero else "no pool has such instances"
        has = f"the largest pool of such instances has {self.largest}" if self.largest else none
        return f"infeasible: needs {self.needed} x ({self.resources}), {has}{_no_expansion(self.expansion)}"


def _no_expansion(cause: str) -> str:
    return f"; the queue creates no pool for it: {cause}" if cause else ""
