"""Find the waiting jobs that no pool can hold, and those that one can again, for deployments that publish this.

The verdict follows from the pools, so it is stored only to put one event for each change of it: a job that a pool can
hold costs nothing, nor does any job of a deployment that publishes no verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Plan, Snapshot, Wait
from trainmaster.domain.reasons.capacity import CanNeverFit, Infeasible
from trainmaster.service.context import ManagerContext

MAX_CHANGES = 100
"""Verdicts that a pass records; later passes record the others."""
_NEVER = frozenset({Infeasible, CanNeverFit})
BATCH = 25
"""Verdicts in one transaction. If one of these jobs changes meanwhile, the next pass records them."""


def changes(
    context: ManagerContext, snapshot: Snapshot, plan: Plan, reserved: Mapping[str, Job]
) -> Iterator[Sequence[tuple[Job, Job]]]:
    """Yield the changes of jobs whose verdict is another one than the stored one, as batches to commit.

    Args:
        context: the manager's dependencies.
        snapshot: what the plan was made from.
        plan: tells which jobs no pool can hold.
        reserved: jobs that the pass has changed since, as stored.
    """
    if not context.publication.may_tell_feasibility:
        return
    told = context.publication.tells_feasibility
    # Inline for speed: it runs for every job of a deep queue, of which nearly none has changed.
    changed = (w for w in plan.waits if (type(w.reason) in _NEVER) is not w.job.infeasible and told(w.job))
    reasons = {wait.job.name: wait for wait in islice(changed, MAX_CHANGES)}
    if not reasons:
        return
    # Jobs of a plan have the pools that they could use now, which are not stored.
    stored = {job.name: reserved.get(job.name, job) for job in snapshot.waiting if job.name in reasons}
    found = [(job, _changed(context, job, reasons[name])) for name, job in stored.items()]
    for first in range(0, len(found), BATCH):
        yield found[first : first + BATCH]


def _is_infeasible(wait: Wait) -> bool:
    return type(wait.reason) in _NEVER


def _changed(context: ManagerContext, job: Job, wait: Wait) -> Job:
    now = context.clock.now()
    if _is_infeasible(wait):
        return lifecycle.set_infeasible(job, now, wait.reason.message())
    return lifecycle.set_feasible(job, now)
