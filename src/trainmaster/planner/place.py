"""Which alternatives of its demand a job starts on. It must not preempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.domain.capacity import Units, worst_case
from trainmaster.domain.job import Job


@dataclass(frozen=True, slots=True)
class Placement:
    """The units to charge, and the instance types that SageMaker may choose from (empty: no choice)."""

    units: Units
    choices: tuple[str, ...] = ()


def place(job: Job, fitting: Sequence[Units]) -> Placement:
    """Start on every alternative that fits at once, and let SageMaker choose the first with EC2 capacity.

    Until it has chosen, the caps carry all that it may choose (`worst_case`). A job without preferences has one
    alternative and no choice.
    """
    if len(job.demand.alternatives) == 1:
        return Placement(dict(fitting[0]))
    choices = tuple(pool for units in fitting for pool in units)
    return Placement(worst_case(fitting), choices)
