"""Which waiting jobs would not start in a pool even if it were there: rules of shares, budgets, users and groups.

These are the rules that every plan asks (`figures.Figures.refusal`), asked before there is a pool; training plans, the
only pools that have windows, are never made. It must not look at what is free, nor make pools.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity import Units
from trainmaster.domain.clock import clock
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.limits import Limits
from trainmaster.planner.share import Shares


@dataclass(slots=True)
class Barred:
    """The working figures: what jobs hold, and what those would take that were let through. Thrown away.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime
    _limits: Limits = field(init=False)
    _shares: Shares = field(init=False)

    def __post_init__(self) -> None:
        self._limits, self._shares = Limits(self.snapshot, self.now), Shares(self.snapshot, self.now)

    def concerns(self, job: Job) -> bool:
        """Whether there is any rule that could keep the job from starting; there is none for nearly all queues."""
        return self._shares.in_play or job.group is not None or job.retry_at is not None

    def why_not(self, job: Job, units: Units) -> str:
        """Why the job would not start on these units now if they were there; "" where it would."""
        if job.retry_at is not None and job.retry_at > self.now:
            return f"the job is tried again only at {clock(job.retry_at)}"
        return self.by_rule(job, units)

    def by_rule(self, job: Job, units: Units) -> str:
        """The same but for the time until a job is tried again, which passes by itself."""
        self._shares.drop(job)
        reason = self._limits.refusal(job, units) or self._shares.refusal(job, units)
        return "" if reason is None else reason.words()

    def take(self, job: Job, units: Units) -> None:
        """The job would start on these units, and counts against those that come after it."""
        self._limits.take(job, units)
        self._shares.take(job, units)
