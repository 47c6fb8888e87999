"""Read what each share owns, uses, lends and borrows, its decayed usage, and its budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.capacity.units import Pool, Units, total
from trainmaster.domain.jobs.job import Job, held_for
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Budget, Policy, Share
from trainmaster.domain.shares.entitlement import Bound, Entitlement, Entitlements
from trainmaster.domain.shares.lending import Claim, lent_units
from trainmaster.domain.shares.usage import Spent, accelerators_of, faded_seconds, period_end, period_start
from trainmaster.planner.sharing.limits import used_in_period
from trainmaster.service.change import ApiContext


@dataclass(frozen=True, slots=True)
class ShareOfPool:
    """A share's part of a pool.

    Attributes:
        nominal: its own units as the settings have them, or what no other share owns.
        claim: what it owns and holds.
        lent: its own units that others use.
        bound: the tightest limit on its units; None if only the pool limits it.
        max_per_user: None for no limit.
    """

    pool: str
    nominal: int
    claim: Claim
    lent: int
    bound: Bound | None
    max_per_user: int | None

    @property
    def borrow_limit(self) -> int | None:
        """The units that it may use beyond its own; None for no limit."""
        return None if self.bound is None else max(self.bound.limit - self.claim.own, 0)


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The budget of a share, and its use in the present period.

    Attributes:
        until: when the period ends and the budget renews.
    """

    budget: Budget
    used: Spent
    since: datetime
    until: datetime

    @property
    def is_spent(self) -> bool:
        """True if a limit is reached."""
        return budget_left(self.budget.gpu_hours, self.used.gpu_seconds / 3600) == 0 or (
            budget_left(self.budget.dollars, self.used.dollars) == 0
        )


def budget_left(limit: float | None, used: float) -> float | None:
    """Return what is left of a limit; None without one."""
    return None if limit is None else max(limit - used, 0.0)


@dataclass(frozen=True, slots=True)
class ShareUse:
    """A share and its use of the queue.

    Attributes:
        configured: whether the settings name it.
        running: the number of its jobs that hold units.
        waiting: the number of its jobs that wait, as far as the queue was read.
        faded: GPU-seconds with those of active attempts, decayed with the half-life.
        pools: the pools in which it owns, holds or lends units, or has a limit, by name.
    """

    share: Share
    configured: bool
    running: int
    waiting: int
    faded: float
    budget: BudgetUse | None
    pools: tuple[ShareOfPool, ...]


@dataclass(frozen=True, slots=True)
class SharedPool:
    """A pool as the shares divide it.

    Attributes:
        pool: None if it does not exist now.
        unowned: usable units that no share owns.
    """

    name: str
    pool: Pool | None
    used: int
    held: int
    external: int
    unowned: int


@dataclass(frozen=True, slots=True)
class SharesReport:
    """All shares at one time.

    Attributes:
        more: whether further jobs wait that were not read.
    """

    at: datetime
    policy: Policy
    more: bool
    shares: tuple[ShareUse, ...]
    pools: tuple[SharedPool, ...]


def read_shares(context: ApiContext, caller: Caller) -> SharesReport:
    """Return the shares of the settings, and others that have jobs or usage; reads one snapshot.

    Raises `AccessDenied`.
    """
    context.require(caller, Action.READ)
    return shares_report(context.store.read_snapshot(), context.clock.now())


def shares_report(snapshot: Snapshot, now: datetime) -> SharesReport:
    """Return the shares in a snapshot."""
    division = _Division.of(snapshot, now)
    return SharesReport(
        at=now,
        policy=snapshot.policy,
        more=bool(snapshot.cut_lanes),
        shares=tuple(division.shares()),
        pools=tuple(division.pools()),
    )


@dataclass(frozen=True, slots=True)
class _Division:
    """The units of all pools by share.

    Attributes:
        jobs: the active jobs of each share.
        claims: by pool and share; only shares that own or hold units of a pool, or have a limit there.
        unowned: by pool.
        lent: by pool and share.
    """

    snapshot: Snapshot
    now: datetime
    entitlements: Entitlements
    jobs: Mapping[str, Sequence[Job]]
    claims: Mapping[str, Mapping[str, Claim]]
    unowned: Units
    lent: Mapping[str, Units]

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> _Division:
        """Return the division of a snapshot's pools."""
        entitlements = Entitlements(snapshot.policy, snapshot.pools, snapshot.external)
        jobs = {name: [job for job in snapshot.active if job.share == name] for name in _names(snapshot)}
        held = _held(snapshot, now)
        claims: dict[str, dict[str, Claim]] = {pool: {} for pool in snapshot.pools}
        for name, active in jobs.items():
            for pool, claim in _claims(entitlements.of(name), total(job.units for job in active), held.get(name, {})):
                claims.setdefault(pool, {})[name] = claim
        unowned = {pool: _unowned(snapshot, pool, found.values()) for pool, found in claims.items()}
        lent = {pool: lent_units(found, unowned[pool]) for pool, found in claims.items()}
        return cls(snapshot, now, entitlements, jobs, claims, unowned, lent)

    def shares(self) -> Iterator[ShareUse]:
        """Yield the use of each share, in the order of their names."""
        waiting = Counter(job.share for job in self.snapshot.waiting)
        for name, active in self.jobs.items():
            share = self.entitlements.of(name).share
            yield ShareUse(
                share=share,
                configured=name in self.snapshot.policy.shares,
                running=len(active),
                waiting=waiting[name],
                faded=self._faded(name),
                budget=None if share.budget is None else self._budget(name, share.budget),
                pools=tuple(self._of_pool(name, pool) for pool in sorted(self.claims) if name in self.claims[pool]),
            )

    def pools(self) -> Iterator[SharedPool]:
        """Yield the pools in the order of their names."""
        for name, claims in sorted(self.claims.items()):
            yield SharedPool(
                name=name,
                pool=self.snapshot.pools.get(name),
                used=sum(claim.used for claim in claims.values()),
                held=sum(claim.held for claim in claims.values()),
                external=self.snapshot.external.get(name, 0),
                unowned=self.unowned[name],
            )

    def _of_pool(self, share: str, pool: str) -> ShareOfPool:
        entitlement = self.entitlements.of(share)
        return ShareOfPool(
            pool=pool,
            nominal=entitlement.nominal.get(pool, 0),
            claim=self.claims[pool][share],
            lent=self.lent[pool][share],
            bound=entitlement.bound(pool),
            max_per_user=entitlement.share.max_per_user.get(pool),
        )

    def _faded(self, share: str) -> float:
        half_life, pools = self.snapshot.policy.usage_half_life, self.snapshot.pools
        # Units that an active job held before its last resize are charged already.
        return self.snapshot.records.usage.faded(share, self.now, half_life) + sum(
            accelerators_of(job.units, pools) * faded_seconds(job.attempt.held_since, self.now, half_life)
            for job in self.jobs[share]
            if job.attempt is not None
        )

    def _budget(self, share: str, budget: Budget) -> BudgetUse:
        used = used_in_period(self.snapshot, share, budget, self.now)
        return BudgetUse(budget, used, period_start(budget, self.now), period_end(budget, self.now))


def _names(snapshot: Snapshot) -> list[str]:
    jobs = {job.share for part in (snapshot.active, snapshot.waiting) for job in part}
    return sorted({DEFAULT_SHARE, *snapshot.policy.shares, *snapshot.records.usage.accounts, *jobs})


def _held(snapshot: Snapshot, now: datetime) -> Mapping[str, Units]:
    """Return the units freed for waiting jobs, by share."""
    found: dict[str, dict[str, int]] = {}
    for job in snapshot.waiting:
        if units := held_for(job, now):
            found[job.share] = total((found.get(job.share, {}), units))
    return found


def _claims(entitlement: Entitlement, used: Units, held: Units) -> Iterator[tuple[str, Claim]]:
    share = entitlement.share
    for pool in {*entitlement.nominal, *share.max, *share.borrows, *share.max_per_user, *used, *held}:
        own, kept = entitlement.own(pool), entitlement.kept(pool)
        yield pool, Claim(own=own, kept=kept, used=used.get(pool, 0), held=held.get(pool, 0))


def _unowned(snapshot: Snapshot, pool: str, claims: Iterable[Claim]) -> int:
    cap = snapshot.pools[pool].cap if pool in snapshot.pools else 0
    return max(cap - snapshot.external.get(pool, 0) - sum(claim.own for claim in claims), 0)
