"""Outcomes of a worker's claim: a region, or the merging, is finished or given back with a reason."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.domain.compat import StrEnum
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
    """Outcome of a message about a region."""

    NOTHING = "nothing to do"
    DONE = "done"
    AGAIN = "to be tried again"
    FAILED = "failed for good"
    STOPPED = "left off"
    LOST = "taken over by another worker"


class Stopped(Exception):
    """The region has to be given back: its run was stopped, or another worker has it."""


class TimeUp(Exception):
    """The worker has no time for more."""


def done(assignment: Assignment, *, features: int) -> Outcome:
    """Record the region as done once its result is saved."""
    rest = assignment.queue.runs.finish(assignment.claim, assignment.queue.clock.now(), features=features)
    if rest is None:
        return Outcome.LOST
    _dispatch_next(assignment.queue, assignment.claim, rest)
    return Outcome.DONE


def give_back(assignment: Assignment, why: BaseException, *, progress: bool) -> Outcome:
    """Give back a region that is not done.

    Args:
        assignment: the region.
        why: the error, or `Stopped` or `TimeUp`.
        progress: whether completed tiles are saved.
    """
    queue, claim = assignment.queue, assignment.claim
    if isinstance(why, Stopped):
        return _release(queue, claim)
    found = verdict(assignment.record, why, attempts=queue.attempts, progress=progress)
    trace = None if isinstance(why, TrainmasterError | TimeUp) else why
    log_fields = {"region": claim.number, "cause": reason_of(why), "final": found.final}
    log.warning("a region was not completed", extra=log_fields, exc_info=trace)
    now = queue.clock.now()
    rest = queue.runs.leave(claim, now, reason=found.reason, final=found.final, pauses=found.pauses)
    if rest is None:
        return Outcome.LOST
    if found.final:
        _dispatch_next(queue, claim, rest)
        return Outcome.FAILED
    _dispatch(queue, claim, [claim.number], after=found.delay)
    return Outcome.AGAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Decision about a region that is not done.

    Attributes:
        reason: the stored reason; "" without an error.
        final: whether it has failed.
        pauses: consecutive throttled tries; 0 without throttling.
        delay: seconds until the next try; 0 without one.
    """

    reason: str
    final: bool
    pauses: int
    delay: float


def verdict(record: RegionRecord, why: BaseException, *, attempts: int, progress: bool) -> Verdict:
    """Return the decision about a region after an error.

    A throttled try does not count: the cause is the endpoint or AWS, and the region pauses, ever longer, up to
    `MAX_PAUSES` times without a tile done between. Nor does a try count that completed tiles before its time ran out:
    the next continues from there. An invalid request is not tried again.

    Args:
        record: as it was when the worker took it.
        why: the error; not `Stopped`.
        attempts: maximum tries of a region.
        progress: whether completed tiles are saved.
    """
    pauses = (1 if progress else record.pauses + 1) if isinstance(why, Throttled) else 0
    in_time = progress and isinstance(why, TimeUp)
    reason = "" if in_time else _reason_text(why, pauses)
    spent = record.tries >= attempts and not in_time and not pauses
    if isinstance(why, InvalidRequest) or spent or pauses > MAX_PAUSES:
        return Verdict(reason=reason, final=True, pauses=0, delay=0.0)
    delay = pause(pauses).total_seconds() if pauses else _delay(why, record.tries)
    return Verdict(reason=reason, final=False, pauses=pauses, delay=delay)


def _release(queue: Queue, claim: Claim) -> Outcome:
    if queue.runs.leave(claim, queue.clock.now(), reason="", final=False) is None:
        return Outcome.LOST
    # The stop waits for the units that this worker holds.
    _report(queue, claim, claim.number)
    return Outcome.STOPPED


def reason_of(why: BaseException) -> str:
    """Return the reason as text, without terminal control characters."""
    if isinstance(why, TimeUp):
        return NO_TIME
    if isinstance(why, InvalidRequest):
        return one_line(why.message)
    return one_line(str(why) if isinstance(why, ServiceError) and str(why) else f"{type(why).__name__}: {why}")


def report_begun(queue: Queue, claim: Claim) -> None:
    """Report to the queue that a worker has begun."""
    _report(queue, claim, BEGUN)


def _report(queue: Queue, claim: Claim, number: int) -> None:
    """Wake the manager for this run; if that fails, its tick finds out."""
    run = run_of(claim.job, claim.attempt)
    try:
        queue.tell(run, number)
    except ServiceError:
        log.exception("could not notify the queue of a region", extra={"run": run})


def _reason_text(why: BaseException, pauses: int) -> str:
    if pauses <= MAX_PAUSES:
        return reason_of(why)
    hours = sum((pause(number) for number in range(1, MAX_PAUSES + 1)), timedelta(0)) / timedelta(hours=1)
    return f"its workers were throttled {pauses} times in a row, for over {hours:.0f} hours: {reason_of(why)}"


def _delay(why: BaseException, tries: int) -> float:
    return 0.0 if isinstance(why, TimeUp) else min(_FIRST_DELAY * 2 ** (tries - 1), _MAX_DELAY)


def _dispatch_next(queue: Queue, claim: Claim, rest: Rest) -> None:
    """Dispatch the next regions and report the end; if either fails, the manager's tick finds out."""
    if rest.next:
        _dispatch(queue, claim, rest.next)
    _report(queue, claim, claim.number)


def _dispatch(queue: Queue, claim: Claim, numbers: Sequence[int], *, after: float = 0.0) -> None:
    try:
        queue.regions.dispatch(claim.job, claim.attempt, numbers, after=after)
    except ServiceError:
        log.exception("a region was not dispatched; the next tick dispatches it", extra={"numbers": list(numbers)})
