"""Limits of the store, shared by the DynamoDB and the in-memory implementation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from trainmaster.domain.errors import NameTaken, TooLarge
from trainmaster.domain.jobs.job import ENDED, Job

MAX_CHANGES = 90
"""Changes of one transition: a transaction may write 100 items (DynamoDB API reference, `TransactWriteItems`)."""
MAX_REQUEST_BYTES = 3_700_000
"""Bytes of a compressed request; a transaction may write 4 MB (DynamoDB developer guide, "Service quotas")."""


def check_changes(changes: Sequence[tuple[Job, Job]]) -> None:
    """Raise `ValueError` for too many changes in one transition, and for two changes of one job."""
    if len(changes) > MAX_CHANGES or len({before.name for before, _ in changes}) < len(changes):
        raise ValueError(f"a transition has at most {MAX_CHANGES} changes, one of each job")


def check_purge(job: Job) -> None:
    """Raise ValueError for a job that has not ended."""
    if job.state not in ENDED:
        raise ValueError(f"job {job.name} is {job.state}, and only ended jobs are purged")


def purged_name(name: str) -> NameTaken:
    """Return the error for a submission with the name of a purged job."""
    return NameTaken(
        f"The name {name} belonged to a job that was purged.",
        field="TrainingJobName",
        hint="Choose another name; SageMaker does not accept the name of an earlier training job either.",
    )


def check_request(request: Mapping[str, object], size: int) -> None:
    """Raise `TooLarge`, naming the largest part, if the compressed request has too many bytes."""
    if size <= MAX_REQUEST_BYTES:
        return
    largest = max(request, key=lambda member: len(json.dumps(request[member])))
    raise TooLarge(
        f"The compressed request has {size:,} bytes; the queue can store {MAX_REQUEST_BYTES:,}.",
        field=largest,
        hint=f"{largest} is its largest part: store that in S3 and pass its address.",
    )
