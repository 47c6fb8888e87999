"""Classes of jobs with similar run times, from the narrowest to the widest (`Job.run_time_classes`)."""

from __future__ import annotations

import hashlib
from functools import lru_cache

ALL = "*"
"""The widest class of training jobs."""


@lru_cache(maxsize=4096)
def classes_of(share: str, image: str, types: str, count: int) -> tuple[str, ...]:
    """Return the classes of a training job, narrowest first.

    Args:
        share: its share.
        image: its image.
        types: its instance types as text (`Demand.types`).
        count: its instances.
    """
    return (f"{share}|{_short(image)}|{types}|{count}", f"|{types}|{count.bit_length()}", ALL)


def _short(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8] if name else ""
