"""Resizes that somebody else carries out: a Lambda function, or whoever hears an event.

Asked once more after a crash, with the same token. It must not judge what has become of the instances: the answer
tells, or the time runs out.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from trainmaster.domain.errors import InvalidRequest, NotPermitted
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.ports.resizing import ResizeRequester
from trainmaster.service.change import ApiContext, change_job
from trainmaster.service.context import EVENT, FUNCTION, ManagerContext, commit
from trainmaster.service.launch import stop
from trainmaster.service.resizing.contract import Answer, answer_in, answered, given_up, question

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CustomHook:
    """See `ports.ResizeHook`."""

    context: ManagerContext

    def advance(self, job: Job) -> Job:
        """Ask whoever does it, and give it up when its time is over; see `ports.ResizeHook.advance`."""
        attempt, now = lifecycle.current(job), self.context.clock.now()
        if job.state is not JobState.RESIZING or attempt.resizing is None or job.stop_asked:
            return job
        if now >= attempt.resizing.until:
            return self._moved(job, given_up(job, now, "nobody has done it in time"))
        return job if attempt.resizing.told else self._ask(job)

    def _ask(self, job: Job) -> Job:
        asked = question(job)
        target = lifecycle.elastic_of(job).target
        returned = self._requester(target).request_resize(target, asked)
        try:
            answer = None if returned is None else answer_in(asked["token"], returned)
            after = lifecycle.told(job) if answer is None else answered(job, answer, self.context.clock.now())
        except InvalidRequest as error:
            # It has been asked; that it does not know how to answer at once does not keep it from answering later.
            log.warning("a custom resize was answered wrongly", extra={"job": job.name, "cause": error.message})
            after = lifecycle.told(job)
        return self._moved(job, after)

    def _requester(self, target: str) -> ResizeRequester:
        asker = self.context.resize_requesters.get(EVENT if target == EVENT else FUNCTION)
        if asker is None:
            raise NotPermitted(f"this queue has no way to ask {target}")
        return asker

    def _moved(self, job: Job, after: Job) -> Job:
        stands = commit(self.context, job, after)
        return stop(self.context, stands) if stands == after and stands.stopping else stands


def answer_resize(context: ApiContext, name: str, answer: Answer) -> Job:
    """Take over an answer to a resize; see `contract.answered`. Raises `JobNotFound` besides."""
    return change_job(context, name, lambda job: answered(job, answer, context.clock.now()))
