"""Classes of jobs with similar run times, from the narrowest to the widest (`Job.run_time_classes`)."""

from __future__ import annotations

import hashlib
from functools import lru_cache

ALL = "*"
"""The widest class of training jobs."""


@lru_cache(maxsize=4096)
def classes_of(share: str, image: str, types: str, count: int, most: int | None = None) -> tuple[str, ...]:
    """Return the classes of a training job, narrowest first.

    Args:
        share: its share.
        image: its image.
        types: its instance types as text (`Demand.types`).
        count: its instances; of an elastic job, the fewest.
        most: the most instances of an elastic job. It has more work than a job that always has its fewest.
    """
    sizes, width = f"{count}", f"{count.bit_length()}"
    if most is not None:
        sizes, width = f"{sizes}-{most}", f"{width}-{most.bit_length()}"
    return (f"{share}|{_short(image)}|{types}|{sizes}", f"|{types}|{width}", ALL)


def _short(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8] if name else ""
