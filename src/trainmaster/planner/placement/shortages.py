"""Which pools have lately turned out to lack instances: AWS has none, or grants none, though the caps leave room.

What one job has met counts for others, too, that ask for no less of the same: else each would find out for itself, and
wait in between. It must not choose among pools, nor know what the caps leave free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Kind, Pool, Units, source
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import FailureClass, default_retries

OWN_MEMORY = timedelta(days=1)
"""How long a job remembers where its tries met nothing: longer than it takes to try all of its pools in turn."""
_RefusedCounts = dict[int, datetime]
"""When so many instances were last not to be had."""


@dataclass(slots=True)
class CapacityShortages:
    """What the jobs of one snapshot have met. Thrown away with the plan.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime
    _refused: dict[str, _RefusedCounts] | None = None
    _sources: dict[str, str] = field(default_factory=dict)

    def without_shortage(self, job: Job, alternatives: Sequence[Units]) -> Sequence[Units]:
        """Those that have not lately been lacking, in their order; where all have, those of which it is longest ago.

        What is held for the job is among them: somebody has just left it.
        """
        own_refusals, others_refusals = self._own_refusals(job), self._others_refusals()
        if not own_refusals and not others_refusals:
            return alternatives
        times = [self._since(units, own_refusals, others_refusals) for units in alternatives]
        known = [at for at in times if at is not None]
        first = min(known) if len(known) == len(times) else None
        held = None if job.hold is None else job.hold.units
        return [units for units, at in zip(alternatives, times, strict=True) if at == first or units == held]

    def since(self, job: Job, units: Units) -> datetime | None:
        """When such units last turned out not to be there for this job; None where they did not lately."""
        return self._since(units, self._own_refusals(job), self._others_refusals())

    def _since(
        self, units: Units, own_refusals: Mapping[str, datetime], others_refusals: Mapping[str, _RefusedCounts]
    ) -> datetime | None:
        """When such units last turned out not to be there; None where nobody was lately refused as much of them."""
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
        """Where the job's last tries have met nothing, up to the last that met something else."""
        found: dict[str, datetime] = {}
        for attempt in reversed(job.attempts):
            if not attempt.lacked:
                break
            # Several pools of one attempt may have the same instances.
            newest: dict[str, datetime] = {}
            for pool, at in attempt.lacking.items():
                if at > self.now - OWN_MEMORY:
                    source_name = self._source(pool)
                    newest[source_name] = max(newest.get(source_name, at), at)
            found = newest | found
        return found

    def _others_refusals(self) -> dict[str, _RefusedCounts]:
        """By where they come from; no older than the longest that a job waits for its next try."""
        if self._refused is None:
            retries = {**default_retries(), **self.snapshot.policy.retries}
            after = self.now - retries[FailureClass.CAPACITY].max_delay
            self._refused = {}
            for job in (*self.snapshot.active, *self.snapshot.waiting):
                # Nearly no job of a deep queue has been tried.
                if job.attempt is not None:
                    self._record(job, after, self._refused)
        return self._refused

    def _record(self, job: Job, after: datetime, refused_counts: dict[str, _RefusedCounts]) -> None:
        for attempt in reversed(job.attempts):
            for pool, at in attempt.lacking.items():
                count = attempt.units.get(pool, 0) if attempt.turned_down.get(pool) != at else _max_requested(job, pool)
                if at > after and count:
                    of_stock = refused_counts.setdefault(self._source(pool), {})
                    of_stock[count] = max(of_stock.get(count, at), at)
            if attempt.created_at <= after:
                return

    def _source(self, pool: str) -> str:
        """Where AWS takes a pool's instances from: the same for several pools of one type and kind."""
        if pool not in self._sources:
            known = self.snapshot.pools.get(pool)
            self._sources[pool] = pool if known is None else _source_of(known)
        return self._sources[pool]


def _max_requested(job: Job, pool: str) -> int:
    """The most that a start of the job may have asked of the pool; 0 where its demand no longer tells.

    A start that left its number to a later one has left no count.
    """
    if job.image_work is not None:
        return 0
    if job.elastic is not None:
        return job.elastic.most
    return max((units[pool] for units in job.demand.alternatives if pool in units), default=job.demand.instances)


def _source_of(pool: Pool) -> str:
    """That of an endpoint has no instances."""
    if pool.kind is Kind.ENDPOINT:
        return pool.name
    return source(pool.instance_type, spot=pool.kind is Kind.SPOT, plan_arn=pool.plan_arn)
