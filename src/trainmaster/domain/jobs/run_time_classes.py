"""Which jobs are taken to run alike: kinds, from the narrow to the wide, that history keeps run times of.

It must not know what has been learned of them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from trainmaster.domain.jobs.job import Job
from trainmaster.images.domain.demand import pool_of

ALL = "*"
"""The widest kind of training jobs."""
IMAGES = "@"
"""What kinds of image jobs begin with, and the widest of them: no share's name does."""


def kinds_of(job: Job) -> tuple[str, ...]:
    """The kinds that a job belongs to, narrowest first; image jobs and training jobs have none in common."""
    if job.image_work is not None:
        return _image_kinds(pool_of(job.image_work), job.image_work.load)
    return _kinds(job.share, job.image, types_of(job), job.demand.size)


@lru_cache(maxsize=4096)
def _kinds(share: str, image: str, types: str, count: int) -> tuple[str, ...]:
    return (f"{share}|{_short(image)}|{types}|{count}", f"|{types}|{count.bit_length()}", ALL)


@lru_cache(maxsize=4096)
def _image_kinds(pool: str, load: int) -> tuple[str, ...]:
    where = f"{IMAGES}{_short(pool)}"
    return (f"{where}|{load.bit_length()}", where, IMAGES)


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8] if name else ""


def types_of(job: Job) -> str:
    """The instance types that a job can run on, as one text; what it asks of them, since pools come and go."""
    asked = job.demand.resources
    return ",".join(job.demand.pools) if asked is None else f"?{asked}"
