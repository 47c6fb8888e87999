"""A trace's jobs, some of them elastic, and how much faster they are on more GPUs.

A job's work is what it did in the trace: its duration on the GPUs that it had there, its nominal size. On another size
it goes on as the curve says. It must not know who allocates.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from trainmaster.local.replay.trace.trace import TraceJob

SERIAL = 0.05
"""The part of a step that more GPUs do not make shorter (Amdahl 1967); 16 GPUs are then 9.1 times as fast as one."""
PART = Fraction(1, 2)
"""How many of the jobs with several GPUs are elastic."""
MAX_OF_NOMINAL = 2
Speed = Callable[[float], float]
"""How many times as fast as on one GPU; below one GPU, in proportion."""


def linear(gpus: float) -> float:
    """Twice the GPUs, half the time."""
    return gpus


def amdahl(gpus: float) -> float:
    """What is serial takes as long on any number of GPUs."""
    return gpus if gpus < 1 else 1 / (SERIAL + (1 - SERIAL) / gpus)


CURVES: dict[str, Speed] = {"linear": linear, "amdahl": amdahl}


@dataclass(frozen=True)
class SizedJob:
    """A job and the sizes that it may have.

    Attributes:
        trace: as in the trace, with its nominal size.
        sizes: legal numbers of GPUs, ascending; one for a job that is not elastic.
        speed: its curve.
    """

    trace: TraceJob
    sizes: tuple[int, ...]
    speed: Speed = linear
    _paces: dict[int, float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def elastic(self) -> bool:
        """Whether it may have several sizes."""
        return len(self.sizes) > 1

    def pace(self, size: int) -> float:
        """Seconds of nominal work that it does in a second on so many GPUs."""
        known = self._paces.get(size)
        if known is None:
            known = self._paces[size] = self.speed(size) / self.speed(self.trace.gpus)
        return known

    def at_most(self, size: int) -> int:
        """The largest legal size of at most this; 0 for none."""
        return max((legal for legal in self.sizes if legal <= size), default=0)


def workload(jobs: Sequence[TraceJob], cap: int, speed: Speed, seed: int = 0) -> list[SizedJob]:
    """The jobs, half of those with several GPUs elastic: 1 to twice their nominal size, at most the pool.

    Which half depends on the seed alone, so that all policies, curves and costs see the same jobs.
    """
    several = [index for index, job in enumerate(jobs) if job.gpus > 1]
    chosen = set(random.Random(seed).sample(several, int(len(several) * PART)))
    return [
        SizedJob(
            job, tuple(range(1, min(MAX_OF_NOMINAL * job.gpus, cap) + 1)) if index in chosen else (job.gpus,), speed
        )
        for index, job in enumerate(jobs)
    ]
