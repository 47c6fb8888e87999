"""Deletes the rows of an ended job. Its identity row stays without the request, so that its name stays reserved."""

from __future__ import annotations

from collections.abc import Sequence

from trainmaster.adapters.dynamodb.rows import REQUEST_ROWS, Key, Row, job_key, keyed, place
from trainmaster.adapters.dynamodb.table import MAX_ACTIONS, Action, Guard, Table
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.store_limits import check_purge

PURGED = "purged"
"""Attribute of the identity row of a purged job."""


def purge(table: Table, job: Job, others: Sequence[Action]) -> bool:
    """Delete the rows of an ended job together with other writes; return whether that was done.

    Rows beyond the limit of a transaction, which only very long histories have, are deleted afterwards.
    """
    check_purge(job)
    live, identity = place(job), job_key(job.name)
    stored = [(row["pk"]["S"], row["sk"]["S"]) for row in table.all_rows(identity[0])]
    keys = sorted((key for key in stored if key not in (live, identity)), key=_requests_first)
    room = MAX_ACTIONS - 2 - len(others)
    writes = [table.delete_action(live, Guard("version", job.version)), table.put_action(tombstone(job))]
    if table.commit([*writes, *map(table.delete_action, keys[:room]), *others]):
        return False
    for key in keys[room:]:
        table.delete(key)
    return True


def tombstone(job: Job) -> Row:
    """Return the identity row of a purged job."""
    return keyed(job_key(job.name), jobName=job.name, **{PURGED: 1})


def is_purged(identity: Row | None) -> bool:
    """Return whether an identity row is that of a purged job."""
    return identity is not None and PURGED in identity


def _requests_first(key: Key) -> tuple[bool, str]:
    return (not key[1].startswith(REQUEST_ROWS), key[1])
