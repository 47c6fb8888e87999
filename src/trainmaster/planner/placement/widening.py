"""Idle units of services go to running jobs that hold fewer than they could use, once every waiting job is decided.

A job that is larger than its service holds all that this takes when the job starts. If the service takes more later, as
after it has scaled out, the job gets the rest, unless a job waits for the same service.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.plan import Decision, Snapshot, Wait, Widen
from trainmaster.planner.elastic.scale_up import NOT_WAITING_FOR_UNITS, WAITING_FOR_OWN_SHARE
from trainmaster.planner.state import PlanState

WORTHWHILE = 8
"""A job gets at least one more unit for so many that it holds, or all that it can use: each time is a write."""


def widenings(snapshot: Snapshot, state: PlanState, decisions: Sequence[Decision]) -> Iterator[Widen]:
    """Yield the running jobs that get more units, the highest ranks first; commit those to the state."""
    able = [(job, lacks) for job in snapshot.active if job.work is not None and (lacks := _lacks(job)) > 0]
    if not able:
        return
    wanted = {pool for decision in decisions if _waits_for_units(decision) for pool in decision.job.demand.pools}
    able.sort(key=lambda each: each[0].name)
    able.sort(key=lambda each: state.ranking.rank(each[0]), reverse=True)
    for job, lacks in able:
        ((pool, held),) = job.units.items()
        if pool in wanted or pool not in snapshot.pools or snapshot.pools[pool].draining:
            continue
        # Its demand is cut to what the service takes, and to what its share may have of that.
        gets = min(job.demand.alternatives[0][pool] - held, state.view_for_growth(job).available_now(pool))
        if gets >= min(lacks, max(held // WORTHWHILE, 1)) and _is_allowed(state, job, pool, gets):
            state.grow(job, {pool: gets}, state.expected_ends.end(job))
            yield Widen(job, {pool: held + gets})


def _waits_for_units(decision: Decision) -> TypeGuard[Wait]:
    """Return whether a job waits that could start if more units were free."""
    return isinstance(decision, Wait) and not isinstance(decision.reason, NOT_WAITING_FOR_UNITS | WAITING_FOR_OWN_SHARE)


def _lacks(job: Job) -> int:
    """Return the units that the remaining work of a running job could use beside those that it holds."""
    attempt, work = job.attempt, job.work
    if attempt is None or work is None or job.state is not JobState.RUNNING or job.stop_requested:
        return 0
    goes_on = attempt.stop_asked_at is None and job.units.keys() == {work.pool}
    return work.needed - attempt.size if goes_on else 0


def _is_allowed(state: PlanState, job: Job, pool: str, count: int) -> bool:
    """Return whether no limit and no reservation keeps the job from that many more units."""
    more = {pool: count}
    if state.limits.refuses_more(job, more) or state.shares.refuses_more(job, more):
        return False
    return state.reservations.conflict(more, state.expected_ends.end(job)) is None
