"""Views of the shares."""

from __future__ import annotations

from trainmaster.handlers.models import shares as models
from trainmaster.service.explain.shares import (
    BudgetUse,
    SharedPool,
    ShareOfPool,
    SharesReport,
    ShareUse,
    budget_left,
)

_DIGITS = 4
"""Decimal places of hours and dollars."""


def shares_view(report: SharesReport) -> models.Shares:
    """Return the shares as the API shows them."""
    return models.Shares(
        at=report.at,
        order=report.policy.order,
        usage_half_life_seconds=report.policy.usage_half_life.total_seconds(),
        more=report.more,
        shares=[_share_view(share) for share in report.shares],
        pools=[_pool_view(pool) for pool in report.pools],
    )


def _share_view(use: ShareUse) -> models.ShareUse:
    return models.ShareUse(
        name=use.share.name,
        configured=use.configured,
        weight=use.share.weight,
        lending=use.share.lending,
        running=use.running,
        waiting=use.waiting,
        faded_gpu_hours=round(use.faded / 3600, _DIGITS),
        budget=None if use.budget is None else _budget_view(use.budget),
        pools=[_part_view(part) for part in use.pools],
    )


def _budget_view(use: BudgetUse) -> models.BudgetUse:
    budget, hours, dollars = use.budget, use.used.gpu_seconds / 3600, use.used.dollars
    return models.BudgetUse(
        gpu_hours=budget.gpu_hours,
        dollars=budget.dollars,
        gpu_hours_used=round(hours, _DIGITS),
        dollars_used=round(dollars, _DIGITS),
        gpu_hours_left=_rounded(budget_left(budget.gpu_hours, hours)),
        dollars_left=_rounded(budget_left(budget.dollars, dollars)),
        spent=use.is_spent,
        when_spent=budget.when_spent,
        period_start=use.since,
        period_end=use.until,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _part_view(part: ShareOfPool) -> models.ShareOfPool:
    claim, bound = part.claim, part.bound
    return models.ShareOfPool(
        pool=part.pool,
        nominal=part.nominal,
        own=claim.own,
        used=claim.used,
        held=claim.held,
        borrowed=claim.borrowed,
        lent=part.lent,
        lends=claim.own - claim.kept,
        borrows=part.borrow_limit,
        limit=None if bound is None else bound.limit,
        limited_by=None if bound is None else bound.name,
        max_per_user=part.max_per_user,
    )


def _pool_view(found: SharedPool) -> models.SharedPool:
    pool = found.pool
    return models.SharedPool(
        name=found.name,
        kind=None if pool is None else pool.kind,
        cap=None if pool is None else pool.cap,
        used=found.used,
        held=found.held,
        external=found.external,
        unowned=found.unowned,
    )
