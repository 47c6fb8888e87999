"""How a worker ends with a region, or with the merging: done, or given back with what became of it.

It must not read images nor results.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from trainmaster.domain.errors import InvalidRequest, ServiceError, Throttled, TrainmasterError
from trainmaster.domain.text import one_line
from trainmaster.images.domain.leases import MAX_PAUSES, pause
from trainmaster.images.domain.work import BEGUN, Claim, RegionRecord, Rest, run_of
from trainmaster.images.pixels.work.task import Assignment, Queue

log = logging.getLogger(__name__)

NO_TIME = "a worker's time was too short for a single tile"
_FIRST_DELAY = 5.0
_MAX_DELAY = 300.0


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


def done(assignment: Assignment, *, features: int) -> Outcome:
    """The region's result is written."""
    rest = assignment.queue.runs.finish(assignment.claim, assignment.queue.clock.now(), features=features)
    if rest is None:
        return Outcome.LOST
    _go_on(assignment.queue, assignment.claim, rest)
    return Outcome.DONE


def given_back(assignment: Assignment, why: BaseException, *, progress: bool) -> Outcome:
    """The region is not done.

    Args:
        assignment: what is given back.
        why: what happened.
        progress: whether tiles were done, and are kept.
    """
    queue, claim = assignment.queue, assignment.claim
    if isinstance(why, Stopped):
        return _left_off(queue, claim)
    found = verdict(assignment.record, why, attempts=queue.attempts, progress=progress)
    trace = None if isinstance(why, TrainmasterError | TimeUp) else why
    told = {"region": claim.number, "cause": reason_of(why), "final": found.final}
    log.warning("a region was not done", extra=told, exc_info=trace)
    now = queue.clock.now()
    rest = queue.runs.leave(claim, now, reason=found.reason, final=found.final, pauses=found.pauses)
    if rest is None:
        return Outcome.LOST
    if found.final:
        _go_on(queue, claim, rest)
        return Outcome.FAILED
    _dispatch(queue, claim, [claim.number], after=found.delay)
    return Outcome.AGAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a region that is not done.

    Attributes:
        reason: what is kept of why; "" where that is no trouble.
        final: whether it has failed for good.
        pauses: how often in a row it has paused now; 0 where it does not.
        delay: seconds until it is tried again; 0 where it is not.
    """

    reason: str
    final: bool
    pauses: int
    delay: float


def verdict(record: RegionRecord, why: BaseException, *, attempts: int, progress: bool) -> Verdict:
    """What becomes of a region after this.

    A try counts as none where the worker was told to slow down: that is the endpoint's trouble, or AWS's, and the
    region pauses, ever longer, up to `MAX_PAUSES` times without a tile between. Nor does one count that brought the
    region further before time was short: the next goes on from there. What the request itself makes impossible is not
    tried again.

    Args:
        record: as it was when the worker took it.
        why: what happened; not `Stopped`.
        attempts: tries of a region before it has failed for good.
        progress: whether tiles were done, and are kept.
    """
    pauses = (1 if progress else record.pauses + 1) if isinstance(why, Throttled) else 0
    in_time = progress and isinstance(why, TimeUp)
    reason = "" if in_time else _told(why, pauses)
    spent = record.tries >= attempts and not in_time and not pauses
    if isinstance(why, InvalidRequest) or spent or pauses > MAX_PAUSES:
        return Verdict(reason=reason, final=True, pauses=0, delay=0.0)
    delay = pause(pauses).total_seconds() if pauses else _delay(why, record.tries)
    return Verdict(reason=reason, final=False, pauses=pauses, delay=delay)


def _left_off(queue: Queue, claim: Claim) -> Outcome:
    if queue.runs.leave(claim, queue.clock.now(), reason="", final=False) is None:
        return Outcome.LOST
    # Whoever stopped it waits for what it holds.
    _tell(queue, claim, claim.number)
    return Outcome.STOPPED


def reason_of(why: BaseException) -> str:
    """What happened, for people; strangers' words in it obey no terminal."""
    if isinstance(why, TimeUp):
        return NO_TIME
    if isinstance(why, InvalidRequest):
        return one_line(why.message)
    return one_line(str(why) if isinstance(why, ServiceError) and str(why) else f"{type(why).__name__}: {why}")


def tell_begun(queue: Queue, claim: Claim) -> None:
    """Somebody is at work, and the queue does not know that yet."""
    _tell(queue, claim, BEGUN)


def _tell(queue: Queue, claim: Claim, number: int) -> None:
    """Have the queue look at the run; where it cannot be told its tick finds out."""
    run = run_of(claim.job, claim.attempt)
    try:
        queue.tell(run, number)
    except ServiceError:
        log.exception("the queue was not told of a region", extra={"run": run})


def _told(why: BaseException, pauses: int) -> str:
    if pauses <= MAX_PAUSES:
        return reason_of(why)
    hours = sum((pause(number) for number in range(1, MAX_PAUSES + 1)), timedelta(0)) / timedelta(hours=1)
    return f"its workers were told to slow down {pauses} times in a row, for over {hours:.0f} hours: {reason_of(why)}"


def _delay(why: BaseException, tries: int) -> float:
    return 0.0 if isinstance(why, TimeUp) else min(_FIRST_DELAY * 2 ** (tries - 1), _MAX_DELAY)


def _go_on(queue: Queue, claim: Claim, rest: Rest) -> None:
    """What is next is dispatched, and the queue hears of each end; where neither gets through, its tick finds out."""
    if rest.next:
        _dispatch(queue, claim, rest.next)
    _tell(queue, claim, claim.number)


def _dispatch(queue: Queue, claim: Claim, numbers: Sequence[int], *, after: float = 0.0) -> None:
    try:
        queue.regions.dispatch(claim.job, claim.attempt, numbers, after=after)
    except ServiceError:
        log.exception("a region was not dispatched; the queue's tick does it", extra={"numbers": list(numbers)})
