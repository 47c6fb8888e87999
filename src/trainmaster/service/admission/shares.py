"""Check that the caller may use a share, what it may have, and that its budget is not spent."""

from __future__ import annotations

from collections.abc import Mapping

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.capacity.units import Pool, Units, counted, covers
from trainmaster.domain.errors import BudgetExhausted, InvalidRequest, ShareNotAllowed
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Policy, WhenSpent
from trainmaster.domain.reasons.rules import BudgetSpent, ShareFull, UserFull
from trainmaster.domain.requests.fields import did_you_mean, shown
from trainmaster.domain.requests.tags import option_field
from trainmaster.domain.shares.entitlement import Entitlements
from trainmaster.domain.shares.full_users import pool_beyond_limit
from trainmaster.domain.times import clock
from trainmaster.planner.sharing.limits import Limits, user_of
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Request, Store
from trainmaster.service.access import Access


def check_share(  # noqa: PLR0913 - the request and everything it is checked against
    access: Access, caller: Caller, request: Request, share: str, policy: Policy, *, field: str | None = None
) -> None:
    """Raise `InvalidRequest` if the share does not exist, `ShareNotAllowed` if the caller may not use it.

    Any share is accepted while none is configured. `field` is the request's field with the share; None for its tag.
    """
    found = policy.shares.get(share)
    if found is None:
        if policy.shares and share != DEFAULT_SHARE:
            raise _unknown(field or option_field(request, "share"), share, policy)
    elif not access.may(caller, Action.SUBMIT, lambda: policy, share=share):
        raise ShareNotAllowed(
            f"{caller.arn or 'An unknown caller'} may not use the share {share}.",
            field=field or option_field(request, "share"),
            hint=f"Use another share, or ask the queue's admins to add your role to shares.{share}.submitters.",
        )


def share_warnings(job: Job, policy: Policy, pools: Mapping[str, Pool]) -> tuple[str, ...]:
    """Return a warning for a share that is named where none is configured, or of which the job exceeds a limit."""
    if policy.shares:
        return _limit_warnings(job, policy, pools)
    if job.share == DEFAULT_SHARE:
        return ()
    what = f"The queue has no shares, so the share {shown(job.share)} has no quota"
    return (f"{what}: check the name, omit the option, or ask the queue's admins to add the share to the settings.",)


def _limit_warnings(job: Job, policy: Policy, pools: Mapping[str, Pool]) -> tuple[str, ...]:
    """Return a warning if the job alone needs more than a limit of its share, wherever a pool could hold it."""
    caps = {name: pool.cap for name, pool in pools.items()}
    possible = [units for units in job.demand.alternatives if covers(caps, units)] or job.demand.alternatives
    limits = [limit for units in possible if (limit := _exceeded(job, units, policy, pools)) is not None]
    if not limits or len(limits) < len(possible):
        return ()
    message, needed = limits[0].message(), counted(possible[0][limits[0].pool], limits[0].pool)
    return (f"{message[0].upper()}{message[1:]}: this job alone needs {needed}, so it waits until that is raised.",)


def _exceeded(job: Job, units: Units, policy: Policy, pools: Mapping[str, Pool]) -> ShareFull | UserFull | None:
    """Return the limit of the job's share that it exceeds on these units even if the share holds nothing."""
    entitlements, share = Entitlements(policy, pools), policy.shares.get(job.share)
    for pool, count in units.items():
        if (bound := entitlements.exceeded(job.share, pool, count, 0)) is not None:
            return ShareFull(job.share, pool, bound.limit, bound.name)
    full = None if share is None else pool_beyond_limit(share, units, lambda _: 0)
    return None if share is None or full is None else UserFull(user_of(job), full, share.max_per_user[full])


def check_budget(  # noqa: PLR0913 - the request and everything it is checked against
    store: Store, clock_: Clock, job: Job, request: Request, policy: Policy, *, field: str | None = None
) -> Snapshot | None:
    """Raise `BudgetExhausted` if the job's share refuses jobs until its budget renews.

    A job that is already stored passes: its caller did not receive the first answer and submits it again.

    Returns:
        The snapshot that the check read; None if it needed none.
    """
    share = policy.shares.get(job.share)
    if share is None or share.budget is None or share.budget.when_spent is not WhenSpent.REFUSE:
        return None
    stored = store.find(job.name)
    if stored is not None and stored.digest == job.digest:
        return None
    snapshot = store.read_snapshot()
    reason = Limits(snapshot, clock_.now()).refusal(job, {})
    if isinstance(reason, BudgetSpent):
        raise BudgetExhausted(
            f"The share {job.share} has spent {reason.spent:,.1f} of its {reason.budget:,.1f} {reason.unit}.",
            field=field or option_field(request, "share"),
            hint=f"It accepts jobs again from {clock(reason.until)}, when its next period begins.",
        )
    return snapshot


def _unknown(field: str, share: str, policy: Policy) -> InvalidRequest:
    meant = did_you_mean(share, policy.shares)
    guess = f"Did you mean '{meant}'? " if meant else ""
    known = ", ".join(sorted({DEFAULT_SHARE, *policy.shares}))
    return InvalidRequest(
        f"There is no share {share}.",
        field=field,
        hint=f"{guess}The shares are: {known}.",
    )
