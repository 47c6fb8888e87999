"""The intervals in which jobs hold units in a simulation of the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.forecast.simulation import QueueSimulation


@dataclass(frozen=True, slots=True)
class HeldUnits:
    """Units that a job holds for a while.

    Attributes:
        job: as it is when it begins to hold them.
        units: by pool.
        since: when it begins to hold them; the beginning of the simulation for jobs that held them before.
        until: when it releases them, or holds other units.
    """

    job: Job
    units: Units
    since: datetime
    until: datetime


@dataclass(slots=True)
class Trace:
    """Records what jobs hold as a simulation goes on.

    Events that the simulation rounds together count as it counts them: a job that starts on units that others release
    later in the same step begins at the step's time, and the others end then. So no pool is ever held twice.
    """

    _open: dict[str, tuple[Job, datetime]] = field(default_factory=dict)
    _closed: dict[str, list[HeldUnits]] = field(default_factory=dict)
    _ends: Mapping[str, datetime] = field(default_factory=dict)

    def note(self, simulation: QueueSimulation) -> None:
        """Record which jobs hold what now; call it before and after each change of the simulation."""
        active = {job.name: job for job in simulation.snapshot.active}
        for name, (job, _) in list(self._open.items()):
            now = active.get(name)
            if now is None or now.units != job.units:
                self._close(name, simulation.since)
        for name, job in active.items():
            if name not in self._open:
                self._open[name] = (job, simulation.since)
        self._ends = dict(simulation.ends)

    def add(self, held: HeldUnits) -> None:
        """Add an interval that another simulation has found."""
        self._closed.setdefault(held.job.name, []).append(held)

    def finish(self) -> dict[str, list[HeldUnits]]:
        """Return the intervals of each job in the order of time; those still open end when expected."""
        for name in list(self._open):
            self._close(name, self._ends[name])
        return self._closed

    def _close(self, name: str, at: datetime) -> None:
        job, since = self._open.pop(name)
        until = max(min(self._ends[name], at), since)
        if job.units:
            self.add(HeldUnits(job, job.units, since, until))
