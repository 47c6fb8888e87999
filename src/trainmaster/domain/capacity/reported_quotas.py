"""Quotas below caps: what SageMaker reports with a refusal bounds the pools of that type until it lapses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.capacity.catalogue import Catalogue, ReportedQuota
from trainmaster.domain.capacity.units import Kind, Pool, source
from trainmaster.domain.errors import AccountLimitReached

_NAME = re.compile(r"(?P<type>ml\.[a-z0-9-]+\.[a-z0-9-]+) for (?P<spot>spot )?training job usage", re.IGNORECASE)
"""The quotas that count instances of one type; others count jobs, seconds or instances of all types."""


@dataclass(frozen=True, slots=True)
class QuotaBound:
    """A pool whose cap is above the account's quota.

    Attributes:
        cap: the cap as set.
        quota: the quota as SageMaker reported it.
    """

    cap: int
    quota: ReportedQuota


def reported_quota(error: AccountLimitReached, now: datetime) -> tuple[str, ReportedQuota] | None:
    """Return the source of instances and its quota that a refusal reports; None if its text has none."""
    named = _NAME.fullmatch(error.quota or "")
    if named is None or error.limit is None:
        return None
    return source(named["type"], spot=named["spot"] is not None), ReportedQuota(error.limit, now)


def quota_bounds(pools: Mapping[str, Pool], catalogue: Catalogue, now: datetime) -> dict[str, QuotaBound]:
    """Return the pools whose caps are above a reported quota that has not lapsed."""
    if not catalogue.reported:
        return {}
    found = ((name, pool, catalogue.reported.get(_source(pool))) for name, pool in pools.items())
    return {
        name: QuotaBound(pool.cap, quota)
        for name, pool, quota in found
        if quota is not None and quota.limit < pool.cap and now < quota.until
    }


def last_reported(pool: Pool, catalogue: Catalogue) -> ReportedQuota | None:
    """Return the quota of a pool that a refusal reported last, even if it has lapsed."""
    return catalogue.reported.get(_source(pool))


def with_quotas(pools: Mapping[str, Pool], bounds: Mapping[str, QuotaBound]) -> Mapping[str, Pool]:
    """Return the pools with the caps that the account's quotas leave them."""
    return {**pools, **{name: replace(pools[name], cap=bound.quota.limit) for name, bound in bounds.items()}}


def without_larger(reported: Mapping[str, ReportedQuota], quotas: Mapping[str, int]) -> dict[str, ReportedQuota]:
    """Return the reported quotas without those for which Service Quotas shows a larger one, by type."""
    return {name: quota for name, quota in reported.items() if quotas.get(name, 0) <= quota.limit}


def _source(pool: Pool) -> str:
    if pool.kind not in (Kind.ON_DEMAND, Kind.SPOT):
        return ""
    return source(pool.instance_type, spot=pool.kind is Kind.SPOT)
