"""Invariants of what shares lend and borrow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from share_cases import snapshots
from trainmaster.domain.shares.lending import Claim, lent_units
from trainmaster.planner.sharing.shares import Shares
from trainmaster.service.explain.shares import shares_report

UNITS = st.integers(0, 20)
CLAIMS = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(Claim, own=UNITS, kept=st.integers(0, 8), used=UNITS, held=st.integers(0, 4))
)


@given(CLAIMS, UNITS)
def test_only_idle_own_units_are_lent_and_no_more_than_are_borrowed(claims, unowned):
    lent = lent_units(claims, unowned)
    borrowed = sum(claim.borrowed for claim in claims.values())
    lendable = sum(claim.lendable for claim in claims.values())
    for name, claim in claims.items():
        assert min(claim.used, claim.own) + claim.borrowed == claim.used
        assert 0 <= lent[name] <= max(claim.own - claim.used - claim.held, 0)
        assert lent[name] <= max(claim.own - claim.kept, 0)
    assert sum(lent.values()) == min(max(borrowed - unowned, 0), lendable)


@given(CLAIMS, UNITS)
def test_lenders_lend_in_proportion_to_what_is_idle(claims, unowned):
    lent = lent_units(claims, unowned)
    lendable = sum(claim.lendable for claim in claims.values())
    for name, claim in claims.items():
        exact = sum(lent.values()) * claim.lendable / lendable if lendable else 0
        assert abs(lent[name] - exact) < 1


@given(snapshots())
def test_shares_hold_what_the_planner_counts(snapshot):
    report, planner = shares_report(snapshot, NOW), Shares(snapshot, NOW)
    for pool in report.pools:
        parts = [(use.share.name, part) for use in report.shares for part in use.pools if part.pool == pool.name]
        assert pool.used == sum(job.units.get(pool.name, 0) for job in snapshot.active)
        assert pool.used == sum(part.claim.used for _, part in parts)
        for name, part in parts:
            assert part.claim.used == planner.holdings.running(name, pool.name)
            assert part.claim.used + part.claim.held == planner.holdings.held(name, pool.name)
            assert part.bound == planner.entitlements.of(name).bound(pool.name)
