"""Find which attempt a change of a job ends, and until when its units are charged.

An attempt is charged in parts, one at each change of its units and one at its end, so that each second is charged once
with the units held in it. `usage` does the charging.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import ACTIVE, Job, JobState


def ended_by(before: Job, after: Job) -> Attempt | None:
    """Return the attempt that this change ends, as it is then; None if it ends none."""
    if before.state not in ACTIVE or before.attempt is None or after.attempt is None:
        return None
    if after.attempt.number != before.attempt.number:
        return after.past[-1]
    return after.attempt if after.state not in ACTIVE else None


def charged_until(before: Job, after: Job) -> datetime | None:
    """Return until when the units held before the change are charged by it; None if they stay held."""
    ended = ended_by(before, after)
    if ended is not None:
        return ended.ended_at
    if before.state not in ACTIVE or before.attempt is None or after.attempt is None:
        return None
    return after.attempt.sized_at if after.attempt.held_since != before.attempt.held_since else None


def books(before: Job, after: Job) -> bool:
    """Return whether a change is booked in `records`."""
    return ended_by(before, after) is not None or charged_until(before, after) is not None


def pause_of(before: Job, after: Job) -> timedelta | None:
    """Return the time that the resize completed by this change cost the job; None for other changes.

    A growth by members costs nothing while they start, so only the time that members take to save their work and leave
    counts there.
    """
    attempt, elastic = before.attempt, before.elastic
    if attempt is None or elastic is None or before.state is not JobState.RESIZING or after.attempt is None:
        return None
    under_way, done = attempt.resizing, after.attempt.sized_at
    if after.state is not JobState.RUNNING or under_way is None or under_way.given_up or done is None:
        return None
    if elastic.hook is not Hook.MEMBERS:
        return done - under_way.asked_at
    gone = [member.left_at for member in attempt.members if member.left_at is not None]
    return max(gone) - under_way.asked_at if gone else None
