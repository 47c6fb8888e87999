"""Which alternatives of its demand a job starts on. It must not preempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmaster.domain.capacity import Pool, Units, worst_case
from trainmaster.domain.job import Job


@dataclass(frozen=True, slots=True)
class Placement:
    """The units to charge, and the instance types that SageMaker may choose from, in their order (empty: no choice)."""

    units: Units
    choices: tuple[str, ...] = ()


def place(job: Job, fitting: Sequence[Units], pools: Mapping[str, Pool] | None = None) -> Placement:
    """What a job starts on, of the alternatives that fit at once, which come in the order of its demand.

    Where the queue chooses, that is the first. Where SageMaker does, it gets all of them, and takes the first with EC2
    capacity: until it has chosen, the caps carry all that it may choose (`worst_case`).

    Args:
        job: a waiting job.
        fitting: at least one of its alternatives.
        pools: the pools in force, which tell the types of those that are not named after theirs.
    """
    if job.demand.ours or len(job.demand.alternatives) == 1:
        return Placement(dict(fitting[0]))
    types = {name: pool.instance_type for name, pool in (pools or {}).items()}
    choices = tuple(types.get(name, name) for units in fitting for name in units)
    return Placement(worst_case(fitting), choices)
