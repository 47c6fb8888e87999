"""Bounds that hold however idle the pools are: budgets, caps of users and shares, groups, training plans.

It must not look at what is free: that is `fit.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons import Reason


@dataclass(slots=True)
class Limits:
    """The working figures of one plan: what runs, by user, share and group. Thrown away with the plan."""

    snapshot: Snapshot
    now: datetime

    def refusal(self, job: Job, units: Units) -> Reason | None:
        """Why the job may not start on these units now, even if they were free; or None."""
        return None

    def take(self, job: Job, units: Units) -> None:
        """The job starts on these units, or they are kept for it."""
