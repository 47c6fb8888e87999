"""Warm pools: instances that SageMaker keeps for a while after a job, for one that asks for exactly the same.

They take units of a pool like a job does. It must not decide who gets them: that is `planner/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity import Units


@dataclass(frozen=True, slots=True)
class WarmPool:
    """One warm pool that is Available.

    Attributes:
        training_job_name: the SageMaker name of the attempt that left it.
        units: what it keeps, by pool name.
        fit: digest of all that SageMaker compares; a job with the same may use it (SageMaker developer guide, "Train
            using SageMaker managed warm pools").
        until: when it ends by itself.
    """

    training_job_name: str
    units: Units
    fit: str
    until: datetime
