"""Jobs of a trace, some of them elastic, and their speed on more GPUs.

The work of a job is its duration in the trace on the GPUs that it had there, its nominal size. On another size it works
at the speed of its curve.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from trainmaster.local.replay.trace.trace import TraceJob

SERIAL = 0.05
"""Serial part of a step (Amdahl 1967); 16 GPUs are then 9.1 times as fast as one."""
PART = Fraction(1, 2)
"""Part of the jobs with several GPUs that is elastic."""
MAX_OF_NOMINAL = 2
Speed = Callable[[float], float]
"""Speed relative to one GPU; below one GPU, in proportion."""


def linear(gpus: float) -> float:
    """Return twice the speed for twice the GPUs."""
    return gpus


def amdahl(gpus: float) -> float:
    """Return the speed with a serial part that more GPUs do not shorten."""
    return gpus if gpus < 1 else 1 / (SERIAL + (1 - SERIAL) / gpus)


CURVES: dict[str, Speed] = {"linear": linear, "amdahl": amdahl}


@dataclass(frozen=True)
class SizedJob:
    """A job and its sizes.

    Attributes:
        trace: the job in the trace, with its nominal size.
        sizes: valid numbers of GPUs, ascending; one if the job is not elastic.
        speed: its curve.
    """

    trace: TraceJob
    sizes: tuple[int, ...]
    speed: Speed = linear
    _paces: dict[int, float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def elastic(self) -> bool:
        """True if it has several sizes."""
        return len(self.sizes) > 1

    def pace(self, size: int) -> float:
        """Return the seconds of nominal work done in a second on this many GPUs."""
        known = self._paces.get(size)
        if known is None:
            known = self._paces[size] = self.speed(size) / self.speed(self.trace.gpus)
        return known

    def at_most(self, size: int) -> int:
        """Return the largest valid size up to this; 0 if none."""
        return max((legal for legal in self.sizes if legal <= size), default=0)


def workload(jobs: Sequence[TraceJob], cap: int, speed: Speed, seed: int = 0) -> list[SizedJob]:
    """Return the jobs; half of those with several GPUs are elastic, from 1 to twice their nominal size.

    The seed alone selects that half, so that all policies, curves and costs have the same jobs.
    """
    several = [index for index, job in enumerate(jobs) if job.gpus > 1]
    chosen = set(random.Random(seed).sample(several, int(len(several) * PART)))
    return [
        SizedJob(
            job, tuple(range(1, min(MAX_OF_NOMINAL * job.gpus, cap) + 1)) if index in chosen else (job.gpus,), speed
        )
        for index, job in enumerate(jobs)
    ]
