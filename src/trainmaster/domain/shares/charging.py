"""What a change of a job tells of the capacity that it held: which attempt it ends, and until when that is charged.

An attempt is charged in parts, each with the units that it held: one whenever it holds others from then on, the last
one at its end. So what is charged is what was held, each second once, however often a job is resized. It must not
charge: that is `usage`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import ACTIVE, Job, JobState


def ended_by(before: Job, after: Job) -> Attempt | None:
    """The attempt that this change ends, as it is from then on; None where it ends none."""
    if before.state not in ACTIVE or before.attempt is None or after.attempt is None:
        return None
    if after.attempt.number != before.attempt.number:
        return after.past[-1]
    return after.attempt if after.state not in ACTIVE else None


def charged_until(before: Job, after: Job) -> datetime | None:
    """Until when the units that it had before the change are charged by it; None where it goes on holding them."""
    ended = ended_by(before, after)
    if ended is not None:
        return ended.ended_at
    if before.state not in ACTIVE or before.attempt is None or after.attempt is None:
        return None
    return after.attempt.sized_at if after.attempt.held_since != before.attempt.held_since else None


def books(before: Job, after: Job) -> bool:
    """Whether a change is to be remembered in `records`."""
    return ended_by(before, after) is not None or charged_until(before, after) is not None


def pause_of(before: Job, after: Job) -> timedelta | None:
    """How long the resize took that this change completes, as far as the job paid for it; None for other changes.

    A growth of a group of training jobs costs it nothing while the members are on their way, so only what members take
    to save their work and leave teaches anything there.
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
