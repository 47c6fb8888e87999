"""Deletes jobs whose retention period is over, in the tick."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from trainmaster.domain.errors import ServiceError
from trainmaster.domain.jobs.listing import Filter
from trainmaster.ports.store import Store
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

DEFAULT_JOB_RETENTION = timedelta(days=400)
PURGE_MINUTES = 10
"""Minutes between two rounds."""
MAX_PURGED = 50
"""Jobs that one round deletes; a Lambda call is limited in time. A later round goes on."""


def purge_is_due(now: datetime) -> bool:
    """Return whether this minute's tick deletes jobs; it is another minute than that of `dependencies.sweep`."""
    return int(now.timestamp()) // 60 % PURGE_MINUTES == PURGE_MINUTES // 2


def purge_expired(store: Store, now: datetime, retention: timedelta, faults: list[str] | None = None) -> None:
    """Delete jobs that ended before the retention period, the oldest first; a job that others wait for stays.

    Errors of AWS are logged and not raised: a later round goes on. `faults` receives the names of jobs that an
    unexpected exception left.
    """
    purged = 0
    try:
        for job in store.ended_before(now - retention, limit=MAX_PURGED):
            with isolate_fault(job.name, faults):
                waited_for = store.list_jobs(Filter(parent=job.name), limit=1).jobs
                purged += not waited_for and store.purge(job)
    except ServiceError as error:
        log.warning("could not delete all jobs whose retention is over", extra={"cause": str(error)})
    if purged:
        log.info("deleted jobs whose retention is over", extra={"jobs": purged})
