"""Submit a request: check it, store it as a waiting job in one transaction, wake the manager. Or plan it only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import NameTaken
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.deadline import Prospect, outlook
from trainmaster.domain.jobs.job import WAITING, Job, JobState
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.requests.tags import gives
from trainmaster.ports.store import QueueSettings, Request
from trainmaster.service import dependencies
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.admission.shares import check_budget
from trainmaster.service.change import ApiContext
from trainmaster.service.explain.consequences import Consequences, consequences
from trainmaster.service.explain.explain import Explanation, explain, explain_in
from trainmaster.service.wake import wake, wake_after


@dataclass(frozen=True, slots=True)
class Submission:
    """Result of a submission.

    Attributes:
        job: the job as stored.
        new: False if the same request was submitted before.
        explanation: its position, reason and estimated start; None if it does not wait.
        warnings: advice about the request, which was accepted nevertheless.
    """

    job: Job
    new: bool
    explanation: Explanation | None
    warnings: tuple[str, ...]


def submit(
    context: ApiContext,
    caller: Caller,
    admission: AdmissionPolicy,
    request: Request,
    *,
    callback: Callback | None = None,
) -> Submission:
    """Store the request as a job, wake the manager, and return the job with its place in the queue.

    The same name and body again give the same answer. `callback` is stored with a new job. Raises what
    `AdmissionPolicy.admit` raises; `BudgetExhausted`; `NameTaken` if a job with another body has this name; `TooLarge`;
    `ServiceError`: then either nothing was stored, or the same call again finds the job.
    """
    admitted = _admit(context, caller, admission, request)
    job = replace(admitted.job, callback=callback.recipient) if callback is not None else admitted.job
    audit = context.recorder(caller).submission(job)
    stored = context.store.submit(job, request, audit=audit, callback=callback)
    if stored.digest != job.digest:
        raise name_taken(stored.name)
    new = stored is job
    stored = dependencies.apply_parent_ends(context.store, stored, context.clock.now())
    snapshot = _wake(context, stored, admitted.snapshot)
    if snapshot is None:
        return Submission(stored, new, None, admitted.warnings)
    now = context.clock.now()
    explanation = explain_in(snapshot, now, [stored])[stored.name] if stored.state in WAITING else None
    return Submission(stored, new, explanation, (*admitted.warnings, *_deadline_advice(stored, snapshot, now)))


def plan(
    context: ApiContext, caller: Caller, admission: AdmissionPolicy, request: Request
) -> tuple[Explanation, tuple[str, ...], Consequences]:
    """Return what a submission of this request would do now, to it and to other jobs, without storing anything.

    Raises what `submit` raises.
    """
    admitted = _admit(context, caller, admission, request)
    job, stored = admitted.job, context.store.find(admitted.job.name)
    if stored is not None and stored.digest != job.digest:
        raise name_taken(stored.name)
    now, snapshot = context.clock.now(), admitted.snapshot or context.store.read_snapshot()
    advice = (*admitted.warnings, *_deadline_advice(job, snapshot, now))
    if job.state is JobState.HELD:
        deadline = outlook(job, snapshot.records.history, now)
        held_back = Explanation(None, None, starts=False, reason=lifecycle.held_reason(job), outlook=deadline)
        return held_back, advice, Consequences()
    explanation = explain(context.store, now, [job], snapshot)[job.name]
    return explanation, advice, consequences(snapshot, now, job) if stored is None else Consequences()


@dataclass(frozen=True, slots=True)
class _Admitted:
    """An admitted request.

    Attributes:
        job: the job to store.
        warnings: advice about the request.
        snapshot: the queue as admission read it; None if admission did not need it.
    """

    job: Job
    warnings: tuple[str, ...]
    snapshot: Snapshot | None


def _admit(context: ApiContext, caller: Caller, admission: AdmissionPolicy, request: Request) -> _Admitted:
    """Return the job to store. Raises what `AdmissionPolicy.admit`, `check_budget` and `resolve_parents` raise."""
    now, settings = context.clock.now(), _settings_for(context, request)
    admitted = admission.admit(request, caller, settings.pools, now, settings.policy, catalogue=settings.catalogue)
    snapshot = check_budget(context.store, context.clock, admitted.job, request, settings.policy)
    job, advice = dependencies.resolve_parents(context.store, admitted.job, request, now)
    return _Admitted(job, (*admitted.warnings, *advice), snapshot)


def _wake(context: ApiContext, stored: Job, snapshot: Snapshot | None) -> Snapshot | None:
    """Wake the manager; return the snapshot that the answer is made from, None if the answer needs none.

    Each submission reads at most one snapshot: the one from admission, or else one whose pass number serves the wake.
    """
    needed = stored.state in WAITING or stored.deadline is not None
    if snapshot is None and needed:
        snapshot = context.store.read_snapshot()
        wake_after(context.publisher, snapshot.pass_number)
        return snapshot
    wake(context.store, context.publisher)
    return snapshot if needed else None


def _settings_for(context: ApiContext, request: Request) -> QueueSettings:
    """Return the settings in force; the instance catalogue is read only for requests that depend on it."""
    by_resource = gives(request, "resources")
    settings = context.store.settings(catalogue=by_resource)
    return context.store.settings() if settings.policy.expansion.enabled and not by_resource else settings


def _deadline_advice(job: Job, snapshot: Snapshot, now: datetime) -> tuple[str, ...]:
    """Return a warning for a deadline that will hardly be met, or that is too late to move the job forward."""
    enters = job if job.not_before is None else replace(job, entry_time=max(job.entry_time, job.not_before))
    found = outlook(enters, snapshot.records.history, max(now, enters.entry_time))
    if found is None or (found.prospect in (Prospect.IN_TIME, Prospect.URGENT) and found.urgent_from is not None):
        return ()
    return (f"This job {found.message()}.",)


def name_taken(name: str) -> NameTaken:
    """Return the error for a name that belongs to another request."""
    return NameTaken(
        f"The name {name} belongs to a job with another request.",
        field="TrainingJobName",
        hint="Choose another name; names of training jobs are unique within an account and Region.",
    )
