"""A restore: how the table, set back to an earlier time, differs from what SageMaker has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.access.caller import UNKNOWN, Caller
from trainmaster.domain.compat import StrEnum

MAX_LISTED = 1_000
"""Differences, and names of jobs, that a stored comparison has at most; a row has 400 KB."""


class DifferenceKind(StrEnum):
    """The kinds of differences.

    ended: the job says active, and its training job has ended. newer: SageMaker has a later attempt of the job than the
    table. lost: SageMaker has a training job of the queue whose job the table does not have. surplus: the job has ended
    in the table, and its training job is open.
    """

    ENDED = "ended"
    NEWER = "newer"
    LOST = "lost"
    SURPLUS = "surplus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference.

    Attributes:
        job: the job's name.
        training_job: the training job's name.
        kind: see `DifferenceKind`.
        stored: state of the job in the table; "" if it is not there.
        status: `TrainingJobStatus`; "" if SageMaker does not know the training job.
        action: what the adoption does, in words.
    """

    job: str
    training_job: str
    kind: DifferenceKind
    stored: str
    status: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A comparison that an administrator asked for, and its result.

    Attributes:
        asked_at: when.
        asked_by: the administrator; entries of the audit name them for each adoption.
        adopt: whether to adopt the differences, not only to list them.
        since: training jobs created from then on are compared; None before the first try. It stays the same until the
            manager resumes: adopted attempts are newer than the table was.
        compared_at: when the manager did it; None before.
        differences: as found then, the first `MAX_LISTED`.
        left_out: number of further ones; they are adopted as well.
        adopted: names of the jobs that were changed, the first `MAX_LISTED`.
        failed: names of the jobs that could not be, with the reasons, the first `MAX_LISTED`.
    """

    asked_at: datetime
    asked_by: Caller = UNKNOWN
    adopt: bool = False
    since: datetime | None = None
    compared_at: datetime | None = None
    differences: tuple[Difference, ...] = ()
    left_out: int = 0
    adopted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
