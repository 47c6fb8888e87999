"""Resizes that a Lambda function, or an event's consumer, carries out.

After a crash the same request is sent again, with the same token. The resize ends with the answer, or when its time is
over.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from trainmaster.domain.access.audit import AuditAction
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import InvalidRequest, NotPermitted
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.ports.resizing import ResizeRequester
from trainmaster.service.change import ApiContext, change_job
from trainmaster.service.context import EVENT, FUNCTION, ManagerContext, commit
from trainmaster.service.launch import stop
from trainmaster.service.resizing.contract import HookAnswer, abandon_resize, apply_answer, parse_answer, resize_request

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CustomHook:
    """Implements `ports.ResizeHook`."""

    context: ManagerContext

    def advance(self, job: Job, *, retry: bool) -> Job:  # noqa: ARG002 -- part of the protocol
        """Send the request, and give the resize up when its time is over; see `ports.ResizeHook.advance`."""
        attempt, now = lifecycle.current(job), self.context.clock.now()
        if job.state is not JobState.RESIZING or attempt.resizing is None or job.stop_asked:
            return job
        if now >= attempt.resizing.until:
            return self._commit(job, abandon_resize(job, now, "no answer came in time"))
        return job if attempt.resizing.hook_called else self._request(job)

    def _request(self, job: Job) -> Job:
        request = resize_request(job)
        target = lifecycle.elastic_of(job).target
        response = self._requester(target).request_resize(target, request)
        try:
            answer = None if response is None else parse_answer(request["token"], response)
            after = (
                lifecycle.record_hook_call(job)
                if answer is None
                else apply_answer(job, answer, self.context.clock.now())
            )
        except InvalidRequest as error:
            # The request was received; an invalid first answer does not prevent a valid one later.
            log.warning("invalid answer to a custom resize", extra={"job": job.name, "cause": error.message})
            after = lifecycle.record_hook_call(job)
        return self._commit(job, after)

    def _requester(self, target: str) -> ResizeRequester:
        requester = self.context.resize_requesters.get(EVENT if target == EVENT else FUNCTION)
        if requester is None:
            raise NotPermitted(f"this queue cannot send resize requests to {target}")
        return requester

    def _commit(self, job: Job, after: Job) -> Job:
        stored = commit(self.context, job, after)
        return stop(self.context, stored) if stored == after and stored.stopping else stored


def answer_resize(
    context: ApiContext,
    caller: Caller,
    name: str,
    answer: HookAnswer,
) -> Job:
    """Apply an answer to a resize; see `contract.apply_answer`. Raises `JobNotFound`, `AccessDenied` too."""
    action = AuditAction.RESIZE_ANSWER
    return change_job(context, caller, name, lambda job: apply_answer(job, answer, context.clock.now()), action)
