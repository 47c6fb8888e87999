"""Find external training jobs: those that run in the account without the queue, in pools that count them.

Runs in ticks only: ListTrainingJobs allows two calls a second in an account, which other users need too.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from trainmaster.domain.capacity.units import Units, external_units
from trainmaster.domain.errors import ServiceError
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.plan import Snapshot
from trainmaster.service.context import ManagerContext

log = logging.getLogger(__name__)

MAX_AGE = timedelta(days=30)
"""No open training job is older: SageMaker allows 28 days of runtime."""
PAUSE = 0.5
"""Seconds between two list calls, to stay within two a second."""
MAX_PAGES = 40
MAX_DESCRIBED = 40
"""Training jobs that one tick describes to learn that they began, and as many that they ended."""


def find_external_jobs(context: ManagerContext, snapshot: Snapshot) -> Units:
    """Return the units that external training jobs hold in the pools that count them.

    Errors of AWS are logged and not raised: the units known before still count.
    """
    if not any(pool.count_external for pool in snapshot.pools.values()):
        return snapshot.external
    try:
        return external_units(_updated(context, snapshot), snapshot.pools)
    except ServiceError as error:
        log.warning("could not list external training jobs", extra={"cause": str(error)})
        return snapshot.external


def _updated(context: ManagerContext, snapshot: Snapshot) -> Mapping[str, Units]:
    """Update the stored external jobs from the account's open training jobs; return their units by name."""
    known = context.store.update_external_jobs({})
    open_names, complete = _open_names(context)
    attempts = (job.attempt for job in snapshot.active if job.attempt is not None)
    ours = {name for attempt in attempts for name in attempt.training_job_names}
    new = [name for name in open_names if name not in known and name not in ours and not _from_queue(context, name)]
    missing = [name for name in known if name not in open_names]
    gone = missing if complete else [name for name in missing[:MAX_DESCRIBED] if not context.launcher.units_of(name)]
    present = {name: units for name in new[:MAX_DESCRIBED] if (units := context.launcher.units_of(name))}
    return context.store.update_external_jobs(present, gone)


def _open_names(context: ManagerContext) -> tuple[list[str], bool]:
    """Return the names of the account's open training jobs, and whether they are complete."""
    since = context.clock.now() - MAX_AGE
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
    """Return whether a training job is an attempt that began or ended after the pass read its snapshot."""
    if STAMP in name:
        return True
    job = context.store.find(name)
    return job is not None and any(attempt.training_job_name == name for attempt in job.attempts)
