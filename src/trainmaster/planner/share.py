"""What each share may have of the pools: its own, what it may borrow, and what it may take back.

A share's own units (nominal) are its entitlement, whatever the priorities of others; what it does not use is lent,
and taken back by preempting borrowers. It must not choose victims or order jobs within a share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons import Reason


@dataclass(slots=True)
class Shares:
    """The working figures of one plan: what each share holds of each pool. Thrown away with the plan.

    Without shares in the policy every job may have everything, and only standing decides who steps aside.
    """

    snapshot: Snapshot

    @property
    def in_play(self) -> bool:
        """Whether the policy has any shares."""
        return bool(self.snapshot.policy.shares)

    def refusal(self, job: Job, units: Units) -> Reason | None:
        """Why the job's share may not have these units on top of what it holds, however idle they are; or None."""
        return None

    def withheld(self, job: Job, pool: str) -> int:
        """Idle units of a pool that are kept for the shares that own them, and so are not there for this job."""
        return 0

    def may_take(self, job: Job, units: Units, victim: Job, taken: Sequence[Job], *, outranks: bool) -> bool:
        """Whether the job, to start on `units`, may have `victim` step aside, given who does already.

        `outranks`: whether the job's standing (priority, level) is strictly higher than the victim's.
        """
        return outranks

    def take(self, job: Job, units: Units) -> None:
        """The job starts on these units, or they are kept for it."""

    def give(self, victims: Sequence[Job]) -> None:
        """These will step aside."""


def turns(ordered: Sequence[Job], shares: Shares) -> Iterator[Job]:
    """The jobs in the order in which they are considered; reads `shares` anew before each.

    Args:
        ordered: by standing and the order in force, each share's jobs among themselves in their right order.
        shares: the state that moves as jobs are considered.
    """
    yield from ordered
