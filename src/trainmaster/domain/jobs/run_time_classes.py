"""Classes of jobs with similar run times, from the narrowest to the widest."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from trainmaster.domain.jobs.job import Job

ALL = "*"
"""The widest kind of training jobs."""


def kinds_of(job: Job) -> tuple[str, ...]:
    """Return the classes of a job, narrowest first; jobs of different kinds have none in common."""
    if job.work is not None:
        return job.work.run_time_classes
    return _kinds(job.share, job.container_image, types_of(job), job.demand.size)


@lru_cache(maxsize=4096)
def _kinds(share: str, image: str, types: str, count: int) -> tuple[str, ...]:
    return (f"{share}|{_short(image)}|{types}|{count}", f"|{types}|{count.bit_length()}", ALL)


def _short(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8] if name else ""


def types_of(job: Job) -> str:
    """Return the instance types that a job can run on as text; its resources instead, if it requests these."""
    return job.demand.types
