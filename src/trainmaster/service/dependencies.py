"""Release jobs that wait for a time or for other jobs, or cancel them if those they depend on fail.

Each step is one guarded, idempotent transition: a later tick repeats what a crash or a lost race left undone. Parents
exist before their children, so there are no cycles. A job that a person holds stays held.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import InvalidRequest, ServiceError
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, Job, JobState, ParentRule
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.requests.tags import option_field
from trainmaster.ports.store import Request, Store
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

MAX_RELEASED = 1_000
"""Jobs that one parent's end, or one tick, releases; a Lambda call is limited in time. A later tick goes on."""
MAX_TRIES = 8
SWEEP_MINUTES = 10
MAX_SWEPT = 20_000
"""Held jobs that one sweep lists."""
MAX_PARENTS = 200
"""Parents that one sweep reads."""
_PAGE = 100


def resolve_parents(store: Store, job: Job, request: Request, now: datetime) -> tuple[Job, tuple[str, ...]]:
    """Return the job to store and advice about it.

    The job is held if its times or parents require it; parents that have completed are left out. Raises
    `InvalidRequest` if a parent does not exist.
    """
    parents, advice = [], []
    for name in job.after:
        parent = store.find(name)
        if parent is None:
            raise InvalidRequest(
                f"There is no job {name} to run after.",
                field=option_field(request, "after"),
                hint="Submit it first: a job can only run after jobs that exist.",
            )
        if parent.state is not JobState.COMPLETED:
            parents.append(name)
        if parent.state in ENDED - {JobState.COMPLETED} and job.if_parent_fails is not ParentRule.RUN:
            advice.append(f"This job runs after {name}, which is {parent.state}, so it does not run.")
    return lifecycle.hold_if_needed(replace(job, after=tuple(parents)), now), tuple(advice)


def apply_parent_ends(store: Store, job: Job, now: datetime) -> Job:
    """Return a just stored job after the ends of its parents: one may have ended while the job was being stored."""
    for name in job.after if job.state is JobState.HELD else ():
        parent = store.find(name)
        if parent is not None:
            job = _transition(store, job, _on_end_of(parent, now)) or job
    return job


def release_dependents(store: Store, ended: Job, now: datetime, faults: list[str] | None = None) -> bool:
    """Release or cancel the jobs that depend on an ended one, and those that depend on these; return whether any was.

    Errors of AWS are logged and not raised: a later tick goes on. `faults` receives the names of jobs that an
    unexpected exception left unchanged.
    """
    try:
        return _release(store, ended, now, faults) > 0
    except ServiceError as error:
        log.warning("could not release dependent jobs", extra={"job": ended.name, "cause": str(error)})
        return False


def enqueue_due(store: Store, now: datetime, faults: list[str] | None = None) -> None:
    """Enqueue the jobs whose start time has come, the longest due first; `faults` as in `release_dependents`."""
    enqueued = 0
    try:
        for job in _listed(store, Filter(due=now)):
            with isolate_fault(job.name, faults):
                enqueued += _transition(store, job, lambda held: lifecycle.enqueue_if_due(held, now)) is not None
            if enqueued >= MAX_RELEASED:
                return
    except ServiceError as error:
        log.warning("could not enqueue all due jobs", extra={"cause": str(error)})


def sweep(store: Store, snapshot: Snapshot, now: datetime, faults: list[str] | None = None) -> bool:
    """Release jobs that missed a parent's end; return whether there were any. `faults` as in `release_dependents`.

    A parent's end and the release of its dependents are separate transactions, and a crash may fall between them. A
    parent that is active, waiting or held has not ended; the others are read, in turns if they are many.
    """
    try:
        return _sweep(store, snapshot, now, faults) > 0
    except ServiceError as error:
        log.warning("could not sweep for missed ends of jobs", extra={"cause": str(error)})
        return False


def sweep_is_due(now: datetime) -> bool:
    """Return whether this minute's tick sweeps."""
    return int(now.timestamp()) // 60 % SWEEP_MINUTES == 0


def _sweep(store: Store, snapshot: Snapshot, now: datetime, faults: list[str] | None) -> int:
    held = _listed(store, Filter(states=frozenset({JobState.HELD})), MAX_SWEPT)
    after = {job.name: job.after for job in held}
    alive = {job.name for job in (*snapshot.active, *snapshot.waiting)} | after.keys()
    unknown = sorted({parent for parents in after.values() for parent in parents} - alive)
    released = 0
    for name in _in_turn(unknown, now):
        parent = store.find(name)
        if parent is not None and parent.state in ENDED:
            released += _release(store, parent, now, faults)
    return released


def _in_turn(names: list[str], now: datetime) -> list[str]:
    """Return the names whose turn it is; that follows from the time alone, so no state is kept."""
    rounds = -(-len(names) // MAX_PARENTS) or 1
    number = int(now.timestamp()) // 60 // SWEEP_MINUTES % rounds
    return names[number::rounds]


def _release(store: Store, ended: Job, now: datetime, faults: list[str] | None) -> int:
    released, parents = 0, deque([ended])
    while parents and released < MAX_RELEASED:
        parent = parents.popleft()
        for child in _listed(store, Filter(parent=parent.name)):
            with isolate_fault(child.name, faults):
                after = _transition(store, child, _on_end_of(parent, now))
                released += after is not None
                if after is not None and after.state in ENDED:
                    parents.append(after)
    return released


def _on_end_of(parent: Job, now: datetime) -> Callable[[Job], Job | None]:
    return lambda job: lifecycle.apply_parent_end(job, parent, now)


def _transition(store: Store, job: Job, change: Callable[[Job], Job | None]) -> Job | None:
    """Commit a change, made again from the stored job after a conflict; return None if there is nothing to change."""
    for _ in range(MAX_TRIES):
        after = change(job)
        if after is None or store.transition([(job, after)]):
            return after
        stored = store.find(job.name)
        if stored is None:
            return None
        job = stored
    return None


def _listed(store: Store, which: Filter, limit: int = MAX_RELEASED) -> Iterator[Job]:
    """Yield the jobs of a listing page by page; changes of one page's jobs do not disturb the next page."""
    cursor: str | None = None
    for _ in range(0, limit, _PAGE):
        page = store.list_jobs(which, limit=_PAGE, cursor=cursor)
        yield from page.jobs
        cursor = page.cursor
        if cursor is None:
            return
