"""Submit the job of an execution that then waits for its end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import ExecutionGone, Throttled
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.ports.store import Request
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.callbacks.ends import EndDeliverer, end_of
from trainmaster.service.change import ApiContext
from trainmaster.service.submit import name_taken, submit


@dataclass(frozen=True, slots=True)
class Entrance:
    """Dependencies of submissions for executions.

    Attributes:
        ends: answers the executions.
    """

    context: ApiContext
    admission: AdmissionPolicy
    ends: EndDeliverer


def enter(entrance: Entrance, caller: Caller, request: Request, callback: Callback) -> Job:
    """Submit a request, with its callback in the same transaction; return the job.

    The same request and token again give the same job. A task that is retried has another token: it takes over the job
    of the attempt before, whose token is void by then. Raises what `submit` raises, and `NameTaken` for a job that
    another execution waits for.
    """
    submission = submit(entrance.context, caller, entrance.admission, request, callback=callback)
    return submission.job if submission.new else _join(entrance, caller, submission.job, callback)


def _join(entrance: Entrance, caller: Caller, job: Job, callback: Callback) -> Job:
    """Let the execution wait for a job that was submitted before; an ended one is answered at once."""
    store = entrance.context.store
    if job.callback != callback.recipient or job.submitted_by != caller.principal:
        raise name_taken(job.name)
    stored = store.callback(job.name)
    if stored is not None and stored.token != callback.token:
        _take_over(entrance, stored, callback)
    # It may have ended between the submission and the change of its callback.
    job = store.find(job.name) or job
    if job.state in ENDED:
        entrance.ends.answer(end_of(job), callback)
        entrance.ends.settle(end_of(job))
    elif stored is None:
        raise name_taken(job.name)
    return job


def _take_over(entrance: Entrance, stored: Callback, callback: Callback) -> None:
    """Replace the token of an execution that waits no longer. Raises `NameTaken` if it does wait."""
    try:
        entrance.ends.executions.heartbeat(stored.token)
    except ExecutionGone:
        if not entrance.context.store.replace_callback(stored, replace(callback, version=stored.version + 1)):
            raise Throttled(f"the callback of {callback.job} has changed; try again") from None
    else:
        raise name_taken(callback.job)
