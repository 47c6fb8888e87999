"""What the jobs of each share hold while a plan is made, and what is promised to them. It must not know any rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job


@dataclass(slots=True)
class Holdings:
    """Units by share and pool.

    Attributes:
        changes: counts every change; answers given at the same count hold still.
        moved: shares whose figures have changed since somebody last looked, and whether they have shrunk.
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
        """What active jobs hold, and what an earlier pass has freed for waiting ones."""
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
        """All that a share's jobs hold, and what they were given or promised."""
        return self._held.get(share, _NO_UNITS)

    def held(self, share: str, pool: str) -> int:
        """The same of one pool."""
        return self.held_by(share).get(pool, 0)

    def staying(self, share: str, pool: str) -> int:
        """The same without what jobs that are stopping or shrinking will give back."""
        return self.held(share, pool) - self._leaving.get(share, _NO_UNITS).get(pool, 0)

    def running(self, share: str, pool: str) -> int:
        """What its jobs hold now, and that on which one starts; without promises."""
        return self.held(share, pool) - self._promised.get(share, _NO_UNITS).get(pool, 0)

    def exempt(self, job: Job, pool: str) -> int:
        """What of the share's figures does not count for this job: what was promised to itself, or to lower ones.

        What an earlier pass has freed for a job of lower priority yields to it (ADR 0005).
        """
        exempt = self._granted[job.name].get(pool, 0) if job.name in self._granted else 0
        for name, holder in self._hold_owners.get(job.share, _NO_JOBS).items():
            if holder.priority < job.priority and name != job.name:
                exempt += self._granted[name].get(pool, 0)
        return exempt

    def take(self, job: Job, units: Units) -> None:
        """The job starts on these units. The last word about a job counts."""
        self.release(job)
        self._granted[job.name] = units
        self._add(self._held, job, units)

    def promise(self, job: Job, units: Units) -> None:
        """These units are kept for the job, or are being freed for it."""
        self.take(job, units)
        self._promised_jobs.add(job.name)
        self._add(self._promised, job, units)

    def release(self, job: Job) -> None:
        """Nothing is kept for the job any more."""
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
        """The job will give these units back."""
        self._add(self._leaving, job, units)
        self.changed_shares[job.share] = True

    def grow(self, job: Job, units: Units) -> None:
        """The job gets these units beside what it holds."""
        self._add(self._held, job, units)

    def _add(self, state: dict[str, dict[str, int]], job: Job, units: Units, *, sign: int = 1) -> None:
        self.version += 1
        self.changed_shares.setdefault(job.share, False)
        mine = state.setdefault(job.share, {})
        for pool, count in units.items():
            mine[pool] = mine.get(pool, 0) + sign * count


_NO_UNITS: Units = {}
_NO_JOBS: Mapping[str, Job] = {}
