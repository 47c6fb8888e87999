"""A worker's turn: one message about a region, or about the merging, from taking it to ending with it.

Messages come twice and late: only who can take the region works on it. It must not know how messages come.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.work import MERGE, Claim, RegionRecord
from trainmaster.images.pixels.features.merge import Merging
from trainmaster.images.pixels.features.results import Results
from trainmaster.images.pixels.reading.windows import Image
from trainmaster.images.pixels.work.models import Model
from trainmaster.images.pixels.work.region import RegionTools, RegionWork
from trainmaster.images.pixels.work.region_outcome import Outcome, given_back, tell_begun
from trainmaster.images.pixels.work.task import Assignment, Queue, Task, TimeLimits

log = logging.getLogger(__name__)


class WorkerFactory(Protocol):
    """Makes what jobs are worked on with."""

    def image(self, task: Task) -> Image:
        """The job's image, open. Raises as `Source.reading` does."""
        ...

    def model(self, task: Task, wait: Callable[[float], bool]) -> Model:
        """The job's model, with patience that ends where `wait` answers True. Raises `InvalidRequest`."""
        ...

    def results(self, task: Task) -> Results:
        """Where the job's results are."""
        ...


def take_turn(
    claim: Claim, queue: Queue, limits: TimeLimits, task_of: Callable[[Claim], Task], factory: WorkerFactory
) -> Outcome:
    """Work on a region, or on the merging, where it is to be had.

    Args:
        claim: what the message asks for, and who works.
        queue: shared with the queue.
        limits: how long it may take.
        task_of: the job that a claim is about; called once the claim holds.
        factory: makes what it is worked on with.

    Raises `Throttled`, `Unavailable` where it could not be taken, or not be given back.
    """
    now = queue.clock.now()
    record = queue.runs.begin(claim, now, dead_before=now - timedelta(seconds=limits.dead_after))
    if record is None:
        return Outcome.NOTHING
    assignment = Assignment(claim=claim, record=record, queue=queue, limits=limits)
    try:
        _check_tries(record, queue.attempts)
        task = task_of(claim)
        if task.unheard:
            tell_begun(queue, claim)
        if claim.number == MERGE:
            return Merging(task, assignment, factory.results(task)).work()
        tools = _tools(task, factory)
    except Exception as error:  # noqa: BLE001 - whatever it was, the region has to be given back
        return given_back(assignment, error, progress=False)
    try:
        return RegionWork(task, assignment, tools).work()
    finally:
        tools.image.close()


def _tools(task: Task, factory: WorkerFactory) -> RegionTools:
    leave_off = threading.Event()
    model = factory.model(task, leave_off.wait)
    return RegionTools(image=factory.image(task), model=model, results=factory.results(task), leave_off=leave_off)


def _check_tries(record: RegionRecord, most: int) -> None:
    """Workers that die do not count their tries themselves."""
    if record.tries > most:
        before = f"; before that: {record.reason}" if record.reason else ""
        raise InvalidRequest(f"its workers died {record.tries - 1} times{before}")
