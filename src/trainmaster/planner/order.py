"""Who is considered first: priority down, entry time up, name. It must not look at capacity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from trainmaster.domain.job import Job


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """The jobs in queue order (article, "get pending jobs"); the name makes the order total."""
    return sorted(jobs, key=lambda job: job.order)


def by_priority(ordered: Iterable[Job]) -> Iterator[tuple[int, list[Job]]]:
    """Runs of jobs of one priority, highest first."""
    for priority, group in groupby(ordered, key=lambda job: job.priority):
        yield priority, list(group)
