"""Handles one message about a region, or about the merging, from the claim to its end.

Messages may be duplicate or late: a worker processes a region only if it can claim it.
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
from trainmaster.images.pixels.work.region_outcome import Outcome, give_back, report_begun
from trainmaster.images.pixels.work.task import Assignment, Queue, Task, TimeLimits

log = logging.getLogger(__name__)


class WorkerFactory(Protocol):
    """Creates the components that process jobs."""

    def image(self, task: Task) -> Image:
        """Return the job's image, open. Raises as `Source.reading` does."""
        ...

    def model(self, task: Task, wait: Callable[[float], bool]) -> Model:
        """Return the job's model, with retries that end once `wait` returns True. Raises `InvalidRequest`."""
        ...

    def results(self, task: Task) -> Results:
        """Return the store of the job's results."""
        ...


def process_message(
    claim: Claim, queue: Queue, limits: TimeLimits, task_of: Callable[[Claim], Task], factory: WorkerFactory
) -> Outcome:
    """Process a region, or the merging, if it can be claimed.

    Args:
        claim: the message's region, and the worker.
        queue: access to the queue.
        limits: the worker's time limits.
        task_of: returns the job of a claim; called once the claim holds.
        factory: creates the components.

    Raises `Throttled`, `Unavailable` if it could not be claimed, or not be given back.
    """
    now = queue.clock.now()
    record = queue.runs.begin(claim, now, dead_before=now - timedelta(seconds=limits.dead_after))
    if record is None:
        return Outcome.NOTHING
    assignment = Assignment(claim=claim, record=record, queue=queue, limits=limits)
    try:
        _check_tries(record, queue.attempts)
        task = task_of(claim)
        if task.begin_unreported:
            report_begun(queue, claim)
        if claim.number == MERGE:
            return Merging(task, assignment, factory.results(task)).work()
        tools = _tools(task, factory)
    except Exception as error:  # noqa: BLE001 - whatever it was, the region has to be given back
        return give_back(assignment, error, progress=False)
    try:
        return RegionWork(task, assignment, tools).work()
    finally:
        tools.image.close()


def _tools(task: Task, factory: WorkerFactory) -> RegionTools:
    stop_event = threading.Event()
    model = factory.model(task, stop_event.wait)
    return RegionTools(image=factory.image(task), model=model, results=factory.results(task), stop_event=stop_event)


def _check_tries(record: RegionRecord, max_tries: int) -> None:
    """Raise `InvalidRequest` after too many tries: workers that die do not report them."""
    if record.tries > max_tries:
        before = f"; before that: {record.reason}" if record.reason else ""
        raise InvalidRequest(f"its workers died {record.tries - 1} times{before}")
