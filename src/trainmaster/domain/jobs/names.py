"""Names of attempts' training jobs, and the part of them that is reserved."""

from __future__ import annotations

import hashlib

MAX_NAME = 63
"""Maximum length of a training job's name (CreateTrainingJob, `TrainingJobName`)."""
STAMP = "-qstamp-"
"""Marks the names of later attempts; users' names may not contain it."""


def attempt_name(job_name: str, number: int) -> str:
    """Return the training job name of an attempt: the user's own for the first, `<name>-qstamp-<n>` for later ones.

    The first keeps the user's name so that SDK waiters, log streams and artifact paths keep working. Later names
    are cut to 63 characters; a short hash of the whole name then keeps two long names apart.
    """
    return job_name if number == 1 else _stamped(job_name, f"{STAMP}{number}")


def member_name(job_name: str, number: int, member: int) -> str:
    """Return the name of an attempt's n-th member: `<name>-qstamp-<attempt>-m<n>`, cut like an attempt's."""
    return _stamped(job_name, f"{STAMP}{number}-m{member}")


def _stamped(job_name: str, suffix: str) -> str:
    if len(job_name) + len(suffix) <= MAX_NAME:
        return job_name + suffix
    digest = hashlib.sha256(job_name.encode()).hexdigest()[:8]
    stem = job_name[: MAX_NAME - len(suffix) - len(digest) - 1].rstrip("-")
    return f"{stem}-{digest}{suffix}"
