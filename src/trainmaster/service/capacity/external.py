"""Training jobs that run in the account without having come from the queue, in pools that count them.

Run from the tick: ListTrainingJobs allows two requests a second in an account (facts, 2.2), which others need too.
It must not touch those jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from trainmaster.domain.capacity.units import Units, foreign_units
from trainmaster.domain.errors import ServiceTrouble
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.plan import Snapshot
from trainmaster.service.context import ManagerContext

log = logging.getLogger(__name__)

MAX_JOB_LENGTH = timedelta(days=30)
"""No training job is older than this and still open (28 days of runtime, 30 in all)."""
PAUSE = 0.5
"""Seconds between two list calls, so that at most two are made in a second."""
MAX_PAGES = 40
MAX_LOOKS = 40


def find_external_jobs(context: ManagerContext, snapshot: Snapshot) -> Units:
    """Look for foreign jobs; returns the units that they hold in the pools that count them.

    Trouble at AWS only costs this tick's news: what was known before still counts.
    """
    if not any(pool.count_foreign for pool in snapshot.pools.values()):
        return snapshot.foreign
    try:
        return foreign_units(_look_around(context, snapshot), snapshot.pools)
    except ServiceTrouble as error:
        log.warning("could not look for foreign training jobs", extra={"cause": str(error)})
        return snapshot.foreign


def _look_around(context: ManagerContext, snapshot: Snapshot) -> Mapping[str, Units]:
    """All known foreign jobs after this tick's look, with their units."""
    known = context.store.update_external_jobs({})
    open_now, complete = _open_names(context)
    attempts = (job.attempt for job in snapshot.active if job.attempt is not None)
    ours = {name for attempt in attempts for name in attempt.training_job_names}
    fresh = [name for name in open_now if name not in known and name not in ours and not _from_queue(context, name)]
    missing = [name for name in known if name not in open_now]
    gone = missing if complete else [name for name in missing[:MAX_LOOKS] if not context.launcher.units_of(name)]
    present = {name: units for name in fresh[:MAX_LOOKS] if (units := context.launcher.units_of(name))}
    return context.store.update_external_jobs(present, gone)


def _open_names(context: ManagerContext) -> tuple[list[str], bool]:
    """Names of the account's open training jobs, and whether these are all."""
    since = context.clock.now() - MAX_JOB_LENGTH
    names: list[str] = []
    token: str | None = None
    for page_number in range(MAX_PAGES):
        if page_number:
            context.clock.sleep(PAUSE)
        page = context.launcher.list_open_jobs(since, token)
        names.extend(page.names)
        token = page.token
        if token is None:
            return names, True
    log.warning("too many training jobs to list in one tick", extra={"pages": MAX_PAGES})
    return names, False


def _from_queue(context: ManagerContext, name: str) -> bool:
    """Whether a training job is an attempt of ours that ended, or began, since the pass read its snapshot."""
    if STAMP in name:
        return True
    job = context.store.find(name)
    return job is not None and any(attempt.training_job_name == name for attempt in job.attempts)
