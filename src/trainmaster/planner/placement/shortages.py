"""Recent capacity shortages: pools for which AWS provided no instances although their caps left room.

A shortage that one job met counts for other jobs that ask for at least as many of the same instances; otherwise each
job would find out for itself and wait in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

from trainmaster.domain.capacity.units import Kind, Pool, Units, source
from trainmaster.domain.jobs.job import ACTIVE, Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import FailureClass, default_retries

OWN_MEMORY = timedelta(days=1)
"""The time for which a job avoids pools where its own attempts failed; trying all its pools in turn takes less."""
_RefusedCounts = dict[int, datetime]
"""The times of the last failed requests, by number of instances."""


@dataclass(slots=True)
class CapacityShortages:
    """Shortages that the jobs of one snapshot have met.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime
    _refused: dict[str, _RefusedCounts] | None = None
    _provided: dict[str, list[tuple[datetime, int]]] | None = None
    _sources: dict[str, str] = field(default_factory=dict)

    def without_shortage(self, job: Job, alternatives: Sequence[Units]) -> Sequence[Units]:
        """Return the alternatives without a recent shortage, in their order; if all had one, those where it is oldest.

        What is held for the job is among them, since a job has just left it.
        """
        own_refusals, others_refusals = self._own_refusals(job), self._others_refusals()
        if not own_refusals and not others_refusals:
            return alternatives
        times = [self._since(units, own_refusals, others_refusals) for units in alternatives]
        known = [at for at in times if at is not None]
        first = min(known) if len(known) == len(times) else None
        held = None if job.reservation is None else job.reservation.units
        return [units for units, at in zip(alternatives, times, strict=True) if at == first or units == held]

    def since(self, job: Job, units: Units) -> datetime | None:
        """Return when these units last were unavailable to this job; None if they were not recently."""
        return self._since(units, self._own_refusals(job), self._others_refusals())

    def elsewhere(self, job: Job, alternatives: Sequence[Units]) -> list[Units]:
        """Return the alternatives of a job in back-off whose pools AWS did not lack for it, or longer ago than that."""
        last, until = job.attempt, job.retry_at
        if last is None or last.ended_at is None or until is None:
            return []
        pause, refusals = until - last.ended_at, self._own_refusals(job)
        lacking = {source_name for source_name, at in refusals.items() if at + pause > self.now}
        others = (units for units in alternatives if units.keys() != last.units.keys())
        return [units for units in others if lacking.isdisjoint(map(self._source, units))]

    def lacking(self, job: Job, pool: str) -> float:
        """Return the units of a pool that AWS lacked for the job; infinite if it did not, or provided as many since."""
        source_name = self._source(pool)
        at, count = self._own_refusals(job).get(source_name), _max_requested(job, pool)
        if at is None or not count:
            return inf
        since = (size for began, size in self._provided_units().get(source_name, ()) if began > at)
        return inf if max(since, default=0) >= count else count

    def _provided_units(self) -> Mapping[str, list[tuple[datetime, int]]]:
        """Return by source how many units active jobs have got, and when."""
        if self._provided is None:
            self._provided = {}
            for job in self.snapshot.active:
                if job.attempt is not None and (began := job.attempt.started_at) is not None:
                    for pool, count in job.units.items():
                        self._provided.setdefault(self._source(pool), []).append((began, count))
        return self._provided

    def _since(
        self, units: Units, own_refusals: Mapping[str, datetime], others_refusals: Mapping[str, _RefusedCounts]
    ) -> datetime | None:
        """Return when these units last were unavailable; None if no job was recently refused that many or fewer."""
        wanted = [(self._source(pool), count) for pool, count in units.items()]
        found = [own_refusals[source_name] for source_name, _ in wanted if source_name in own_refusals]
        found += [
            at
            for source_name, count in wanted
            for refused, at in others_refusals.get(source_name, {}).items()
            if refused <= count
        ]
        return max(found, default=None)

    def _own_refusals(self, job: Job) -> dict[str, datetime]:
        """Return where the job's last attempts found no capacity, back to the last that ended for another reason."""
        found: dict[str, datetime] = {}
        for attempt in reversed(job.past if job.state in ACTIVE else job.attempts):
            if not attempt.found_no_capacity:
                break
            # Several pools of one attempt may have the same source.
            newest: dict[str, datetime] = {}
            for pool, at in attempt.shortages.items():
                if at > self.now - OWN_MEMORY:
                    source_name = self._source(pool)
                    newest[source_name] = max(newest.get(source_name, at), at)
            found = newest | found
        return found

    def _others_refusals(self) -> dict[str, _RefusedCounts]:
        """Return shortages of all jobs by source, no older than the longest wait for the next attempt."""
        if self._refused is None:
            retries = {**default_retries(), **self.snapshot.policy.retries}
            after = self.now - retries[FailureClass.CAPACITY].max_delay
            self._refused = {}
            for job in (*self.snapshot.active, *self.snapshot.waiting):
                # Nearly no job of a deep queue has an attempt.
                if job.attempt is not None:
                    self._record(job, after, self._refused)
        return self._refused

    def _record(self, job: Job, after: datetime, refused_counts: dict[str, _RefusedCounts]) -> None:
        for attempt in reversed(job.attempts):
            for pool, at in attempt.shortages.items():
                count = attempt.units.get(pool, 0) if attempt.turned_down.get(pool) != at else _max_requested(job, pool)
                if at > after and count:
                    of_stock = refused_counts.setdefault(self._source(pool), {})
                    of_stock[count] = max(of_stock.get(count, at), at)
            if attempt.created_at <= after:
                return

    def _source(self, pool: str) -> str:
        """Return where AWS takes a pool's instances from, which pools of one type and kind share."""
        if pool not in self._sources:
            known = self.snapshot.pools.get(pool)
            self._sources[pool] = pool if known is None else _source_of(known)
        return self._sources[pool]


def _max_requested(job: Job, pool: str) -> int:
    """Return the most that a start of the job may have asked of the pool; 0 if its demand no longer tells.

    A refused start whose number the next start reused left no count of its own.
    """
    if job.work is not None:
        return 0
    if job.elastic is not None:
        return job.elastic.max_instances
    return max((units[pool] for units in job.demand.alternatives if pool in units), default=job.demand.instances)


def _source_of(pool: Pool) -> str:
    """Return the source of a pool's instances; a service has none, so its pool stands for itself."""
    if pool.kind is Kind.SERVICE:
        return pool.name
    return source(pool.instance_type, spot=pool.kind is Kind.SPOT, plan_arn=pool.plan_arn)
