"""How a worker ends with a region, or with the merging: done, or given back with what became of it.

It must not read images nor results.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import StrEnum

from trainmaster.domain.errors import InvalidRequest, ServiceTrouble, Throttled, TrainmasterError
from trainmaster.domain.image.work import MERGE, Claim, run_of
from trainmaster.imaging.task import Hold, Queue

log = logging.getLogger(__name__)

NO_TIME = "a worker's time was too short for a single tile"
_FIRST_DELAY = 5.0
_LONGEST_DELAY = 300.0
_THROTTLED_DELAY = 30.0


class Outcome(StrEnum):
    """What became of a message about a region."""

    NOTHING = "nothing to do"
    DONE = "done"
    AGAIN = "to be tried again"
    FAILED = "failed for good"
    STOPPED = "left off"
    LOST = "taken over by another worker"


class Stopped(Exception):
    """The region is to be left off, or is another worker's now."""


class TimeUp(Exception):
    """The worker has no time for more."""


def done(hold: Hold, *, features: int) -> Outcome:
    """The region's result is written."""
    left = hold.queue.runs.finish(hold.claim, hold.queue.clock.now(), features=features)
    if left is None:
        return Outcome.LOST
    _go_on(hold.queue, hold.claim, left)
    return Outcome.DONE


def given_back(hold: Hold, why: BaseException, *, progress: bool) -> Outcome:
    """The region is not done.

    A try that brought it further counts as none where only time was short, or the endpoint busy: the next one goes on
    from there. What the request itself makes impossible is not tried again.

    Args:
        hold: what is given back.
        why: what happened.
        progress: whether tiles were done, and are kept.
    """
    queue, claim, record = hold.queue, hold.claim, hold.record
    if isinstance(why, Stopped):
        if queue.runs.leave(claim, queue.clock.now(), reason="", final=False) is None:
            return Outcome.LOST
        # Whoever stopped it waits for what it holds.
        _tell(queue, claim)
        return Outcome.STOPPED
    forgiven = progress and isinstance(why, TimeUp | Throttled)
    reason = "" if forgiven else reason_of(why)
    final = isinstance(why, InvalidRequest) or (not forgiven and record.tries >= queue.attempts)
    trace = None if isinstance(why, TrainmasterError | TimeUp) else why
    told = {"region": claim.number, "cause": reason_of(why), "final": final}
    log.warning("a region was not done", extra=told, exc_info=trace)
    left = queue.runs.leave(claim, queue.clock.now(), reason=reason, final=final)
    if left is None:
        return Outcome.LOST
    if final:
        _go_on(queue, claim, left)
        return Outcome.FAILED
    _dispatch(queue, claim, [claim.number], after=_delay(why, record.tries))
    return Outcome.AGAIN


def reason_of(why: BaseException) -> str:
    """What happened, for people."""
    if isinstance(why, TimeUp):
        return NO_TIME
    if isinstance(why, InvalidRequest):
        return why.message
    return str(why) if isinstance(why, ServiceTrouble) and str(why) else f"{type(why).__name__}: {why}"


def _delay(why: BaseException, tries: int) -> float:
    if isinstance(why, TimeUp):
        return 0.0
    return _THROTTLED_DELAY if isinstance(why, Throttled) else min(_FIRST_DELAY * 2 ** (tries - 1), _LONGEST_DELAY)


def _go_on(queue: Queue, claim: Claim, left: int) -> None:
    """The last region has all merged, and the queue hears of each; where neither gets through, its tick finds out."""
    if left == 0 and claim.number != MERGE:
        _dispatch(queue, claim, [MERGE])
    _tell(queue, claim)


def _tell(queue: Queue, claim: Claim) -> None:
    run = run_of(claim.job, claim.attempt)
    try:
        queue.tell(run, claim.number)
    except ServiceTrouble:
        log.exception("the queue was not told of a region", extra={"run": run})


def _dispatch(queue: Queue, claim: Claim, numbers: Sequence[int], *, after: float = 0.0) -> None:
    try:
        queue.regions.dispatch(claim.job, claim.attempt, numbers, after=after)
    except ServiceTrouble:
        log.exception("a region was not dispatched; the queue's tick does it", extra={"numbers": list(numbers)})
