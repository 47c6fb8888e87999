"""Send the heartbeats that are due, and cancel the jobs whose executions wait no longer."""

from __future__ import annotations

import logging
from collections.abc import Callable

from trainmaster.domain.errors import ExecutionGone, IllegalTransition, ServiceError, Throttled, too_many_conflicts
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED
from trainmaster.ports.callbacks import Executions
from trainmaster.service.context import ManagerContext, commit

log = logging.getLogger(__name__)
MAX_TRIES = 8


def send_heartbeats(context: ManagerContext, executions: Executions, may_go_on: Callable[[], bool]) -> int:
    """Send the heartbeats that are due while `may_go_on` is true; return the number of jobs that were cancelled.

    A failed heartbeat stays due, and the next tick repeats it. Raises `ServiceError` if the store does.
    """
    cancelled = 0
    for callback in context.store.callbacks_due(context.clock.now()):
        if not may_go_on():
            break
        try:
            executions.heartbeat(callback.token)
        except ExecutionGone as error:
            cancelled += _abandon(context, callback, str(error))
        except Throttled as error:
            log.warning("heartbeats are throttled; the next tick continues", extra={"cause": str(error)})
            break
        except ServiceError as error:
            log.warning("a heartbeat failed", extra={"job": callback.job, "cause": str(error)})
        else:
            context.store.replace_callback(callback, callback.after_heartbeat(context.clock.now()))
    return cancelled


def _abandon(context: ManagerContext, callback: Callback, cause: str) -> bool:
    """Cancel a job whose execution waits no longer, then delete its callback; return whether the job changed."""
    log.info("no execution waits for a job; it is cancelled", extra={"job": callback.job, "cause": cause})
    changed = _cancel(context, callback.job)
    context.store.replace_callback(callback, None)
    return changed


def _cancel(context: ManagerContext, name: str) -> bool:
    """Cancel a job for its execution; False if it has ended, or is stopping already."""
    for _ in range(MAX_TRIES):
        job = context.store.find(name)
        if job is None or job.state in ENDED or job.stop_requested:
            return False
        try:
            after = lifecycle.cancel_or_stop(job, context.clock.now(), "the queue: its execution waits no longer")
        except IllegalTransition:
            return False
        if commit(context, job, after) is after:
            return True
    raise too_many_conflicts(f"job {name}")
