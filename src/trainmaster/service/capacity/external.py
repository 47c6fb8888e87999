"""Find the training jobs that hold capacity without being active attempts: external ones and the queue's orphans.

Runs in ticks only: ListTrainingJobs allows two calls a second in an account, which other users need too.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta

from trainmaster.domain.capacity.external import ORPHANS, UNSETTLED, ExternalJob, Origin, external_units
from trainmaster.domain.capacity.units import Units
from trainmaster.domain.errors import NotPermitted, ServiceError, Throttled
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.plan import Snapshot
from trainmaster.ports.sagemaker import Owner
from trainmaster.service.capacity.orphans import is_attempt, stop_if_orphan
from trainmaster.service.context import ManagerContext
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

MAX_AGE = timedelta(days=30)
"""No open training job is older: SageMaker allows 28 days of runtime."""
MAX_ORPHAN_AGE = timedelta(days=1)
"""Age of listed training jobs if no pool counts external ones; orphans are found soon after their creation."""
PAUSE = 1.0
"""Seconds between two pairs of list calls, to stay within two a second."""
MAX_PAGES = 40
MAX_IDENTIFIED = 40
"""Training jobs that one tick identifies, with two calls each; it describes as many to learn that they ended."""
TAGS_VISIBLE_AFTER = timedelta(minutes=10)
"""A training job of this age without visible tags has none."""


def find_external_jobs(context: ManagerContext, snapshot: Snapshot) -> Units:
    """Stop orphans, and return the units that they and the counted external training jobs hold.

    Errors of AWS are logged and not raised: the units known before still count.
    """
    try:
        return external_units(_updated(context, snapshot), snapshot.pools)
    except ServiceError as error:
        log.warning("could not list external training jobs", extra={"cause": str(error)})
        return snapshot.external


def _updated(context: ManagerContext, snapshot: Snapshot) -> Mapping[str, ExternalJob]:
    """Update the stored external jobs from the account's open training jobs; return them by name."""
    known = snapshot.external_jobs
    counts = any(pool.count_external for pool in snapshot.pools.values())
    open_names, complete = _open_names(context, MAX_AGE if counts else MAX_ORPHAN_AGE)
    attempts = [job.attempt for job in snapshot.active if job.attempt is not None]
    ours = {name for attempt in attempts for name in attempt.training_job_names}
    adopted = {name for attempt in attempts if attempt.launched for name in attempt.training_job_names}
    missing = {name: job for name, job in known.items() if name not in adopted and name not in open_names}
    gone = [*(name for name in known if name in adopted), *_ended(context, missing, complete=complete)]
    unsettled = [name for name, job in known.items() if job.origin in UNSETTLED and name not in gone]
    orphans = [name for name in unsettled if known[name].origin in ORPHANS]
    new = [name for name in open_names if name not in known and name not in ours]
    # Last those that the manager may not describe, which never become settled.
    unsettled.sort(key=lambda name: not known[name].units)
    found = _identified(context, list(dict.fromkeys([*orphans, *new, *unsettled]))[:MAX_IDENTIFIED], known)
    present = {name: job for name, job in found.items() if job is not None}
    gone += [name for name, job in found.items() if job is None and name in known]
    return context.store.update_external_jobs(present, gone) if present or gone else known


def _open_names(context: ManagerContext, max_age: timedelta) -> tuple[list[str], bool]:
    """Return the names of the account's open training jobs, and whether they are complete."""
    since = context.clock.now() - max_age
    names: list[str] = []
    token: str | None = None
    for page_number in range(MAX_PAGES):
        if page_number and page_number % 2 == 0:
            context.clock.sleep(PAUSE)
        try:
            page = context.launcher.list_open_jobs(since, token)
        except NotPermitted as error:
            log.warning("may not list the account's training jobs", extra={"cause": str(error)})
            return names, False
        names.extend(page.names)
        token = page.token
        if token is None:
            return names, True
    log.warning("too many training jobs to list in one tick", extra={"pages": MAX_PAGES})
    return names, False


def _ended(context: ManagerContext, missing: Mapping[str, ExternalJob], *, complete: bool) -> list[str]:
    """Return which of the stored training jobs that the list lacks have ended.

    A complete list settles it, except for orphans: an event may report one before the list shows it.
    """
    settled = [name for name, job in missing.items() if complete and job.origin not in ORPHANS]
    unsure = [name for name in missing if name not in settled]
    return [*settled, *(name for name in unsure[:MAX_IDENTIFIED] if not context.launcher.units_of(name))]


def _identified(context: ManagerContext, names: Iterable[str], known: Collection[str]) -> dict[str, ExternalJob | None]:
    """Return the training jobs that could be identified, None for those that do not count any more.

    New ones that the manager may not describe are unknown, without units, so that they do not hide others.
    """
    found: dict[str, ExternalJob | None] = {}
    failed: dict[str, str] = {}
    for name in names:
        try:
            with isolate_fault(name, context.faults):
                found[name] = _identify(context, name)
        except Throttled as error:
            failed[name] = str(error)
            break
        except ServiceError as error:
            failed[name] = str(error)
            if isinstance(error, NotPermitted) and name not in known:
                found[name] = ExternalJob({}, Origin.UNKNOWN)
    if failed:
        log.warning("could not identify training jobs; the next tick retries", extra={"causes": failed})
    return found


def _identify(context: ManagerContext, name: str) -> ExternalJob | None:
    """Return the training job if it is external or an orphan; stop an orphan."""
    job = context.launcher.identify(name)
    if job is None:
        return None
    if job.owner is Owner.QUEUE:
        return stop_if_orphan(context, job)
    if job.owner is Owner.OTHER or context.clock.now() >= job.created_at + TAGS_VISIBLE_AFTER:
        return ExternalJob(job.units)
    # An attempt that began or ended after the pass read its snapshot: its name tells until its tags are visible.
    job_name = name.partition(STAMP)[0]
    return None if is_attempt(context, job_name, name) else ExternalJob(job.units, Origin.UNKNOWN)
