"""Commands on existing jobs and on the policy: cancel, hold, release, set priority and size bounds, replace settings.

Each is one guarded transition, made again from the stored job after a conflict. It wakes the manager, which calls
SageMaker. Commands on pools are in `capacity.pools`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trainmaster.domain.access.audit import AuditAction
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.ceilings import priority_problem, settings_problems
from trainmaster.domain.access.rules import Action
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import (
    IllegalTransition,
    InvalidRequest,
    JobNotFound,
    VersionConflict,
    too_many_conflicts,
)
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.policy.document import policy_of
from trainmaster.domain.policy.problems import policy_problems
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.requests.elastic.size_change import MAXIMUM, MINIMUM, SAME_BOUNDS, SizeBounds
from trainmaster.domain.text import one_line
from trainmaster.ports.runtime import Clock, Publisher
from trainmaster.ports.store import QueueSettings, Store
from trainmaster.service import dependencies
from trainmaster.service.access import NO_ADMINS, Access
from trainmaster.service.admission.size_bounds import with_bounds
from trainmaster.service.auditing.audit import DEFAULT_RETENTION, Recorder
from trainmaster.service.wake import wake

MAX_TRIES = 8


@dataclass(frozen=True, slots=True)
class ApiContext:
    """Dependencies of the API's use cases.

    Attributes:
        audit_retention: how long audit entries are kept.
    """

    store: Store
    publisher: Publisher
    clock: Clock
    access: Access = NO_ADMINS
    audit_retention: timedelta = DEFAULT_RETENTION

    def recorder(self, caller: Caller) -> Recorder:
        """Return what makes the audit entries of a change that this caller makes now."""
        return Recorder(caller, self.clock.now(), self.audit_retention)

    def require(self, caller: Caller, action: Action, *, job: Job | None = None) -> None:
        """Raise `AccessDenied` unless the caller may take the action; see `Access.may`."""
        self.access.require(caller, action, self._policy, job=job)

    def may(self, caller: Caller, action: Action, *, job: Job | None = None) -> bool:
        """Return whether the caller may take the action; see `Access.may`."""
        return self.access.may(caller, action, self._policy, job=job)

    def _policy(self) -> Policy:
        return self.store.settings(catalogue=False).policy


def find_job(context: ApiContext, caller: Caller, action: Action, name: str) -> Job:
    """Return a job on which the caller may take the action. Raises `JobNotFound`, `AccessDenied`.

    Callers that may not read the queue are refused for names of no job too, so they cannot find out names.
    """
    job = context.store.find(name)
    if job is None:
        context.require(caller, Action.READ)
        raise JobNotFound(f"There is no job {name}.", field="name", hint="GET /jobs lists the names.")
    context.require(caller, action, job=job)
    return job


def cancel(context: ApiContext, caller: Caller, name: str, reason: str = "") -> Job:
    """Cancel a waiting or held job, or request that an active one is stopped for good; its history has the reason.

    Raises `JobNotFound`; `IllegalTransition` if it has ended.
    """
    who = f"{caller.name}: {one_line(reason)}" if reason else caller.name

    def changed(job: Job) -> Job:
        return lifecycle.cancel_or_stop(job, context.clock.now(), who)

    return change_job(context, caller, name, changed, AuditAction.CANCEL)


def purge(context: ApiContext, caller: Caller, name: str) -> Job:
    """Delete an ended job with its request and its history; return it as it was. Its name stays reserved.

    Raises `JobNotFound`, `AccessDenied`; `IllegalTransition` if it has not ended, or if other jobs wait for its end.
    """
    for _ in range(MAX_TRIES):
        job = find_job(context, caller, Action.CHANGE_JOB, name)
        if job.state not in ENDED:
            hint = "Cancel it, and purge it when it has ended."
            raise IllegalTransition(f"Job {name} is {job.state} and has not ended.", field="jobState", hint=hint)
        if context.store.list_jobs(Filter(parent=name), limit=1).jobs:
            hint = "Try again in some minutes, or cancel these jobs."
            raise IllegalTransition(f"Other jobs still wait for the end of job {name}.", field="name", hint=hint)
        if context.store.purge(job, audit=[context.recorder(caller).purge(job)]):
            return job
    raise too_many_conflicts(f"job {name}")


def change(  # noqa: PLR0913 - each is a part of the change
    context: ApiContext,
    caller: Caller,
    name: str,
    *,
    priority: int | None = None,
    hold: bool | None = None,
    bounds: SizeBounds = SAME_BOUNDS,
) -> Job:
    """Set a job's priority or the bounds of its size, hold it, or release it (hold=False); all at once is one change.

    Raises `JobNotFound`, `InvalidRequest`, `IllegalTransition`, `NeverFits`.
    """
    if priority is None and hold is None and bounds == SAME_BOUNDS:
        hint = f"Specify `priority`, `hold`, `{MINIMUM}` or `{MAXIMUM}`."
        raise InvalidRequest("The request changes nothing.", hint=hint)
    if priority is not None and abs(priority) > MAX_PRIORITY:
        raise InvalidRequest(
            f"The priority {priority} is out of range.",
            field="priority",
            hint=f"Specify an integer from -{MAX_PRIORITY} to {MAX_PRIORITY}.",
        )

    def changed(job: Job) -> Job:
        return _changed(context, caller, job, priority=priority, hold=hold, bounds=bounds)

    return change_job(context, caller, name, changed)


def settings_in_force(context: ApiContext, caller: Caller, *, history: bool = False) -> QueueSettings:
    """Return the settings in force, with the history of the pools if asked. Raises `AccessDenied`."""
    context.require(caller, Action.READ)
    return context.store.settings(history=history)


def set_policy(
    context: ApiContext,
    caller: Caller,
    document: Mapping[str, Any],
    *,
    version: int | None = None,
) -> QueueSettings:
    """Replace the policy with that of a settings document; absent settings take their defaults.

    Raises `InvalidRequest` for the first invalid setting, `VersionConflict`; the policy then stays in force.
    """

    def changed(stored: QueueSettings) -> SettingsChange:
        policy = policy_of(document, stored.deployed)
        for problem in policy_problems(policy, stored.pools, stored.catalogue):
            raise problem.refusal()
        return None, policy

    return change_settings(context, caller, changed, version)


SettingsChange = tuple[Sequence[Pool] | None, Policy | None]
"""The new pools and the new policy; None leaves the stored ones."""


def change_settings(
    context: ApiContext, caller: Caller, change: Callable[[QueueSettings], SettingsChange], version: int | None
) -> QueueSettings:
    """Commit a change of the settings in force with its audit entry, and wake the manager.

    A conflict makes the change again.

    Raises what `change` raises; `InvalidRequest` for a change above a ceiling; `AccessDenied` unless the caller is a
    queue admin; `VersionConflict` if `version` is given and no longer in force; `Throttled` after `MAX_TRIES`
    conflicts.
    """
    context.require(caller, Action.ADMINISTER)
    for _ in range(MAX_TRIES):
        stored = context.store.settings()
        pools, policy = change(stored)
        check_ceilings(context, stored, pools, policy)
        try:
            # The change was checked against these settings only.
            changed = context.store.set_settings(
                pools=pools,
                policy=policy,
                version=stored.version if version is None else version,
                audit=context.recorder(caller).of_settings(stored, pools, policy),
            )
        except VersionConflict:
            if version is not None:
                raise
            continue
        wake(context.store, context.publisher)
        return changed
    raise too_many_conflicts("the settings")


def check_ceilings(
    context: ApiContext, stored: QueueSettings, pools: Sequence[Pool] | None, policy: Policy | None
) -> None:
    """Raise `InvalidRequest` for a change above a ceiling of the deployment."""
    before = stored.pools.values(), stored.policy.expansion
    after = before[0] if pools is None else pools, before[1] if policy is None else policy.expansion
    for problem in settings_problems(context.access.ceilings, before, after, stored.catalogue):
        raise problem.refusal()


def _changed(  # noqa: PLR0913 - each is a part of the change
    context: ApiContext, caller: Caller, job: Job, *, priority: int | None, hold: bool | None, bounds: SizeBounds
) -> Job:
    now = context.clock.now()
    if job.state in ENDED:
        raise IllegalTransition(f"Job {job.name} is {job.state} and can no longer change.", field="jobState")
    if priority is not None and priority != job.priority:
        _check_priority(context, job, priority)
        job = lifecycle.reprioritize(job, priority, now, caller.name)
    if bounds != SAME_BOUNDS:
        job = with_bounds(job, bounds, context.store.settings(), now, caller.name)
    if hold is True and job.held_by is None:
        job = lifecycle.hold(job, now, caller.name)
    if hold is False:
        job = lifecycle.release(job, now, caller.name)
    return job


def _check_priority(context: ApiContext, job: Job, priority: int) -> None:
    """Raise `InvalidRequest` for a priority above a ceiling; lowering one that is above it is allowed."""
    if priority <= job.priority:
        return
    share = context.store.settings(catalogue=False).policy.shares.get(job.share)
    problem = priority_problem(priority, "priority", context.access.ceilings, share)
    if problem is not None:
        raise problem.refusal()


def change_job(
    context: ApiContext, caller: Caller, name: str, changed: Callable[[Job], Job], action: AuditAction | None = None
) -> Job:
    """Commit a change of the job with its audit entries, and wake the manager.

    A conflict makes the change again from the stored job. Without an action, the entries name what changed.

    Raises what `changed` raises; `JobNotFound`; `AccessDenied` unless the caller may take the action; `Throttled`
    after `MAX_TRIES` conflicts.
    """
    needed = Action.ANSWER_RESIZE if action is AuditAction.RESIZE_ANSWER else Action.CHANGE_JOB
    for _ in range(MAX_TRIES):
        before = find_job(context, caller, needed, name)
        after = changed(before)
        if after == before:
            return before
        if context.store.transition([(before, after)], audit=context.recorder(caller).of_job(before, after, action)):
            if after.state in ENDED:
                dependencies.release_dependents(context.store, after, context.clock.now())
            wake(context.store, context.publisher)
            return after
    raise too_many_conflicts(f"job {name}")
