"""Jobs that wait for a time or for other jobs: they enter the queue by themselves, or end with those they run after.

Each step is one guarded transition, and doing it twice changes nothing: what a crash or a lost race left undone, a
later tick does. Parents have to exist before their children, so no job ever waits for itself. It must not call
SageMaker, nor release what a person holds.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import InvalidRequest, ServiceTrouble
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, Job, JobState, ParentRule
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.requests import option_field
from trainmaster.ports.store import Request, Store
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

MAX_MOVED = 1_000
"""Jobs that one end, or one tick, moves at most: a Lambda call has to end in time. A later tick goes on."""
MAX_TRIES = 8
SWEEP_MINUTES = 10
MAX_SWEPT = 20_000
"""Held jobs that one sweep looks at."""
MAX_LOOKS = 200
"""Parents that one sweep asks for."""
_PAGE = 100


def resolve_parents(store: Store, job: Job, request: Request, now: datetime) -> tuple[Job, tuple[str, ...]]:
    """The job as it is to be stored: held where its times or parents say so, without parents that have completed.

    Beside it what to beware of. Raises `InvalidRequest` where a parent does not exist.
    """
    waits_for, advice = [], []
    for name in job.after:
        parent = store.find(name)
        if parent is None:
            raise InvalidRequest(
                f"There is no job {name} to run after.",
                field=option_field(request, "after"),
                hint="Submit it first: a job runs after jobs that the queue knows already.",
            )
        if parent.state is not JobState.COMPLETED:
            waits_for.append(name)
        if parent.state in ENDED - {JobState.COMPLETED} and job.if_parent_fails is not ParentRule.RUN:
            advice.append(f"This job runs after {name}, which is {parent.state}, so it does not run.")
    return lifecycle.hold_if_needed(replace(job, after=tuple(waits_for)), now), tuple(advice)


def settle(store: Store, job: Job, now: datetime) -> Job:
    """The job after all that has become of its parents meanwhile: one may have ended while the job was being stored."""
    for name in job.after if job.state is JobState.HELD else ():
        parent = store.find(name)
        if parent is not None:
            job = _moved(store, job, _told(parent, now)) or job
    return job


def release_dependents(store: Store, ended: Job, now: datetime, faults: list[str] | None = None) -> bool:
    """Tell the jobs that run after one that has ended, and those that run after these; whether any was told.

    Trouble at AWS costs nothing but time: a later tick goes on with it. `faults` gets the names of jobs that a fault of
    ours kept from being told.
    """
    try:
        return _release(store, ended, now, faults) > 0
    except ServiceTrouble as error:
        log.warning("could not tell the jobs that run after one", extra={"job": ended.name, "cause": str(error)})
        return False


def enqueue_due(store: Store, now: datetime, faults: list[str] | None = None) -> None:
    """Jobs whose time has come enter the queue, the longest due first. `faults` is that of `release_dependents`."""
    entered = 0
    try:
        for job in _listed(store, Filter(due=now)):
            with isolate_fault(job.name, faults):
                entered += _moved(store, job, lambda held: lifecycle.enqueue_if_due(held, now)) is not None
            if entered >= MAX_MOVED:
                return
    except ServiceTrouble as error:
        log.warning("could not let all jobs in whose time has come", extra={"cause": str(error)})


def sweep(store: Store, snapshot: Snapshot, now: datetime, faults: list[str] | None = None) -> bool:
    """Tell jobs of parents whose end they have missed; whether any was told. `faults` is that of `release_dependents`.

    An end and the telling are two steps, and between them a crash may fall. A parent that is active, waiting or held
    has not ended; only those that are none of these are asked for, in turns where they are many.
    """
    try:
        return _sweep(store, snapshot, now, faults) > 0
    except ServiceTrouble as error:
        log.warning("could not look for jobs that missed an end", extra={"cause": str(error)})
        return False


def _sweep(store: Store, snapshot: Snapshot, now: datetime, faults: list[str] | None) -> int:
    held = _listed(store, Filter(states=frozenset({JobState.HELD})), MAX_SWEPT)
    after = {job.name: job.after for job in held}
    alive = {job.name for job in (*snapshot.active, *snapshot.waiting)} | after.keys()
    unknown = sorted({parent for parents in after.values() for parent in parents} - alive)
    told = 0
    for name in _in_turn(unknown, now):
        parent = store.find(name)
        if parent is not None and parent.state in ENDED:
            told += _release(store, parent, now, faults)
    return told


def sweep_is_due(now: datetime) -> bool:
    """Whether this minute's tick sweeps."""
    return int(now.timestamp()) // 60 % SWEEP_MINUTES == 0


def _in_turn(names: list[str], now: datetime) -> list[str]:
    """Those whose turn it is, as the time alone tells, so that nothing needs to be written down."""
    rounds = -(-len(names) // MAX_LOOKS) or 1
    number = int(now.timestamp()) // 60 // SWEEP_MINUTES % rounds
    return names[number::rounds]


def _release(store: Store, ended: Job, now: datetime, faults: list[str] | None) -> int:
    told, parents = 0, deque([ended])
    while parents and told < MAX_MOVED:
        parent = parents.popleft()
        for child in _listed(store, Filter(parent=parent.name)):
            with isolate_fault(child.name, faults):
                after = _moved(store, child, _told(parent, now))
                told += after is not None
                if after is not None and after.state in ENDED:
                    parents.append(after)
    return told


def _told(parent: Job, now: datetime) -> Callable[[Job], Job | None]:
    return lambda job: lifecycle.parent_ended(job, parent, now)


def _moved(store: Store, job: Job, change: Callable[[Job], Job | None]) -> Job | None:
    """The job as changed, from how it stands where somebody was faster; None where there is nothing to change."""
    for _ in range(MAX_TRIES):
        after = change(job)
        if after is None or store.transition([(job, after)]):
            return after
        now = store.find(job.name)
        if now is None:
            return None
        job = now
    return None


def _listed(store: Store, which: Filter, most: int = MAX_MOVED) -> Iterator[Job]:
    """Jobs of a listing, page by page: moving those of one page does not disturb the next."""
    cursor: str | None = None
    for _ in range(0, most, _PAGE):
        page = store.list_jobs(which, limit=_PAGE, cursor=cursor)
        yield from page.jobs
        cursor = page.cursor
        if cursor is None:
            return
