"""Deliver the ends of jobs to the executions that wait for them, as a recipient of the outbox."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.domain.errors import ExecutionGone, too_many_conflicts
from trainmaster.domain.events.callback import Callback
from trainmaster.domain.jobs.job import TRAINING, Job, JobState
from trainmaster.ports.callbacks import Describe, Description, Executions
from trainmaster.ports.events import Detail, deliver_each
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)
MAX_TRIES = 8
_STATUS = {JobState.COMPLETED: "Completed", JobState.FAILED: "Failed"}
"""`TrainingJobStatus` by the state of an ended job; "Stopped" for others."""
ERRORS: Mapping[JobState, str] = {
    JobState.FAILED: "Trainmaster.Failed",
    JobState.STOPPED: "Trainmaster.Stopped",
    JobState.CANCELLED: "Trainmaster.Cancelled",
}
"""Names of errors, which state machines match. `States.TaskFailed` matches each of them, too."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a job.

    Attributes:
        job: the name of the job.
        state: the state in which it has ended.
        training_job: the training job of its last attempt; "" if it had none.
        reason: in words.
    """

    job: str
    state: JobState
    training_job: str
    reason: str


def end_in(detail: Detail) -> End:
    """Return the end that the event `ended` tells of."""
    reason: Mapping[str, Any] = detail.get("reason", {})
    name = str(detail.get("trainingJobName", ""))
    return End(str(detail["jobName"]), JobState(detail["to"]), name, str(reason.get("message", "")))


def end_of(job: Job) -> End:
    """Return the end of a job that has ended."""
    name = job.attempt.training_job_name if job.attempt is not None and job.kind == TRAINING else ""
    return End(job.name, job.state, name, job.failure or job.history[-1].reason)


@dataclass(frozen=True, slots=True)
class EndDeliverer:
    """Delivers ends to the executions of one orchestrator; see `ports.Deliverer`.

    The callback is deleted only after its answer, so a manager that dies in between answers again.
    """

    store: Store
    executions: Executions
    describe: Describe

    def deliver(self, details: Sequence[Detail]) -> list[bool]:
        """Deliver the ends one by one; see `ports.Deliverer.deliver`. Throttling ends the round."""
        return deliver_each(details, lambda detail: self.settle(end_in(detail)), "the end of a job is not delivered")

    def settle(self, end: End) -> None:
        """Answer the execution that waits for the job, and delete its callback; nothing if there is none any more."""
        for _ in range(MAX_TRIES):
            callback = self.store.callback(end.job)
            if callback is None:
                return
            self.answer(end, callback)
            if self.store.replace_callback(callback, None):
                return
        raise too_many_conflicts(f"the callback of {end.job}")

    def answer(self, end: End, callback: Callback) -> None:
        """Answer the execution; one that waits no longer needs no answer."""
        description = self._description(end)
        try:
            if end.state is JobState.COMPLETED:
                self.executions.succeed(callback.token, description)
            else:
                self.executions.fail(callback.token, ERRORS[end.state], description)
        except ExecutionGone as error:
            log.info("no execution waits for the end of a job", extra={"job": end.job, "cause": str(error)})

    def _description(self, end: End) -> Description:
        """Return the last attempt's training job under the job's name; a job without an attempt has the members known.

        The reason in it is SageMaker's if there is one.
        """
        found = dict(self.describe(end.training_job) or {}) if end.training_job else {}
        reason = {} if end.state is JobState.COMPLETED else {"FailureReason": end.reason}
        own = {"TrainingJobName": end.job, "TrainingJobStatus": _STATUS.get(end.state, "Stopped")}
        return {**reason, **found, **own}
