"""A job's view of the plan's state: reading it changes nothing, for that job or any other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from test_planner_properties import snapshots

from builders import NOW
from share_cases import snapshots as snapshots_with_shares
from trainmaster.planner.state import PlanState


def state_of(snapshot):
    """Return the state with the holds of waiting jobs, as a plan begins."""
    state = PlanState.of(snapshot, NOW)
    for job in snapshot.waiting:
        if (hold := state.active_hold(job)) is not None:
            state.restore_reservation(job, hold)
    return state


def answers(state, job):
    view = state.view_for(job)
    return [
        (
            view.fits_now(units),
            view.fits_soon(units),
            view.missing(units),
            view.refusal(units),
            view.refused_by_own_share_only(units),
            view.yields_to(units),
            view.victims(units, missing).victims if (missing := view.missing(units)) else (),
        )
        for units in job.demand.alternatives
    ]


@given(snapshots() | snapshots_with_shares(), st.randoms(use_true_random=False))
def test_queries_for_one_job_do_not_affect_another(snapshot, shuffler):
    alone = {job.name: answers(state_of(snapshot), job) for job in snapshot.waiting}
    state, order = state_of(snapshot), [*snapshot.waiting, *snapshot.waiting]
    shuffler.shuffle(order)
    for job in order:
        assert answers(state, job) == alone[job.name]


@given(snapshots() | snapshots_with_shares())
def test_a_job_sees_its_own_hold_as_if_that_were_not_kept(snapshot):
    for job in snapshot.waiting:
        state = state_of(snapshot)
        kept = answers(state, job)
        state.release(job)
        assert answers(state, job) == kept
