"""Limits on how many jobs of a lane a pass reads: as many as could start, whatever the depth of the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.refusals import NO_REFUSALS, Refusal, RefusedKinds
from trainmaster.domain.capacity.reported_quotas import quota_bounds, with_quotas
from trainmaster.domain.capacity.resolve import Offers, resolved
from trainmaster.domain.capacity.units import Demand, Pool, Units, covers, is_service_pool, total
from trainmaster.domain.jobs.job import Job, awaits_capacity, backing_off
from trainmaster.domain.jobs.lane import lane_parts
from trainmaster.domain.jobs.work import Work
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.shares.entitlement import Entitlements
from trainmaster.domain.shares.full_users import FullUsers

FIRST = 32
"""Waiting jobs that are read of every lane, except those of services and of jobs that have run before."""
FIRST_OF_SERVED = 8
"""Those of a lane of jobs that have run before: there are many such lanes, by the service received."""
FIRST_OF_SERVICE = 16
"""Those of a service's lane. Each service has lanes of its own, and a pass may need to look at a hundred."""
FIRST_OF_FULL = 4
"""Those that a pass reads of such a lane while its service has no room, so that none of them can start."""
FIRST_OF_DUE = 250
"""Those of a lane of jobs that are due by tomorrow (UTC), of which the most urgent goes first, wherever it is."""
MAX_JOBS_READ = 1_000
"""Maximum number read of any lane, besides those that take the places of jobs of full users."""
SPARE = 8
"""Read beyond those that could start, since heads may be backing off or too large for the free units."""
EQUALS_YIELD = frozenset(order for order in Order if order.preempts_equals)
"""Orders that let jobs of equal priority displace each other."""


def first_of(lane: str, *, sparing: bool = False) -> int:
    """Return how many jobs of a lane are read in any case, given its name.

    Args:
        lane: its name.
        sparing: whether the caller wants only the few of a full service's lane that a pass needs.
    """
    parts = lane_parts(lane)
    if parts is not None and is_service_pool(parts.pools):
        return FIRST_OF_FULL if sparing else FIRST_OF_SERVICE
    return FIRST_OF_SERVED if parts is not None and parts.served else FIRST


def first_guess(
    pools: Mapping[str, Pool], active: Iterable[Job], external: Units, order: Order
) -> Callable[[str], int]:
    """Return a function that guesses, from a lane's name, how many of its jobs a pass will need.

    The guess avoids reading lanes twice; `ReadLimits` decides. For lanes of training jobs it is never more than that.

    Args:
        pools: the known pools.
        active: the jobs that hold units of them.
        external: units that others hold.
        order: the queue's order.
    """
    held: Counter[str] = Counter(external)
    standings: dict[str, set[tuple[str, int]]] = {}
    yielding: set[str] = set()
    for job in active:
        if job.stopping:
            continue
        held.update(job.units)
        if job.work is not None:
            standings.setdefault(job.work.pool, set()).add((job.share, job.priority))
            if job.preemptible and order in EQUALS_YIELD:
                yielding.add(job.work.pool)

    def first(lane: str) -> int:
        parts = lane_parts(lane)
        pool = pools.get(parts.pools) if parts else None
        if parts is None or pool is None:
            return first_of(lane)
        if not is_service_pool(pool.name):
            return max(first_of(lane), min(MAX_JOBS_READ, pool.cap - held[pool.name] + SPARE))
        # More may be needed if active jobs could be preempted, which depends on the lane's first job.
        mixed = len(standings.get(pool.name, ())) > 1 or pool.name in yielding
        full = pool.cap - held[pool.name] < min(1 << parts.size, pool.cap)
        return first_of(lane, sparing=full and not mixed)

    return first


@dataclass(slots=True)
class ReadLimits:
    """The numbers of jobs that are worth reading of the lanes of a snapshot, which is not made yet.

    Attributes:
        pools: the known pools.
        active: the jobs that hold units of them.
        external: units that others hold.
        catalogue: the known instance types.
        now: the present, UTC.
        policy: the settings in force.
        refused: the kinds of jobs that AWS refuses to start.
    """

    pools: Mapping[str, Pool]
    active: Sequence[Job]
    external: Units
    catalogue: Catalogue
    now: datetime
    policy: Policy = field(default_factory=Policy)
    refused: RefusedKinds = NO_REFUSALS
    _offers: Offers | None = None
    _held: dict[int, dict[str, int]] = field(default_factory=dict)
    _users: FullUsers | None = None
    _caps: dict[str, int] = field(default_factory=dict)
    _too_large: dict[tuple[str, str], bool] = field(default_factory=dict)
    _entitlements: Entitlements | None = None
    _held_by_share: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(  # noqa: PLR0913 -- what the snapshot will have
        cls,
        pools: Mapping[str, Pool],
        active: Sequence[Job],
        external: Units,
        catalogue: Catalogue,
        *,
        now: datetime,
        policy: Policy,
        refusals: Mapping[str, Refusal],
    ) -> ReadLimits:
        """Return the limits in pools of which the account's quotas may allow less than their caps."""
        bounded = with_quotas(pools, quota_bounds(pools, catalogue, now))
        return cls(bounded, active, external, catalogue, now, policy, RefusedKinds.of(refusals, active, now))

    def for_pass(self, head: Job, order: Order) -> int:
        """Return the same as `for_query`, but few jobs of a full service's lane."""
        if head.work is not None and _is_full(order, head, head.work, self.pools, self.active):
            return FIRST_OF_FULL
        return self.for_query(head)

    def for_query(self, head: Job) -> int:
        """Return how many jobs of a lane are worth reading, given its first one.

        Every job takes at least one unit, so no more can start than there are units that are free, about to become
        free, or held by jobs of lower priority, in the pools that the lane's jobs can run in.

        Units that jobs of equal priority might give up, by the queue's order or to a share that owns them, are not
        counted. The first jobs of such a lane are read and may preempt; the units being freed for them count in the
        next pass, which then reads further. Counting them would make every pass under `gittins` read all lanes as deep
        as the pools are large.
        """
        held = self._held_against(head.priority)
        within_reach = (
            max(0, self.pools[name].cap - self.external.get(name, 0) - held.get(name, 0))
            for name in self._resolved(head).pools
            if name in self.pools
        )
        # The jobs of a service's lane all ask for at least half as much as the largest of them.
        smallest = 1 if head.work is None else _smallest_demand(head.work)
        could_start = -(-sum(within_reach) // smallest)
        least = FIRST_OF_DUE if self._is_due_soon(head) else first_of(head.lane)
        return max(least, min(MAX_JOBS_READ, could_start + SPARE))

    def _is_due_soon(self, job: Job) -> bool:
        """Return whether a lane's jobs, which are due on the same day, are due by tomorrow."""
        return job.deadline is not None and (job.deadline.date() - self.now.date()).days <= 1

    def may_pass_over(self, first: Iterable[Job], wanted: int) -> bool:
        """Return whether `heads` would look beyond the first jobs of a lane; not beyond those of a full service's."""
        return wanted > FIRST_OF_FULL and any(map(self.keeps_waiting, first))

    def heads(
        self, jobs: Iterable[Job], wanted: int, pass_over: Callable[[Job], object] = lambda _: None
    ) -> tuple[list[Job], bool]:
        """Return the jobs to read of a lane with more than `wanted` of them, and whether it has more than these.

        These are the first `wanted`, and one from behind for each of them that keeps waiting. Others that keep waiting
        are passed over; `pass_over` is called with each.
        """
        found: list[Job] = []
        others, more = 0, False
        for place, job in enumerate(jobs):
            if others == wanted:
                return found, True
            waits = self.keeps_waiting(job)
            others += not waits
            if place < wanted or not waits:
                found.append(job)
            else:
                more = True
                pass_over(job)
            if others == wanted == place + 1:
                return found, True  # as nearly always, and without a look at the next one
        return found, more

    def free_units(self) -> dict[str, int]:
        """Return the free units of each pool that has any."""
        held = total([self.external, *(job.units for job in self.active)])
        free = ((pool, cap - held.get(pool, 0)) for pool, cap in self._cap_of_pools().items())
        return {pool: count for pool, count in free if count > 0}

    def could_use(self, head: Job, free: Units) -> bool:
        """Return whether these units would be enough for the smallest jobs of a lane, given its first one."""
        return any(covers(free, _least_units(units)) for units in self._resolved(head).alternatives)

    def keeps_waiting(self, job: Job) -> bool:
        """Return True if something that others of its lane need not share keeps the job from starting now.

        Its user is at the limit of the share, it backs off after a failure of its own, AWS refuses jobs of its kind, or
        it is larger than its pools or its share allow. A job that waits for AWS to have capacity holds its place, as
        others would find none either.
        """
        if backing_off(job, self.now) and not awaits_capacity(job, self.now):
            return True
        return self.refused.holds_back(job) is not None or self._is_too_large(job) or self._has_full_user(job)

    def _has_full_user(self, job: Job) -> bool:
        self._users = self._users or FullUsers.of(self.policy.shares, self.active)
        limited = job.share in self._users.shares
        return limited and self._users.keep_waiting(job, self._resolved(job).alternatives)

    def _is_too_large(self, job: Job) -> bool:
        """Return whether a job is more than its pools or its share allow now, but smaller ones of its lane are not."""
        key = (job.share, job.demand.equivalence_key)
        if key not in self._too_large:
            self._too_large[key] = self._only_smaller_fit(job.share, self._resolved(job).alternatives)
        return self._too_large[key]

    def _only_smaller_fit(self, share: str, alternatives: Sequence[Units]) -> bool:
        fits = partial(self._fits, share)
        return not any(map(fits, alternatives)) and any(map(fits, map(_least_units, alternatives)))

    def _fits(self, share: str, units: Units) -> bool:
        """Return whether the pools are large enough for these units, and the share may have them besides its others."""
        fits = covers(self._cap_of_pools(), units)
        return fits and (not self.policy.shares or self._share_may_have(share, units))

    def _cap_of_pools(self) -> dict[str, int]:
        """Return the cap of each pool, 0 for one that drains."""
        self._caps = self._caps or {name: 0 if pool.draining else pool.cap for name, pool in self.pools.items()}
        return self._caps

    def _share_may_have(self, share: str, units: Units) -> bool:
        if self._entitlements is None:
            self._entitlements = Entitlements(self.policy, self.pools, self.external)
            for job in self.active:
                self._held_by_share.update({(job.share, pool): count for pool, count in job.units.items()})
        held, exceeded = self._held_by_share, self._entitlements.exceeded
        return all(exceeded(share, pool, count, held[share, pool]) is None for pool, count in units.items())

    def _resolved(self, job: Job) -> Demand:
        self._offers = self._offers or Offers(self.pools, self.catalogue)
        return resolved(job.demand, self._offers)

    def _held_against(self, priority: int) -> dict[str, int]:
        """Return the units that jobs of a priority cannot get, by pool; added up once for each priority."""
        found = self._held.get(priority)
        if found is None:
            stay = (job for job in self.active if not (job.stopping or (job.priority < priority and job.preemptible)))
            found = self._held[priority] = total(job.units for job in stay)
        return found


def _is_full(order: Order, head: Job, work: Work, pools: Mapping[str, Pool], active: Iterable[Job]) -> bool:
    """Return whether no job of a service's lane can start, whichever jobs were stopped for it."""
    pool = pools.get(work.pool)
    if pool is None:
        return False
    stay = (job for job in active if not job.stopping and not _may_go(order, job, head))
    room = pool.cap - sum(job.units.get(pool.name, 0) for job in stay)
    return room < min(_smallest_demand(work), pool.cap)


def _may_go(order: Order, job: Job, head: Job) -> bool:
    """Return whether the job could be preempted for another by priority, share or order."""
    outranked = job.priority < head.priority or (job.priority == head.priority and order in EQUALS_YIELD)
    return job.preemptible and (outranked or job.share != head.share)


def _smallest_demand(work: Work) -> int:
    """Return the minimum that every job of its lane asks for."""
    return _least_of_lane(work.needed)


def _least_units(units: Units) -> Units:
    """Return the least that other jobs of the lane of one with these units may ask for."""
    return {pool: _least_of_lane(count) for pool, count in units.items()}


def _least_of_lane(count: int) -> int:
    """Return the least that another job of the lane may ask for, which holds sizes up to the next power of two."""
    return 1 << (count.bit_length() - 1)
