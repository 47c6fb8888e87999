"""Units that the jobs of each share hold in one plan, and units that are promised to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job


@dataclass(slots=True)
class Holdings:
    """Units by share and pool.

    Attributes:
        version: a count of all changes; answers given at the same count still hold.
        changed_shares: shares with changes since the last look, and whether any of them released units.
    """

    version: int = 0
    changed_shares: dict[str, bool] = field(default_factory=dict)
    _held: dict[str, dict[str, int]] = field(default_factory=dict)
    _leaving: dict[str, dict[str, int]] = field(default_factory=dict)
    _promised: dict[str, dict[str, int]] = field(default_factory=dict)
    _granted: dict[str, Units] = field(default_factory=dict)
    _promised_jobs: set[str] = field(default_factory=set)
    _hold_owners: dict[str, dict[str, Job]] = field(default_factory=dict)

    @classmethod
    def of(cls, active: Iterable[Job], held_for: Iterable[tuple[Job, Units]]) -> Holdings:
        """Return what active jobs hold, and what an earlier pass freed for waiting jobs."""
        holdings = cls()
        for job in active:
            holdings._add(holdings._held, job, job.units)
            attempt = job.attempt
            if attempt is not None and (attempt.resizing or attempt.stop_asked_at or attempt.base_ended_at):
                holdings._add(holdings._leaving, job, job.freeing)
        for job, units in held_for:
            holdings.promise(job, units)
            holdings._hold_owners.setdefault(job.share, {})[job.name] = job
        holdings.changed_shares.clear()
        return holdings

    def held_by(self, share: str) -> Units:
        """Return all that a share's jobs hold, take or are promised."""
        return self._held.get(share, _NO_UNITS)

    def held(self, share: str, pool: str) -> int:
        """Return the same for one pool."""
        return self.held_by(share).get(pool, 0)

    def staying(self, share: str, pool: str) -> int:
        """Return the same without releasing units."""
        return self.held(share, pool) - self._leaving.get(share, _NO_UNITS).get(pool, 0)

    def running(self, share: str, pool: str) -> int:
        """Return what the share's jobs hold or start on, without promises."""
        return self.held(share, pool) - self._promised.get(share, _NO_UNITS).get(pool, 0)

    def exempt(self, job: Job, pool: str) -> int:
        """Return the share's units that do not count for this job: promised to it, or to jobs of lower priority.

        What an earlier pass freed for a job of lower priority gives way to this job (ADR 0005).
        """
        exempt = self._granted[job.name].get(pool, 0) if job.name in self._granted else 0
        for name, holder in self._hold_owners.get(job.share, _NO_JOBS).items():
            if holder.priority < job.priority and name != job.name:
                exempt += self._granted[name].get(pool, 0)
        return exempt

    def take(self, job: Job, units: Units) -> None:
        """Count the units on which a job starts; replaces what was counted for the job before."""
        self.release(job)
        self._granted[job.name] = units
        self._add(self._held, job, units)

    def promise(self, job: Job, units: Units) -> None:
        """Count units that are kept or being released for a job."""
        self.take(job, units)
        self._promised_jobs.add(job.name)
        self._add(self._promised, job, units)

    def release(self, job: Job) -> None:
        """Remove what is kept for a job."""
        if job.name not in self._granted:
            return
        units = self._granted.pop(job.name)
        self._add(self._held, job, units, sign=-1)
        if job.name in self._promised_jobs:
            self._promised_jobs.remove(job.name)
            self._add(self._promised, job, units, sign=-1)
        self._hold_owners.get(job.share, {}).pop(job.name, None)
        self.changed_shares[job.share] = True

    def release_later(self, job: Job, units: Units) -> None:
        """Count units of a job as releasing."""
        self._add(self._leaving, job, units)
        self.changed_shares[job.share] = True

    def grow(self, job: Job, units: Units) -> None:
        """Count further units of a job."""
        self._add(self._held, job, units)

    def _add(self, state: dict[str, dict[str, int]], job: Job, units: Units, *, sign: int = 1) -> None:
        self.version += 1
        self.changed_shares.setdefault(job.share, False)
        mine = state.setdefault(job.share, {})
        for pool, count in units.items():
            mine[pool] = mine.get(pool, 0) + sign * count


_NO_UNITS: Units = {}
_NO_JOBS: Mapping[str, Job] = {}
